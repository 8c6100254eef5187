"""Neural ε-greedy: the estimate, and with probability ε an arm at random."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy(ModelPolicy[RegressionState]):
    """Index f(x; θ̂), which is followed with probability 1 − ε; else an arm is drawn at random."""

    model: Regression = field(default_factory=Regression)
    epsilon: float = 0.05  # ε

    def __post_init__(self) -> None:
        """Raise SettingError for an ε that is no probability."""
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"`epsilon` must be between 0 and 1, got {self.epsilon}")

    @property
    def learner(self) -> Regression:
        """Return the network."""
        return self.model

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates."""
        return self.model.scores(state, contexts)

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates, and 1 − ε for the largest, shared if several tie, plus ε/n for each."""
        estimates = self.model.scores(state, contexts)
        (greedy,) = shares(estimates[None])
        return estimates, (1 - self.epsilon) * greedy + self.epsilon / len(contexts)
