"""NeuralUCB (Zhou, Li, Gu 2020, "Neural contextual bandits with UCB-based exploration")."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rbmle.core.types import Contexts, Indices
from rbmle.models.tangent import TangentState
from rbmle.policies.base import TangentPolicy, check_not_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralUCB(TangentPolicy):
    """Index f(x; θ̂) + γ √(gᵀ Z⁻¹ g/m)."""

    exploration: float = 0.01  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate and its confidence width."""
        f, width = self.tangent.estimates(state, contexts)
        return f + self.exploration * width
