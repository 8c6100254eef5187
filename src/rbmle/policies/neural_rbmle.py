"""NeuralRBMLE: the prototypic algorithm of the paper's section 4.1, which GA and PC approximate."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.arm_maximum import ArmMaximum
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralRBMLE(ModelPolicy[RegressionState]):
    """Index f(x_a; θ†_t), with θ†_t = argmax_θ {ℓ_λ(F_t; θ) + α(t) max_a f(x_a; θ)}, Eq. (11).

    The maximum is over arms and θ at once, so θ†_t is the best of the arms' own maximisers θ†_a, Eq. (12), each
    of which is found by ascent on the whole history from θ̂. By Lemma E.1 the arm that is played is that of the
    largest index ℓ_λ(F_t; θ†_a) + α(t) f(x_a; θ†_a), Eq. (13). A decision costs `steps` passes over the history
    for each arm: it is a reference for small problems.
    """

    model: Regression = field(default_factory=Regression)
    bias: float = 0.01  # ν
    growth: Schedule = field(default_factory=Power)
    steps: int = 20  # of the ascent of each arm, at most

    title: ClassVar[str] = "NeuralRBMLE"

    def __post_init__(self) -> None:
        """Raise SettingError for a bias below 0, or for no steps."""
        check_not_negative("bias", self.bias)
        ArmMaximum(model=self.model, steps=self.steps)

    @property
    def learner(self) -> ArmMaximum:
        """Return the network with the maximiser of each arm."""
        return ArmMaximum(model=self.model, steps=self.steps)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates of the one biased estimator."""
        alpha = self.bias * self.growth(state.round + 1)
        likelihoods, values = self.learner.maxima(state, contexts, alpha)
        best = np.argmax(likelihoods + alpha * values.max(axis=1))  # Eq. (11)
        return values[best]
