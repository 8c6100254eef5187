"""What every policy promises, one function each; a broken promise is an AssertionError.

A function takes the policy and the class of the bandit that holds it.
"""

import copy
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rbmle
from rbmle.core.bandit import Bandit
from rbmle.core.contexts import disjoint, per_arm, stacked
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import KnowsProbabilities, Policy, SeparateIndex, has
from rbmle.core.randomness import Purpose, generator
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts, Indices

FEATURES = 4
ROUNDS = 60

Promise = Callable[[Policy[Any], type[Bandit]], None]


def index_is_one_finite_number_for_each_arm(policy: Policy[Any], make: type[Bandit]) -> None:
    """Before any data and after some, for 1, 2 and 50 arms, in both encodings."""
    for arms in (1, 2, 50):
        for encoding in ("disjoint", "per-arm"):
            bandit = make(policy, arms=arms, features=FEATURES, encoding=encoding)
            for t in range(3):
                x = _vectors(t)[0] if encoding == "disjoint" else _vectors(t, arms)
                decision = bandit.decide(x)
                assert decision.indices.shape == (arms,)
                assert np.isfinite(decision.indices).all()
                bandit.learn(decision, 1.0)


def index_is_finite_for_large_small_and_zero_contexts(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Features are what users send: no scale may break the arithmetic."""
    for size in (0.0, 1e-12, 1e6, 1e11):
        bandit = make(policy, arms=3, features=FEATURES)
        for t in range(5):
            decision = bandit.decide(size * _vectors(t)[0])
            assert np.isfinite(decision.indices).all(), f"contexts of size {size}"
            bandit.learn(decision, float(t % 2))


def index_changes_nothing(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither state nor contexts, byte for byte."""
    bandit = _trained(policy, make)
    contexts = _contexts()
    state, before = _bytes(bandit.state), _bytes(contexts.rows)
    policy.index(bandit.state, contexts, generator(0, Purpose.INDEX, 0))
    if has(policy, KnowsProbabilities):
        policy.weigh(bandit.state, contexts, 10, generator(0, Purpose.INDEX, 0))
    assert _bytes(bandit.state) == state
    assert _bytes(contexts.rows) == before


def index_asked_twice_answers_the_same(policy: Policy[Any], make: type[Bandit]) -> None:
    """With equal streams."""
    bandit = _trained(policy, make)
    np.testing.assert_array_equal(_index(policy, bandit.state), _index(policy, bandit.state))


def same_seed_same_run(policy: Policy[Any], make: type[Bandit]) -> None:
    """Bit for bit."""
    first, second = _trained(policy, make), _trained(policy, make)
    assert _bytes(first.state) == _bytes(second.state)
    np.testing.assert_array_equal(_index(policy, first.state), _index(policy, second.state))


def global_random_state_is_untouched(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither read nor written: a run does not depend on it."""
    np.random.seed(1)
    random.seed(1)
    legacy, plain = repr(np.random.get_state()), random.getstate()
    first = _trained(policy, make)
    assert repr(np.random.get_state()) == legacy
    assert random.getstate() == plain
    np.random.seed(2)
    random.seed(2)
    assert _bytes(_trained(policy, make).state) == _bytes(first.state)


def arms_may_be_listed_in_any_order(policy: Policy[Any], make: type[Bandit]) -> None:
    """Permuted contexts have permuted indices, in both encodings."""
    order = [3, 0, 2, 1]
    for encoding in ("disjoint", "per-arm"):
        bandit = _trained(policy, make, encoding=encoding)
        if encoding == "disjoint":
            x = _vectors(9)[0]
            listed = disjoint(x, np.arange(4), FEATURES)
            permuted = disjoint(x, np.array(order), FEATURES)
        else:
            X = _vectors(9, 4)
            listed, permuted = per_arm(X, FEATURES), per_arm(X[order], FEATURES)
        np.testing.assert_allclose(
            _index(policy, bandit.state, permuted),
            _index(policy, bandit.state, listed)[order],
            rtol=1e-12,
        )


def twins_tie(policy: Policy[Any], make: type[Bandit]) -> None:
    """Two arms with one context have one index."""
    bandit = _trained(policy, make, encoding="per-arm")
    X = _vectors(9, 4)
    X[2] = X[0]
    indices = _index(policy, bandit.state, per_arm(X, FEATURES))
    assert indices[0] == indices[2]


def a_run_saved_halfway_and_resumed_equals_the_unbroken_run(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Bit for bit."""
    unbroken = _trained(policy, make, rounds=ROUNDS)
    broken = _trained(policy, make, rounds=ROUNDS // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bandit.rbmle"
        broken.save(path)
        resumed = Bandit.load(path, policy=policy)
    _play(resumed, range(ROUNDS // 2, ROUNDS))
    assert _bytes(resumed.state) == _bytes(unbroken.state)
    np.testing.assert_array_equal(_index(policy, resumed.state), _index(policy, unbroken.state))


def a_copied_state_goes_its_own_way(policy: Policy[Any], make: type[Bandit]) -> None:
    """A state has all that was learned, and shares nothing with its copy."""
    bandit = _trained(policy, make)
    twin = copy.deepcopy(bandit)
    before = _bytes(twin.state)
    _play(bandit, range(ROUNDS, ROUNDS + 5))
    assert _bytes(twin.state) == before
    _play(twin, range(ROUNDS, ROUNDS + 5))
    assert _bytes(twin.state) == _bytes(bandit.state)


def a_snapshot_decides_as_its_original(policy: Policy[Any], make: type[Bandit]) -> None:
    """Now, and after the original has learned more."""
    bandit = _trained(policy, make)
    before = [bandit.decide(_vectors(t)[0], id=str(t)) for t in range(5)]
    snapshot = bandit.snapshot()
    _play(bandit, range(ROUNDS, ROUNDS + 20))
    for t, decision in enumerate(before):
        again = snapshot.decide(_vectors(t)[0], id=str(t))
        assert again.arm == decision.arm
        np.testing.assert_array_equal(again.indices, decision.indices)
        np.testing.assert_array_equal(again.probabilities, decision.probabilities)


def a_batch_is_learned_as_its_observations_one_by_one(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Bit for bit, whatever the sizes of batches are, and whichever observations are fitted."""
    rng, rounds = generator(5, Purpose.ENVIRONMENT, 0), range(150)
    arms, rewards, some = rng.integers(4, size=150), rng.normal(size=150), rng.random(150) < 0.3
    seen = [disjoint(_vectors(t)[0], arms[t : t + 1], FEATURES) for t in rounds]
    plain, whole, sparing, batched = (
        make(policy, arms=4, features=FEATURES, seed=3) for _ in range(4)
    )
    for t in rounds:
        plain.learn(_vectors(t)[0], arm=int(arms[t]), reward=float(rewards[t]))
        sparing.learn_all(seen[t], rewards[t : t + 1], is_fitted=some[t : t + 1])
    _learn_in_batches(whole, seen, rewards, None)
    assert _bytes(whole.state) == _bytes(plain.state)
    _learn_in_batches(batched, seen, rewards, some)
    assert _bytes(batched.state) == _bytes(sparing.state)
    assert [bandit.round for bandit in (plain, whole, sparing, batched)] == [150] * 4


def repr_rebuilds_the_policy(policy: Policy[Any], make: type[Bandit]) -> None:
    """`repr` is the whole truth, and equal policies have equal hashes."""
    names = {name: getattr(rbmle, name) for name in rbmle.__all__} | {
        type(policy).__name__: type(policy)
    }
    rebuilt = eval(repr(policy), names)
    assert rebuilt == policy
    assert hash(rebuilt) == hash(policy)
    assert _bytes(_trained(rebuilt, make).state) == _bytes(_trained(policy, make).state)


def it_learns(policy: Policy[Any], make: type[Bandit]) -> None:
    """Less than half the regret of uniform play, on a problem that a line separates."""
    assert _regret(policy, make) < 0.5 * _regret(rbmle.Uniform(), make)


def bad_input_is_refused_and_leaves_the_state_as_it_was(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Wrong shapes, NaN, infinity, rewards and arms that cannot be: a message, and no trace."""
    bandit = _trained(policy, make)
    decision = bandit.decide(np.ones(FEATURES))
    good = np.ones(FEATURES)
    before, clocks = _bytes(bandit.state), (bandit.round, bandit.decisions)
    for attempt in (
        lambda: bandit.decide(np.ones(FEATURES + 1)),
        lambda: bandit.decide(np.ones((2, FEATURES))),
        lambda: bandit.decide([1.0, np.nan, 0.0, 0.0]),
        lambda: bandit.decide([1.0, np.inf, 0.0, 0.0]),
        lambda: bandit.decide(["a", "b", "c", "d"]),
        lambda: bandit.decide(good, eligible=[]),
        lambda: bandit.decide(good, eligible=[0, 0]),
        lambda: bandit.decide(good, eligible=[77]),
        lambda: bandit.learn(decision, np.nan),
        lambda: bandit.learn(decision, np.inf),
        lambda: bandit.learn(decision, "much"),  # type: ignore[arg-type]  # the point of the test
        lambda: bandit.learn(good, arm=77, reward=1.0),
        lambda: bandit.learn(good, reward=1.0),
        lambda: bandit.learn([np.nan] * FEATURES, arm=0, reward=1.0),
        lambda: bandit.partial_fit([good, good], [0, 77], [1.0, 1.0]),
        lambda: bandit.partial_fit([good, good], [0, 1], [1.0, np.nan]),
        lambda: bandit.partial_fit([good], [0, 1], [1.0, 0.0]),
    ):
        try:
            attempt()
        except RBMLEError as error:
            assert len(str(error)) > 20, (
                "a message says what is wrong, what was expected, what to do"
            )
        else:
            raise AssertionError("bad input was taken")
        assert _bytes(bandit.state) == before
        assert (bandit.round, bandit.decisions) == clocks


def a_new_arm_leaves_the_others_as_they_were(policy: Policy[Any], make: type[Bandit]) -> None:
    """Growing forgets nothing, and the new arm has an index and learns."""
    bandit = _trained(policy, make)
    x = _vectors(9)[0]
    before = _index(policy, bandit.state, disjoint(x, np.arange(4), FEATURES))
    bandit.add_arm("new")
    after = _index(policy, bandit.state, disjoint(x, np.arange(5), FEATURES))
    np.testing.assert_array_equal(after[:4], before)
    assert np.isfinite(after[4])
    bandit.learn(x, arm="new", reward=1.0)


def probabilities_are_a_distribution_or_none(policy: Policy[Any], make: type[Bandit]) -> None:
    """They sum to 1; with a floor they keep it; a separate index does not depend on the stream."""
    bandit = _trained(policy, make)
    streams = [generator(0, Purpose.INDEX, t) for t in range(5)]
    if has(policy, KnowsProbabilities):
        _, chances = policy.weigh(bandit.state, _contexts(), 50, streams[0])
        assert chances is not None
        assert (chances >= 0).all()
        assert np.isclose(chances.sum(), 1)
    if has(policy, SeparateIndex):
        answers = [policy.index(bandit.state, _contexts(), rng) for rng in streams]
        assert all((answer == answers[0]).all() for answer in answers)
    floored = make(policy, arms=4, features=FEATURES, floor=0.2, draws=20)
    decision = floored.decide(np.ones(FEATURES))
    assert decision.probabilities is not None
    assert decision.propensity is not None
    assert (decision.probabilities >= 0.2 / 4 - 1e-12).all()
    assert np.isclose(decision.probabilities.sum(), 1)


PROMISES: tuple[Promise, ...] = (
    index_is_one_finite_number_for_each_arm,
    index_is_finite_for_large_small_and_zero_contexts,
    index_changes_nothing,
    index_asked_twice_answers_the_same,
    same_seed_same_run,
    global_random_state_is_untouched,
    arms_may_be_listed_in_any_order,
    twins_tie,
    a_run_saved_halfway_and_resumed_equals_the_unbroken_run,
    a_copied_state_goes_its_own_way,
    a_snapshot_decides_as_its_original,
    a_batch_is_learned_as_its_observations_one_by_one,
    repr_rebuilds_the_policy,
    it_learns,
    bad_input_is_refused_and_leaves_the_state_as_it_was,
    a_new_arm_leaves_the_others_as_they_were,
    probabilities_are_a_distribution_or_none,
)


def _vectors(t: int, n: int = 1) -> np.ndarray:
    """Return n contexts of round t."""
    return generator(5, Purpose.ENVIRONMENT, t).normal(size=(n, FEATURES))


def _contexts() -> Contexts:
    return disjoint(_vectors(9)[0], np.arange(4), FEATURES)


def _index(policy: Policy[Any], state: Any, contexts: Contexts | None = None) -> Indices:
    """Return the index with a fresh stream, always the same."""
    offered = _contexts() if contexts is None else contexts
    return policy.index(state, offered, generator(0, Purpose.INDEX, 0))


def _play(bandit: Bandit, rounds: range) -> None:
    """Let the bandit decide and learn; arm 0 is right where the first feature is positive, else 1."""
    for t in rounds:
        if bandit.encoding == "per-arm":
            X = _vectors(t, 4)
            decision = bandit.decide(X)
            reward = float(X[bandit.arms.block(decision.arm) if bandit.arms else 0, 0] > 0)
        else:
            (x,) = _vectors(t)
            decision = bandit.decide(x)
            reward = float(decision.arm == int(x[0] <= 0))
        bandit.learn(decision, reward)


def _trained(
    policy: Policy[Any], make: type[Bandit], rounds: int = ROUNDS, encoding: str = "disjoint"
) -> Bandit:
    """Return a bandit that has played some rounds."""
    bandit = make(policy, arms=4, features=FEATURES, seed=3, encoding=encoding)
    _play(bandit, range(rounds))
    return bandit


def _learn_in_batches(
    bandit: Bandit, seen: list[Contexts], rewards: np.ndarray, is_fitted: np.ndarray | None
) -> None:
    """Let the bandit learn in batches of 1, 10, 100 and what is left."""
    for start, end in ((0, 1), (1, 11), (11, 111), (111, len(seen))):
        flags = None if is_fitted is None else is_fitted[start:end]
        bandit.learn_all(stacked(seen[start:end]), rewards[start:end], is_fitted=flags)


def _regret(policy: Policy[Any], make: type[Bandit], rounds: int = 400) -> float:
    """Return the regret on two arms, of which the sign of a feature says which is right."""
    bandit = make(policy, arms=2, features=FEATURES, seed=1)
    regret = 0.0
    for t in range(rounds):
        (x,) = _vectors(t)
        decision = bandit.decide(x)
        reward = float(decision.arm == int(x[0] <= 0))
        regret += 1 - reward
        bandit.learn(decision, reward)
    return regret


def _bytes(tree: Any) -> list[tuple[str, bytes]]:
    """Return all that a state holds."""
    arrays, numbers = leaves(tree)
    return [(name, array.tobytes()) for name, array in arrays.items()] + [
        (name, repr(number).encode()) for name, number in numbers.items()
    ]
