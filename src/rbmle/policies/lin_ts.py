"""LinTS (Agrawal, Goyal 2013, "Thompson sampling for contextual bandits with linear payoffs") and GLM-TS.

GLM-TS samples by Laplace's approximation, as Chapelle and Li (2011, "An empirical evaluation of Thompson
sampling") do for logistic regression, with all of H instead of its diagonal.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.choosing import shares
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.models.linear import GLM, Ridge, RidgeState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSampling(ModelPolicy[RidgeState]):
    """Thompson sampling over a linear model: index θ̃ᵀx, with one draw of θ̃ for each block and round."""

    model: Ridge | GLM
    exploration: float  # ν

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        (draw,) = self.model.draws(state, contexts, self.exploration, 1, rng)
        return draw

    def weigh(
        self, state: RidgeState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        count = max(draws, 1)
        indices = self.model.draws(state, contexts, self.exploration, count, rng)
        return indices[0], shares(indices).mean(axis=0) if draws else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinTS(LinearSampling):
    """Index θ̃ᵀx with θ̃ drawn from N(θ̂, ν² V⁻¹), one draw for each block and round."""

    model: Ridge = field(default_factory=Ridge)
    exploration: float = 0.2  # ν


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMTS(LinearSampling):
    """Index θ̃ᵀx with θ̃ drawn from N(θ̂, ν² H⁻¹), one draw for each block and round."""

    model: GLM = field(default_factory=GLM)
    exploration: float = 0.1  # ν

    title: ClassVar[str] = "GLM-TS"
