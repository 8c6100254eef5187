"""What Thompson sampling over a linear model shares: draws of θ, and how often each arm comes first."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.generalised_linear import GLM
from rbmle.models.ridge import Ridge, RidgeState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSampling(ModelPolicy[RidgeState]):
    """Index θ̃ᵀx, with one draw of θ̃ around θ̂ for each block and round."""

    model: Ridge | GLM
    exploration: float  # ν

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Ridge | GLM:
        """Return the linear model."""
        return self.model

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimates of one draw."""
        (draw,) = self.learner.draws(state, contexts, self.exploration, 1, rng)
        return draw

    def weigh(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        count = max(draws, 1)
        indices = self.learner.draws(state, contexts, self.exploration, count, rng)
        return indices[0], shares(indices).mean(axis=0) if draws else None
