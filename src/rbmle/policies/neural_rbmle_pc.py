"""NeuralRBMLE-PC: reward-biased maximum likelihood by parameter correction, Algorithm 2 of the paper."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.types import Contexts, Indices
from rbmle.models.tangent import TangentState
from rbmle.policies.base import TangentPolicy, check_not_negative
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLEPC(TangentPolicy):
    """Index f(x; θ̄_a) with θ̄_a = θ̂ + (α(t)/m) Z⁻¹ g(x; θ̂), Eq. (15), and α(t) = ν · growth(t)."""

    bias: float = 3e-5  # ν
    growth: Schedule = field(default_factory=Power)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for a bias below 0."""
        check_not_negative("bias", self.bias)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimate of each arm's own corrected parameters."""
        alpha = self.bias * self.growth(state.round + 1)
        return self.tangent.corrected(state, contexts, alpha)  # Eq. (15)
