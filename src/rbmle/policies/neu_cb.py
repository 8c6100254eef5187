"""NeuSquareCB and NeuFastCB (Deb, Ban, Zuo, He, Banerjee 2024, "Contextual bandits with online neural
regression").
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.choosing import inverse_gaps
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.likelihoods import Bernoulli
from rbmle.models.regression import Regression, RegressionState
from rbmle.policies.base import ModelPolicy
from rbmle.policies.schedules import Power, Schedule

LEAST = 1e-9  # the smallest loss of the best arm, because gaps are divided by it


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuSquareCB(ModelPolicy[RegressionState]):
    """Play arm a with probability 1/(K + γ (ŷ_b − ŷ_a)), and the best arm b with the remaining probability.

    ŷ_a = b′(f(x_a; θ̂)) is the expected reward of one of K arms, and γ(t) = γ₀ · growth(K t). The weights are
    those of SquareCB (Foster, Rakhlin 2020, "Beyond UCB"); the regression is by squared loss.
    """

    model: Regression = field(default_factory=Regression)
    sharpness: float = 3.0  # γ₀
    growth: Schedule = field(default_factory=Power)  # √(K t)

    index_is_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("sharpness", self.sharpness)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        return self.model.expected(state, contexts)

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the expected rewards, and probabilities by the inverse of their gaps."""
        expected = self.model.expected(state, contexts)
        gamma = self.sharpness * self.growth(len(contexts) * (state.round + 1))
        (chances,) = inverse_gaps(expected[None], gamma)
        return expected, chances


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuFastCB(NeuSquareCB):
    """Play arm a with probability ŷ_b/(K ŷ_b + γ (ŷ_a − ŷ_b)), and the best arm b with the rest.

    ŷ_a = best − b′(f(x_a; θ̂)) is the expected loss of one of K arms, and γ(t) = γ₀ · growth(K t). The weights
    are those of FastCB (Foster, Krishnamurthy 2021, "Efficient first-order contextual bandits"), which explores
    less as the best arm's loss approaches zero; the regression is by logarithmic loss.
    """

    model: Regression = field(default_factory=lambda: Regression(likelihood=Bernoulli()))
    best: float = 1.0  # the largest reward that there can be

    def __post_init__(self) -> None:
        NeuSquareCB.__post_init__(self)
        if not abs(self.best) < float("inf"):
            raise SettingError(f"`best` must be a finite number, got {self.best}")

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the expected rewards, and probabilities by the inverse of their gaps over the least loss."""
        expected = self.model.expected(state, contexts)
        gamma = self.sharpness * self.growth(len(contexts) * (state.round + 1))
        least = max(self.best - float(expected.max()), LEAST)  # ŷ_b
        (chances,) = inverse_gaps(expected[None], gamma / least)
        return expected, chances
