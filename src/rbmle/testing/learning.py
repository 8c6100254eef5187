"""What learning promises: the regret falls, and what cannot be learned leaves no trace."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy, limits_of
from rbmle.policies.uniform import Uniform
from rbmle.testing.playing import FEATURES, content, regret_of, require, trained

ROUNDS = 40  # with the largest rewards
SHORTEST = 20  # characters of a message that says what is wrong, what was expected, and what to do


def it_learns(policy: Policy[Any], make: type[Bandit]) -> None:
    """Less than half the regret of uniform play, on a problem that a line separates."""
    ours, theirs = regret_of(policy, make), regret_of(Uniform(), make)
    require(ours < 0.5 * theirs, f"the regret is {ours:g}; that of uniform play is {theirs:g}")


def the_largest_rewards_leave_the_index_finite(policy: Policy[Any], make: type[Bandit]) -> None:
    """The smallest and the largest reward that it takes, in turn: it goes on to decide."""
    bandit, rng = make(policy, arms=3, features=FEATURES, seed=0), np.random.default_rng(0)
    limits = limits_of(policy)
    for t in range(ROUNDS):
        decision = bandit.decide(rng.normal(size=FEATURES))
        bandit.learn(decision, limits[t % 3 > 0])
    indices = bandit.decide(np.ones(FEATURES)).indices
    require(bool(np.isfinite(indices).all()), f"after rewards of {limits} the index is {indices}")


def bad_input_is_refused_and_leaves_the_state_as_it_was(
    policy: Policy[Any], make: type[Bandit]
) -> None:
    """Wrong shapes, NaN, infinity, rewards and arms that cannot be: a message, and no trace."""
    bandit = trained(policy, make)
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
    """Return what must be refused, by name."""
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
        "an eligible arm that is none": lambda: bandit.decide(good, eligible=[77]),
        "a reward of NaN": lambda: bandit.learn(decision, np.nan),
        "an infinite reward": lambda: bandit.learn(decision, np.inf),
        "a reward of 1e20": lambda: bandit.learn(decision, 1e20),
        "a text as reward": lambda: bandit.learn(decision, "much"),  # type: ignore[arg-type]  # the point of it
        "an arm that is none": lambda: bandit.learn(good, arm=77, reward=1.0),
        "a reward without an arm": lambda: bandit.learn(good, reward=1.0),
        "NaN to learn from": lambda: bandit.learn([np.nan] * FEATURES, arm=0, reward=1.0),
        "a batch with an arm that is none": lambda: bandit.partial_fit(
            [good, good], [0, 77], [1.0, 1.0]
        ),
        "a batch with a reward of NaN": lambda: bandit.partial_fit(
            [good, good], [0, 1], [1.0, np.nan]
        ),
        "a batch of unequal lengths": lambda: bandit.partial_fit([good], [0, 1], [1.0, 0.0]),
    }
