"""Neural ε-greedy: the estimate, and with probability ε an arm at random."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.trees import copied
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.regression import RegressionState
from rbmle.policies.base import RegressionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy(RegressionPolicy):
    """Index f(x; θ̂), which is followed with probability 1 − ε; else an arm is drawn at random."""

    epsilon: float = 0.05  # ε

    def __post_init__(self) -> None:
        """Raise SettingError for an ε that is no probability."""
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"epsilon={self.epsilon} cannot be; it must be between 0 and 1")

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates."""
        return self.model.predict(state, contexts)

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates, and 1 − ε for the largest, shared if several tie, plus ε/n for each."""
        estimates = self.model.predict(state, contexts)
        (greedy,) = shares(estimates[None])
        return estimates, (1 - self.epsilon) * greedy + self.epsilon / len(contexts)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return a copy of the network."""
        return copied(state.estimator)
