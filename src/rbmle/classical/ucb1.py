"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002, "Finite-time analysis of the multiarmed bandit problem")."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rbmle.classical.base import ArmPolicy, Arms
from rbmle.core.numbers import check_not_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class UCB1(ArmPolicy):
    """Index p + γ √(2 log t / N); γ is 1 for rewards from 0 to 1, and σ for those with Gaussian noise."""

    exploration: float = 1.0  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the mean and its confidence width."""
        return totals / plays + self.exploration * np.sqrt(2 * math.log(t) / plays)
