"""Thompson sampling with Gaussian posteriors (Agrawal, Goyal 2013, "Further optimal regret bounds")."""

from dataclasses import dataclass

import numpy as np

from rbmle.classical.base import ArmPolicy, Arms, ArmState, weigh_draws
from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices, Probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianTS(ArmPolicy):
    """Index drawn from N(p, σ²/N): the posterior under a flat prior, for noise of the deviation σ."""

    exploration: float = 1.0  # σ

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return a draw of each arm's mean."""
        return totals / plays + self.exploration / np.sqrt(plays) * rng.normal(size=plays.shape)

    def weigh(
        self, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        return weigh_draws(self, state, contexts, draws, rng)
