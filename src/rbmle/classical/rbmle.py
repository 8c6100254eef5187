"""RBMLE without contexts (Liu, Hsieh, Hung, Bhattacharya, Kumar 2020, "Exploration through reward biasing")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.classical.base import UNPLAYED, ArmPolicy, Arms
from rbmle.core.errors import SettingError
from rbmle.engine.compiled import scalar
from rbmle.engine.exponential_family import biased_maxima
from rbmle.likelihoods import Bernoulli, Likelihood
from rbmle.likelihoods.base import rewards_of
from rbmle.policies.schedules import Logarithm, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class RBMLE(ArmPolicy):
    """Index [max_z { N (p z − b(z)) + α z } − max_z { N (p z − b(z)) }] / α, with α(t) = ν · growth(t).

    p is the mean of N rewards, whose log-likelihood for an arm with the mean b′(z) is N (p z − b(z)). The first
    maximum is where b′(z) = p + α/N: with b* the convex conjugate of b, the index is N [b*(p + α/N) − b*(p)]/α.
    That is p + α/(2N) for Gaussian rewards; b*(q) = q log q + (1 − q) log(1 − q) for Bernoulli ones, and
    docs/classical.md has what happens for q ≥ 1. With a bias below 0, arms that were never played come last.
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    bias: float = 1.0  # ν
    growth: Schedule = field(default_factory=Logarithm)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError unless the bias is a finite number other than 0."""
        if not 0 < abs(self.bias) < float("inf"):
            raise SettingError(
                f"`bias` must be a finite number other than 0, got {self.bias}; a tiny one is greedy"
            )

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    def of_arms(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm, of those that were never played too."""
        played = self.of_played(np.maximum(plays, 1.0), totals, t, rng)
        return np.where(plays > 0, played, np.copysign(UNPLAYED, self.bias))

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm that was played."""
        alpha = self.bias * self.growth(t)
        b, mean = scalar(self.likelihood.b), scalar(self.likelihood.mean)
        maxima = np.empty(plays.size)
        biased_maxima(b, mean, plays.ravel(), totals.ravel(), alpha, maxima)
        return maxima.reshape(plays.shape) / alpha
