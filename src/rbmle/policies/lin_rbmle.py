"""LinRBMLE (Hung, Hsieh, Liu, Kumar 2021, "Reward-biased maximum likelihood estimation for linear
stochastic bandits").
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_finite
from rbmle.core.types import Contexts, Indices
from rbmle.models.ridge import Ridge, RidgeState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class LinRBMLE(ModelPolicy[RidgeState]):
    """Index θ̂ᵀx + ½ α(t) ‖x‖²_{V⁻¹}, with α(t) = ν · growth(t)."""

    model: Ridge = field(default_factory=Ridge)
    bias: float = 1.0  # ν; below 0: pessimism, for learning from logs
    # The paper has √t; t^¼ explores more at first and less later, see docs/decisions/0008-defaults.md.
    growth: Schedule = field(default_factory=lambda: Power(exponent=0.25))

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError unless the bias is a finite number."""
        check_finite("bias", self.bias)

    @property
    def learner(self) -> Ridge:
        """Return the linear model."""
        return self.model

    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate and its bias."""
        alpha = self.bias * self.growth(state.round + 1)
        mean, norm_squared = self.model.estimates(state, contexts)
        return mean + alpha / 2 * norm_squared
