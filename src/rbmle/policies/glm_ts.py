"""GLM-TS: Thompson sampling by Laplace's approximation, as Chapelle and Li (2011, "An empirical evaluation of
Thompson sampling") have it for logistic regression, with the whole of H in the place of its diagonal.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.generalised_linear import GLM
from rbmle.models.ridge import RidgeState, draw_linear
from rbmle.policies.base import ModelPolicy, check_not_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMTS(ModelPolicy[RidgeState]):
    """Index θ̃ᵀx with θ̃ drawn from N(θ̂, ν² H⁻¹), one draw for each block and round."""

    model: GLM = field(default_factory=GLM)
    exploration: float = 0.1  # ν

    title: ClassVar[str] = "GLM-TS"

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> GLM:
        """Return the generalised linear model."""
        return self.model

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimates of one draw."""
        (draw,) = self._draws(state, contexts, 1, rng)
        return draw

    def weigh(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        indices = self._draws(state, contexts, max(draws, 1), rng)
        return indices[0], shares(indices).mean(axis=0) if draws else None

    def _draws(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return a row of indices for each draw."""
        means, _, projections = self.model.estimates(state, contexts)
        z = rng.normal(size=(draws, *state.theta.shape))[:, contexts.rows.blocks]
        return draw_linear(means, projections, self.exploration, z)
