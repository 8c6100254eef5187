"""LinUCB (Li, Chu, Langford, Schapire 2010, "A contextual-bandit approach to personalized news") and GLM-UCB
(Filippi, Cappé, Garivier, Szepesvári 2010, "Parametric bandits: the generalized linear case").
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.linear import GLM, Ridge, RidgeState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LinUCB(ModelPolicy[RidgeState]):
    """Index θ̂ᵀx + γ ‖x‖_{V⁻¹}."""

    model: Ridge = field(default_factory=Ridge)
    exploration: float = 1.0  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        mean, norm_squared = self.model.estimates(state, contexts)
        return mean + self.exploration * np.sqrt(norm_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMUCB(ModelPolicy[RidgeState]):
    """Index b′(θ̂ᵀx) + γ ‖x‖_{H⁻¹}: the confidence width is that of the reward, not of θᵀx.

    The paper has Σ xxᵀ instead of H, which weighs each xxᵀ by its curvature.
    """

    model: GLM = field(default_factory=GLM)
    exploration: float = 0.01  # γ

    title: ClassVar[str] = "GLM-UCB"
    is_separate: ClassVar[bool] = True
    index_is_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        z, norm_squared = self.model.estimates(state, contexts)
        expected = np.array([self.model.likelihood.mean(value) for value in z.tolist()])
        return expected + self.exploration * np.sqrt(norm_squared)
