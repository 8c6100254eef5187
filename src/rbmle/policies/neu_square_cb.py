"""NeuSquareCB (Deb, Ban, Zuo, He, Banerjee 2024, "Contextual bandits with online neural regression")."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import inverse_gaps
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuSquareCB(ModelPolicy[RegressionState]):
    """Play arm a with probability 1/(K + γ (ŷ_b − ŷ_a)), and the best arm b with what is left.

    ŷ_a = b′(f(x_a; θ̂)) is the expected reward of one of K arms, and γ(t) = γ₀ · growth(K t). The weights are
    those of SquareCB (Foster, Rakhlin 2020, "Beyond UCB"); the regression is by squared loss.
    """

    model: Regression = field(default_factory=Regression)
    sharpness: float = 3.0  # γ₀
    growth: Schedule = field(default_factory=Power)  # √(K t)

    def __post_init__(self) -> None:
        """Raise SettingError for a sharpness below 0."""
        check_not_negative("sharpness", self.sharpness)

    @property
    def learner(self) -> Regression:
        """Return the network."""
        return self.model

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the expected rewards."""
        return self.model.expected(state, contexts)

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the expected rewards, and probabilities by the inverse of their gaps."""
        expected = self.model.expected(state, contexts)
        gamma = self.sharpness * self.growth(len(contexts) * (state.round + 1))
        (chances,) = inverse_gaps(expected[None], gamma)
        return expected, chances
