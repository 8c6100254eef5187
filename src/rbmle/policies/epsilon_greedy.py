"""Neural ε-greedy: the estimate, and with probability ε an arm at random."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.policy import frequencies
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.models.regression import RegressionState
from rbmle.policies.base import RegressionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy(RegressionPolicy):
    """Index f(x; θ̂) with probability 1 − ε, else 0 for every arm, so that all tie."""

    epsilon: float = 0.05  # ε

    def __post_init__(self) -> None:
        """Raise SettingError for an ε that is no probability."""
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"epsilon={self.epsilon} cannot be; it must be between 0 and 1")

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates, or a tie."""
        if rng.random() < self.epsilon:
            return np.zeros(len(contexts))
        return self.model.predict(state, contexts)

    def essentials(self, state: RegressionState) -> RegressionState:
        """Return the network."""
        return state.estimator

    def probabilities(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> Probabilities | None:
        """Return 1 − ε for the best, shared if several tie, and ε/n for each."""
        greedy = frequencies(self.model.predict(state, contexts)[None])
        return (1 - self.epsilon) * greedy + self.epsilon / len(contexts)
