"""NeuralUCB (Zhou, Li, Gu 2020, "Neural contextual bandits with UCB-based exploration")."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.policies.base import TangentPolicy, TangentState


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralUCB(TangentPolicy):
    """Index f(x; θ̂) + γ √(gᵀ Z⁻¹ g/m)."""

    exploration: float = 0.1  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        f, width = self.estimates(state, contexts)
        return f + self.exploration * width
