"""NeuralUCB (Zhou, Li, Gu 2020, "Neural contextual bandits with UCB-based exploration")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import Regression
from rbmle.models.tangent import Tangent, TangentState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralUCB(ModelPolicy[TangentState]):
    """Index f(x; θ̂) + γ √(gᵀ Z⁻¹ g/m)."""

    model: Regression = field(default_factory=Regression)
    precision: Precision = field(default_factory=Diagonal)
    exploration: float = 0.1  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Tangent:
        """Return the network with its precision."""
        return Tangent(model=self.model, precision=self.precision)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate and its confidence width."""
        f, width = self.learner.estimates(state, contexts)
        return f + self.exploration * width
