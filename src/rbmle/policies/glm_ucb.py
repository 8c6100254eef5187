"""GLM-UCB (Filippi, Cappé, Garivier, Szepesvári 2010, "Parametric bandits: the generalized linear case")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.generalised_linear import GLM
from rbmle.models.ridge import RidgeState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMUCB(ModelPolicy[RidgeState]):
    """Index b′(θ̂ᵀx) + γ ‖x‖_{H⁻¹}: the confidence width is that of the reward, not of θᵀx.

    The paper has Σ xxᵀ in the place of H, which weighs each xxᵀ by its curvature.
    """

    model: GLM = field(default_factory=GLM)
    exploration: float = 0.01  # γ

    title: ClassVar[str] = "GLM-UCB"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> GLM:
        """Return the generalised linear model."""
        return self.model

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the expected reward and its confidence width."""
        z, norm_squared = self.model.estimates(state, contexts)
        expected = np.array([self.model.likelihood.mean(each) for each in z.tolist()])
        return expected + self.exploration * np.sqrt(norm_squared)
