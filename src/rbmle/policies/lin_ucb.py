"""LinUCB (Li, Chu, Langford, Schapire 2010, "A contextual-bandit approach to personalized news")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.ridge import Ridge, RidgeState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LinUCB(ModelPolicy[RidgeState]):
    """Index θ̂ᵀx + γ ‖x‖_{V⁻¹}."""

    model: Ridge = field(default_factory=Ridge)
    exploration: float = 1.0  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Ridge:
        """Return the linear model."""
        return self.model

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate and its confidence width."""
        mean, norm_squared = self.model.estimates(state, contexts)
        return mean + self.exploration * np.sqrt(norm_squared)
