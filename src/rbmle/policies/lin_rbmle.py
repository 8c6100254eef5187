"""LinRBMLE and GLM-RBMLE (Hung, Hsieh, Liu, Kumar 2021, "Reward-biased maximum likelihood estimation for linear
stochastic bandits").
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_finite
from rbmle.core.types import Contexts, Indices
from rbmle.models.linear import GLM, Ridge, RidgeState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class LinRBMLE(ModelPolicy[RidgeState]):
    """Index θ̂ᵀx + ½ α(t) ‖x‖²_{V⁻¹}, with α(t) = ν · growth(t)."""

    model: Ridge = field(default_factory=Ridge)
    bias: float = 1.0  # ν; below 0: pessimism, for learning from logs
    # The paper has √t; t^¼ explores more at first and less later, see docs/project/decisions/0008-defaults.md.
    growth: Schedule = field(default_factory=lambda: Power(exponent=0.25))

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite("bias", self.bias)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        alpha = self.bias * self.growth(state.round + 1)
        mean, norm_squared = self.model.estimates(state, contexts)
        return mean + alpha / 2 * norm_squared


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMRBMLE(ModelPolicy[RidgeState]):
    """Index [max_θ { ℓ_λ(θ) + α(t) θᵀx } − max_θ ℓ_λ(θ)] / α(t), with α(t) = ν · growth(t).

    ℓ_λ is the model's quadratic form, so this is θ̂ᵀx + ½ α(t) ‖x‖²_{H⁻¹}; with the Gaussian likelihood it is
    LinRBMLE's. The paper weighs α(t) in the index by η(t) besides, which the proof needs.
    """

    model: GLM = field(default_factory=GLM)
    bias: float = 0.03  # ν; below 0: pessimism, for learning from logs
    growth: Schedule = field(default_factory=lambda: Power(exponent=0.25))

    title: ClassVar[str] = "GLM-RBMLE"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite("bias", self.bias)

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        alpha = self.bias * self.growth(state.round + 1)
        z, norm_squared = self.model.estimates(state, contexts)
        return z + alpha / 2 * norm_squared
