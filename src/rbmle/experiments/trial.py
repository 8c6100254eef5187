"""A trial: a policy plays an environment."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rbmle.core.bandit import Bandit
from rbmle.core.policy import Policy
from rbmle.environments.base import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All that determines a run."""

    policy: Policy[Any]
    environment: Environment
    horizon: int
    seed: int


def play(trial: Trial) -> Iterator[float]:
    """Yield the regret of each round: the best mean less the mean of the arm that was played."""
    world = trial.environment
    bandit = Bandit(trial.policy, arms=world.arms, features=world.features, seed=trial.seed)
    for t in range(trial.horizon):
        offer = world.round(t, trial.seed)
        decision = bandit.decide(offer.x)
        arm = int(decision.arm)
        bandit.learn(decision, float(offer.rewards[arm]))
        yield float(offer.means.max() - offer.means[arm])
