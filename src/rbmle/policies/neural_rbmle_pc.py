"""NeuralRBMLE-PC: reward-biased maximum likelihood by parameter correction, Algorithm 2 of the paper."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from rbmle.core.checks import check_finite
from rbmle.core.types import Contexts, Indices
from rbmle.models.regression import printed_model
from rbmle.policies.base import TangentPolicy, TangentState
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLEPC(TangentPolicy):
    """Index f(x; θ̄_a) with θ̄_a = θ̂ + (α(t)/m) Z⁻¹ g(x; θ̂), Eq. (15), and α(t) = ν · growth(t)."""

    bias: float = 1e-3  # ν; below 0: pessimism, for learning from logs
    growth: Schedule = field(default_factory=Power)

    title: ClassVar[str] = "NeuralRBMLE-PC"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_finite("bias", self.bias)

    @staticmethod
    def as_printed(
        *, bias: float = 0.001, objective: Literal["sum", "mean"] = "sum", warm: bool = False
    ) -> "NeuralRBMLEPC":
        """Return Algorithm 2 with the constants of the appendix, Z by its diagonal; ν is one of its grid.

        The defaults read the paper literally: steps on ℓ_λ, from θ₀. See `printed_model` for the other reading.
        """
        return NeuralRBMLEPC(model=printed_model(objective=objective, warm=warm), bias=bias)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        alpha = self.bias * self.growth(state.round + 1)
        return self.corrected(state, contexts, alpha)  # Eq. (15)
