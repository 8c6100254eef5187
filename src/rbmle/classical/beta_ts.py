"""Thompson sampling with Beta posteriors (Agrawal, Goyal 2012, "Analysis of Thompson sampling")."""

from dataclasses import dataclass

import numpy as np

from rbmle.classical.base import ArmPolicy, Arms, ArmState, weigh_draws
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaTS(ArmPolicy):
    """Index drawn from Beta(c + S, c + N − S): the posterior of an arm that pays S ones in N plays."""

    prior: float = 1.0  # c: uniform

    def __post_init__(self) -> None:
        """Raise SettingError unless the prior is a finite number above 0."""
        if not 0 < self.prior < float("inf"):
            raise SettingError(f"`prior` must be a finite number above 0, got {self.prior}")

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (0.0, 1.0)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return a draw of each arm's mean."""
        return rng.beta(self.prior + totals, self.prior + plays - totals)

    def weigh(
        self, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        return weigh_draws(self, state, contexts, draws, rng)
