"""KL-UCB (Garivier, Cappé 2011, "The KL-UCB algorithm for bounded stochastic bandits and beyond")."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.classical.base import ArmPolicy, Arms
from rbmle.core.numbers import check_not_negative
from rbmle.engine.compiled import scalar
from rbmle.engine.exponential_family import divergence_bounds
from rbmle.likelihoods import Bernoulli, Likelihood
from rbmle.likelihoods.base import rewards_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KLUCB(ArmPolicy):
    """Index max { q : N KL(p ‖ q) ≤ γ log t }, with the divergence of the likelihood's family.

    The level is log t, as the authors advise for use; their proof has log t + 3 log log t.
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    exploration: float = 1.0  # γ: σ² for Gaussian rewards with the deviation σ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the upper bound of each arm's mean."""
        b, mean = scalar(self.likelihood.b), scalar(self.likelihood.mean)
        level, bounds = self.exploration * math.log(t), np.empty(plays.size)
        divergence_bounds(b, mean, plays.ravel(), totals.ravel(), level, bounds)
        return bounds.reshape(plays.shape)
