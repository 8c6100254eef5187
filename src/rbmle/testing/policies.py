"""The contract of policies, for policies of your own: what every policy promises.

A promise is a function of the policy and the class of the bandit that holds it; a broken one is an
AssertionError.
"""

import copy
import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rbmle
from rbmle.core.bandit import Bandit
from rbmle.core.encoding import disjoint, per_arm
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import (
    IgnoresContexts,
    KnowsProbabilities,
    Policy,
    SeparateIndex,
    StandardisesRewards,
    has,
    limits_of,
)
from rbmle.core.randomness import Purpose, generator
from rbmle.policies.epsilon_greedy import Uniform
from rbmle.testing.playing import (
    ARMS,
    FEATURES,
    ROUNDS,
    Check,
    checks_of,
    content,
    index_of,
    learn_in_batches,
    play,
    regret_of,
    require,
    some_contexts,
    train_bandit,
    vectors,
)


def index_is_one_finite_number_for_each_arm(policy: Policy[Any], make: type[Bandit]) -> None:
    """Before any data and after some, for 1, 2 and 50 arms, in both encodings."""
    for arms in (1, 2, 50):
        for encoding in ("disjoint", "per-arm"):
            bandit = make(policy, arms=arms, features=FEATURES, encoding=encoding)
            for t in range(3):
                x = vectors(t)[0] if encoding == "disjoint" else vectors(t, arms)
                decision = bandit.decide(x)
                shape = decision.indices.shape
                require(shape == (arms,), f"for {arms} arms the index has the shape {shape}")
                require(np.isfinite(decision.indices).all(), f"round {t}: {decision.indices}")
                bandit.learn(decision, 1.0)


def index_is_finite_for_large_small_and_zero_contexts(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Features are what users send: no scale may break the arithmetic."""
    for size in (0.0, 1e-12, 1e6, 1e11):
        bandit = make(policy, arms=3, features=FEATURES)
        for t in range(5):
            decision = bandit.decide(size * vectors(t)[0])
            require(np.isfinite(decision.indices).all(), f"contexts of size {size}")
            bandit.learn(decision, float(t % 2))


def index_changes_nothing(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither state nor contexts, byte for byte."""
    bandit = train_bandit(policy, make)
    contexts = some_contexts()
    state, before = content(bandit.state), content(contexts.rows)
    policy.index(bandit.state, contexts, generator(0, Purpose.INDEX, 0))
    if has(policy, KnowsProbabilities):
        policy.weigh(bandit.state, contexts, 10, generator(0, Purpose.INDEX, 0))
    require(content(bandit.state) == state, "the state changed: only `update` may learn")
    require(content(contexts.rows) == before, "the contexts changed: copy before you scale")


def index_asked_twice_answers_the_same(policy: Policy[Any], make: type[Bandit]) -> None:
    """With equal streams."""
    bandit = train_bandit(policy, make)
    np.testing.assert_array_equal(index_of(policy, bandit.state), index_of(policy, bandit.state))


def arms_may_be_listed_in_any_order(policy: Policy[Any], make: type[Bandit]) -> None:
    """Permuted contexts have permuted indices, in both encodings."""
    order = [3, 0, 2, 1]
    for encoding in ("disjoint", "per-arm"):
        bandit = train_bandit(policy, make, encoding=encoding)
        if encoding == "disjoint":
            x = vectors(9)[0]
            listed = disjoint(x, np.arange(ARMS), FEATURES)
            permuted = disjoint(x, np.array(order), FEATURES)
        else:
            X = vectors(9, ARMS)
            listed, permuted = per_arm(X, FEATURES), per_arm(X[order], FEATURES)
        np.testing.assert_allclose(
            index_of(policy, bandit.state, permuted),
            index_of(policy, bandit.state, listed)[order],
            rtol=1e-12,
        )


def twins_tie(policy: Policy[Any], make: type[Bandit]) -> None:
    """Two arms with one context have one index."""
    bandit = train_bandit(policy, make, encoding="per-arm")
    X = vectors(9, ARMS)
    X[2] = X[0]
    indices = index_of(policy, bandit.state, per_arm(X, FEATURES))
    require(indices[0] == indices[2], f"equal contexts have {indices[0]} and {indices[2]}")


def a_new_arm_leaves_the_others_as_they_were(policy: Policy[Any], make: type[Bandit]) -> None:
    """Growing forgets nothing, and the new arm has an index and learns."""
    bandit = train_bandit(policy, make)
    x = vectors(9)[0]
    before = index_of(policy, bandit.state, disjoint(x, np.arange(ARMS), FEATURES))
    bandit.add_arm("new")
    after = index_of(policy, bandit.state, disjoint(x, np.arange(ARMS + 1), FEATURES))
    np.testing.assert_array_equal(after[:ARMS], before)
    require(np.isfinite(after[ARMS]), f"the index of the new arm is {after[ARMS]}")
    bandit.learn(x, arm="new", reward=1.0)


def probabilities_are_a_distribution(policy: Policy[Any], make: type[Bandit]) -> None:
    """Those of a policy that knows them sum to 1; with a floor all policies have some that keep it."""
    bandit = train_bandit(policy, make)
    if has(policy, KnowsProbabilities):
        rng = generator(0, Purpose.INDEX, 0)
        _, chances = policy.weigh(bandit.state, some_contexts(), 50, rng)
        if chances is None:
            raise AssertionError("`weigh` returns no probabilities, though 50 draws were granted")
        require((chances >= 0).all(), f"a probability is below 0: {chances}")
        require(np.isclose(chances.sum(), 1), f"the probabilities sum to {chances.sum()}, not to 1")
    floored = make(policy, arms=ARMS, features=FEATURES, floor=0.2, draws=20)
    decision = floored.decide(np.ones(FEATURES))
    chances = decision.probabilities
    if chances is None or decision.propensity is None:
        raise AssertionError("a floor gives probabilities and a propensity, but there are none")
    require((chances >= 0.2 / ARMS - 1e-12).all(), f"a floor of 0.2 is not kept: {chances}")
    require(np.isclose(chances.sum(), 1), f"with a floor they sum to {chances.sum()}, not to 1")


def a_separate_index_does_not_draw(policy: Policy[Any], make: type[Bandit]) -> None:
    """A policy with `is_separate` has the same index for every stream."""
    bandit = train_bandit(policy, make)
    if not has(policy, SeparateIndex):
        return
    streams = [generator(0, Purpose.INDEX, t) for t in range(5)]
    answers = [policy.index(bandit.state, some_contexts(), rng) for rng in streams]
    require(
        all((answer == answers[0]).all() for answer in answers),
        "the policy says `is_separate`, but its index differs from stream to stream",
    )


def who_ignores_contexts_reads_none(policy: Policy[Any], make: type[Bandit]) -> None:
    """A policy with `ignores_contexts` has the same index for every context."""
    bandit = train_bandit(policy, make)
    if not has(policy, IgnoresContexts):
        return
    seen = [disjoint(vectors(t)[0], np.arange(ARMS), FEATURES) for t in range(5)]
    stream = (generator(0, Purpose.INDEX, 0) for _ in seen)
    answers = [policy.index(bandit.state, x, rng) for x, rng in zip(seen, stream, strict=True)]
    require(
        all((answer == answers[0]).all() for answer in answers),
        "the policy says `ignores_contexts`, but its index differs from context to context",
    )


def same_seed_same_run(policy: Policy[Any], make: type[Bandit]) -> None:
    """Bit for bit."""
    first, second = train_bandit(policy, make), train_bandit(policy, make)
    require(content(first.state) == content(second.state), "two runs of one seed differ")
    np.testing.assert_array_equal(index_of(policy, first.state), index_of(policy, second.state))


def global_random_state_is_untouched(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither read nor written: a run does not depend on it."""
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002  # what is guarded
    try:
        _seed(1)
        before = _global()
        first = train_bandit(policy, make)
        require(_global() == before, "a run drew from a global generator; draw from `rng`")
        _seed(2)
        second = train_bandit(policy, make)
        require(
            content(second.state) == content(first.state), "a run depends on a global generator"
        )
    finally:
        np.random.set_state(legacy)  # noqa: NPY002  # what is guarded
        random.setstate(plain)


def a_run_saved_halfway_and_resumed_equals_the_unbroken_run(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Bit for bit."""
    unbroken = train_bandit(policy, make, rounds=ROUNDS)
    broken = train_bandit(policy, make, rounds=ROUNDS // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bandit.rbmle"
        broken.save(path)
        resumed = Bandit.load(path, policy=policy)
    play(resumed, range(ROUNDS // 2, ROUNDS))
    require(content(resumed.state) == content(unbroken.state), "the resumed run went another way")
    np.testing.assert_array_equal(index_of(policy, resumed.state), index_of(policy, unbroken.state))


def a_copied_state_goes_its_own_way(policy: Policy[Any], make: type[Bandit]) -> None:
    """A state has all that was learned, and shares nothing with its copy."""
    bandit = train_bandit(policy, make)
    twin = copy.deepcopy(bandit)
    before = content(twin.state)
    play(bandit, range(ROUNDS, ROUNDS + 5))
    require(content(twin.state) == before, "a copy changed with its original")
    play(twin, range(ROUNDS, ROUNDS + 5))
    require(content(twin.state) == content(bandit.state), "a copy did not learn the same")


def a_snapshot_decides_as_its_original(policy: Policy[Any], make: type[Bandit]) -> None:
    """Now, and after the original has learned more."""
    bandit = train_bandit(policy, make)
    before = [bandit.decide(vectors(t)[0], id=str(t)) for t in range(5)]
    snapshot = bandit.snapshot()
    play(bandit, range(ROUNDS, ROUNDS + 20))
    for t, decision in enumerate(before):
        again = snapshot.decide(vectors(t)[0], id=str(t))
        require(again.arm == decision.arm, f"arm {again.arm} instead of {decision.arm}")
        np.testing.assert_array_equal(again.indices, decision.indices)
        np.testing.assert_array_equal(again.probabilities, decision.probabilities)


def a_batch_is_learned_as_its_observations_one_by_one(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Bit for bit, whatever the sizes of batches are, and whichever observations are fitted."""
    rng, rounds = generator(5, Purpose.ENVIRONMENT, 0), range(150)
    arms, rewards, some = rng.integers(ARMS, size=150), rng.random(150), rng.random(150) < 0.3
    seen = [disjoint(vectors(t)[0], arms[t : t + 1], FEATURES) for t in rounds]
    plain, whole, sparing, batched = (
        make(policy, arms=ARMS, features=FEATURES, seed=3) for _ in range(4)
    )
    for t in rounds:
        plain.learn(vectors(t)[0], arm=int(arms[t]), reward=float(rewards[t]))
        sparing.learn_all(seen[t], rewards[t : t + 1], is_fitted=some[t : t + 1])
    learn_in_batches(whole, seen, rewards, None)
    require(content(whole.state) == content(plain.state), "batches taught something else")
    learn_in_batches(batched, seen, rewards, some)
    require(content(batched.state) == content(sparing.state), "batches with some fitted did")
    counts = [bandit.round for bandit in (plain, whole, sparing, batched)]
    require(counts == [150] * 4, f"150 observations were counted as {counts}")


def units_of_rewards_do_not_matter(policy: Policy[Any], make: type[Bandit]) -> None:
    """Rewards r and a·r + b, with a > 0, lead to the same choices, if the policy standardises them."""
    standardises = policy.standardises if has(policy, StandardisesRewards) else False
    if not standardises:
        return
    plain = _choices(policy, make, 1.0, 0.0)
    for scale, offset in ((100.0, 0.0), (0.01, 0.0), (1.0, -50.0), (1.0, 1000.0)):
        choices = _choices(policy, make, scale, offset)
        different = sum(a != b for a, b in zip(choices, plain, strict=True))
        require(
            different == 0,
            f"with rewards {scale:g} r + {offset:g} instead of r, {different} of {len(plain)} choices differ",
        )


def _choices(policy: Policy[Any], make: type[Bandit], scale: float, offset: float) -> list[Any]:
    """Return which arms are played for noisy rewards in other units."""
    bandit, choices = make(policy, arms=ARMS, features=FEATURES, seed=3), []
    for t in range(ROUNDS):
        (x,) = vectors(t)
        decision = bandit.decide(x)
        arm = int(decision.arm)
        reward = x[arm] + generator(5, Purpose.ENVIRONMENT, -1 - t).normal()
        bandit.learn(decision, float(scale * reward + offset))
        choices.append(arm)
    return choices


def repr_rebuilds_the_policy(policy: Policy[Any], make: type[Bandit]) -> None:
    """`repr` has every setting, and equal policies have equal hashes."""
    names = {name: getattr(rbmle, name) for name in rbmle.__all__} | _kinds(policy)
    rebuilt = eval(repr(policy), names)
    require(rebuilt == policy, f"repr makes {rebuilt!r} of {policy!r}")
    require(hash(rebuilt) == hash(policy), "equal policies have unequal hashes")
    same = content(train_bandit(rebuilt, make).state) == content(train_bandit(policy, make).state)
    require(same, "the policy that repr makes learns something else")


def _kinds(value: Any) -> dict[str, type]:
    """Return the classes of a policy and its parts, by their names."""
    names = getattr(value, "__dataclass_fields__", {})
    kinds = {type(value).__name__: type(value)}
    for name in names:
        kinds |= _kinds(getattr(value, name))
    return kinds


def _seed(seed: int) -> None:
    """Seed the global generators."""
    np.random.seed(seed)  # noqa: NPY002  # what is guarded
    random.seed(seed)


def _global() -> tuple[str, Any]:
    return repr(np.random.get_state()), random.getstate()  # noqa: NPY002  # what is guarded


EXTREME_ROUNDS = 40  # with the largest rewards
SHORTEST = 20  # characters of a message that says what is wrong, what was expected, and what to do


def it_learns(policy: Policy[Any], make: type[Bandit]) -> None:
    """Less than half the regret of uniform play, on a problem that a line separates."""
    ours, theirs = regret_of(policy, make), regret_of(Uniform(), make)
    require(ours < 0.5 * theirs, f"the regret is {ours:g}; that of uniform play is {theirs:g}")


def the_largest_rewards_leave_the_index_finite(policy: Policy[Any], make: type[Bandit]) -> None:
    """After the smallest and the largest valid rewards, in turn, it still decides."""
    bandit, rng = make(policy, arms=3, features=FEATURES, seed=0), np.random.default_rng(0)
    limits = limits_of(policy)
    for t in range(EXTREME_ROUNDS):
        decision = bandit.decide(rng.normal(size=FEATURES))
        bandit.learn(decision, limits[t % 3 > 0])
    indices = bandit.decide(np.ones(FEATURES)).indices
    require(bool(np.isfinite(indices).all()), f"after rewards of {limits} the index is {indices}")


def bad_input_is_refused_and_leaves_the_state_as_it_was(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Wrong shapes, NaN, infinity, invalid rewards and unknown arms: a message, and no change."""
    bandit = train_bandit(policy, make)
    attempts = _attempts(bandit)
    before, clocks = content(bandit.state), (bandit.round, bandit.decisions)
    for what, attempt in attempts.items():
        try:
            attempt()
        except RBMLEError as error:
            require(len(str(error)) > SHORTEST, f"{what}: the message {error} says too little")
        else:
            raise AssertionError(f"{what}: bad input was taken")
        require(content(bandit.state) == before, f"{what}: the state changed")
        require((bandit.round, bandit.decisions) == clocks, f"{what}: a round was counted")


def _attempts(bandit: Bandit) -> dict[str, Callable[[], Any]]:
    """Return calls with bad input, by name."""
    good = np.ones(FEATURES)
    decision = bandit.decide(good)
    return {
        "a feature too many": lambda: bandit.decide(np.ones(FEATURES + 1)),
        "a matrix for a vector": lambda: bandit.decide(np.ones((2, FEATURES))),
        "NaN in a context": lambda: bandit.decide([1.0, np.nan, 0.0, 0.0]),
        "infinity in a context": lambda: bandit.decide([1.0, np.inf, 0.0, 0.0]),
        "texts in a context": lambda: bandit.decide(["a", "b", "c", "d"]),
        "no eligible arm": lambda: bandit.decide(good, eligible=[]),
        "an arm listed twice": lambda: bandit.decide(good, eligible=[0, 0]),
        "an unknown eligible arm": lambda: bandit.decide(good, eligible=[77]),
        "a reward of NaN": lambda: bandit.learn(decision, np.nan),
        "an infinite reward": lambda: bandit.learn(decision, np.inf),
        "a reward of 1e20": lambda: bandit.learn(decision, 1e20),
        "a text as reward": lambda: bandit.learn(decision, "much"),  # type: ignore[arg-type]  # the point of it
        "an unknown arm": lambda: bandit.learn(good, arm=77, reward=1.0),
        "a reward without an arm": lambda: bandit.learn(good, reward=1.0),
        "NaN to learn from": lambda: bandit.learn([np.nan] * FEATURES, arm=0, reward=1.0),
        "a batch with an unknown arm": lambda: bandit.partial_fit(
            [good, good], [0, 77], [1.0, 1.0]
        ),
        "a batch with a reward of NaN": lambda: bandit.partial_fit(
            [good, good], [0, 1], [1.0, np.nan]
        ),
        "a batch of unequal lengths": lambda: bandit.partial_fit([good], [0, 1], [1.0, 0.0]),
    }


Promise = Callable[[Policy[Any], type[Bandit]], None]

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
    units_of_rewards_do_not_matter,
    repr_rebuilds_the_policy,
    it_learns,
    the_largest_rewards_leave_the_index_finite,
    bad_input_is_refused_and_leaves_the_state_as_it_was,
    a_new_arm_leaves_the_others_as_they_were,
    probabilities_are_a_distribution,
    a_separate_index_does_not_draw,
    who_ignores_contexts_reads_none,
)


def check_policy(
    policy: Policy[Any],
    *,
    expected_failures: Mapping[str, str] | None = None,
    bandit: type[Bandit] = Bandit,
) -> None:
    """Raise AssertionError, naming the promise, if a policy breaks one.

    `expected_failures` has the promises that the policy cannot keep, each with the reason; one that
    it keeps after all is an error too, and so is any exception but an RBMLEError.

    >>> from rbmle import LinUCB
    >>> check_policy(LinUCB(exploration=0.5))
    """
    for _, check in policy_checks(policy, expected_failures=expected_failures, bandit=bandit):
        check()


def policy_checks(
    policy: Policy[Any],
    *,
    expected_failures: Mapping[str, str] | None = None,
    bandit: type[Bandit] = Bandit,
) -> list[Check]:
    """Return each promise by name, and a function that checks it; pytest can be parametrised with them."""
    return checks_of(PROMISES, policy, bandit, expected_failures=expected_failures)
