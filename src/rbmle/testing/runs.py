"""What the run of a policy promises: it is a function of its seed, and can be stopped and resumed."""

import copy
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import rbmle
from rbmle.core.bandit import Bandit
from rbmle.core.contexts import disjoint
from rbmle.core.policy import Policy, StandardisesRewards, has
from rbmle.core.randomness import Purpose, generator
from rbmle.testing.playing import (
    ARMS,
    FEATURES,
    ROUNDS,
    content,
    index_of,
    learn_in_batches,
    play,
    require,
    trained,
    vectors,
)


def same_seed_same_run(policy: Policy[Any], make: type[Bandit]) -> None:
    """Bit for bit."""
    first, second = trained(policy, make), trained(policy, make)
    require(content(first.state) == content(second.state), "two runs of one seed differ")
    np.testing.assert_array_equal(index_of(policy, first.state), index_of(policy, second.state))


def global_random_state_is_untouched(policy: Policy[Any], make: type[Bandit]) -> None:
    """Neither read nor written: a run does not depend on it."""
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002  # what is guarded
    try:
        _seed(1)
        before = _global()
        first = trained(policy, make)
        require(_global() == before, "a run drew from a global generator; draw from `rng`")
        _seed(2)
        second = trained(policy, make)
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
    unbroken = trained(policy, make, rounds=ROUNDS)
    broken = trained(policy, make, rounds=ROUNDS // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bandit.rbmle"
        broken.save(path)
        resumed = Bandit.load(path, policy=policy)
    play(resumed, range(ROUNDS // 2, ROUNDS))
    require(content(resumed.state) == content(unbroken.state), "the resumed run went another way")
    np.testing.assert_array_equal(index_of(policy, resumed.state), index_of(policy, unbroken.state))


def a_copied_state_goes_its_own_way(policy: Policy[Any], make: type[Bandit]) -> None:
    """A state has all that was learned, and shares nothing with its copy."""
    bandit = trained(policy, make)
    twin = copy.deepcopy(bandit)
    before = content(twin.state)
    play(bandit, range(ROUNDS, ROUNDS + 5))
    require(content(twin.state) == before, "a copy changed with its original")
    play(twin, range(ROUNDS, ROUNDS + 5))
    require(content(twin.state) == content(bandit.state), "a copy did not learn the same")


def a_snapshot_decides_as_its_original(policy: Policy[Any], make: type[Bandit]) -> None:
    """Now, and after the original has learned more."""
    bandit = trained(policy, make)
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
    """`repr` is the whole truth, and equal policies have equal hashes."""
    names = {name: getattr(rbmle, name) for name in rbmle.__all__} | _kinds(policy)
    rebuilt = eval(repr(policy), names)
    require(rebuilt == policy, f"repr makes {rebuilt!r} of {policy!r}")
    require(hash(rebuilt) == hash(policy), "equal policies have unequal hashes")
    same = content(trained(rebuilt, make).state) == content(trained(policy, make).state)
    require(same, "the policy that repr makes learns something else")


def _kinds(value: Any) -> dict[str, type]:
    """Return the classes of a policy and its parts, by their names."""
    names = getattr(value, "__dataclass_fields__", {})
    found = {type(value).__name__: type(value)}
    for name in names:
        found |= _kinds(getattr(value, name))
    return found


def _seed(seed: int) -> None:
    """Seed the global generators."""
    np.random.seed(seed)  # noqa: NPY002  # what is guarded
    random.seed(seed)


def _global() -> tuple[str, Any]:
    """Return the state of the global generators."""
    return repr(np.random.get_state()), random.getstate()  # noqa: NPY002  # what is guarded
