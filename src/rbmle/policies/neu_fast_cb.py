"""NeuFastCB (Deb, Ban, Zuo, He, Banerjee 2024, "Contextual bandits with online neural regression")."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import inverse_gaps
from rbmle.likelihoods.bernoulli import Bernoulli
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule

LEAST = 1e-9  # loss that the best arm is taken to have, so that a division by it is one


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuFastCB(ModelPolicy[RegressionState]):
    """Play arm a with probability ŷ_b/(K ŷ_b + γ (ŷ_a − ŷ_b)), and the best arm b with what is left.

    ŷ_a = best − b′(f(x_a; θ̂)) is the expected loss of one of K arms, and γ(t) = γ₀ · growth(K t). The weights
    are those of FastCB (Foster, Krishnamurthy 2021, "Efficient first-order contextual bandits"), which explores
    the less, the less is lost by the best arm; the regression is by logarithmic loss.
    """

    model: Regression = field(default_factory=lambda: Regression(likelihood=Bernoulli()))
    sharpness: float = 3.0  # γ₀
    growth: Schedule = field(default_factory=Power)  # √(K t)
    best: float = 1.0  # the largest reward that there can be

    def __post_init__(self) -> None:
        """Raise SettingError for a sharpness below 0, or a best reward that is no number."""
        check_not_negative("sharpness", self.sharpness)
        if not abs(self.best) < float("inf"):
            raise SettingError(f"`best` must be a finite number, got {self.best}")

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
        """Return the expected rewards, and probabilities by the inverse of their gaps over the least loss."""
        expected = self.model.expected(state, contexts)
        gamma = self.sharpness * self.growth(len(contexts) * (state.round + 1))
        least = max(self.best - float(expected.max()), LEAST)  # ŷ_b
        (chances,) = inverse_gaps(expected[None], gamma / least)
        return expected, chances
