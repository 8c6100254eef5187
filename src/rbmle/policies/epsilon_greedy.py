"""Neural ε-greedy, and uniform play, the baseline that any policy must beat."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.choosing import shares
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Observation, Probabilities
from rbmle.models.regression import Regression, RegressionState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy(ModelPolicy[RegressionState]):
    """Index f(x; θ̂); the largest is played with probability 1 − ε, and otherwise an arm is drawn at random."""

    model: Regression = field(default_factory=Regression)
    epsilon: float = 0.05  # ε

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise SettingError(f"`epsilon` must be between 0 and 1, got {self.epsilon}")

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        return self.model.scores(state, contexts)

    def weigh(
        self, state: RegressionState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates, and 1 − ε for the largest, shared if several tie, plus ε/n for each."""
        estimates = self.model.scores(state, contexts)
        (greedy,) = shares(estimates[None])
        return estimates, (1 - self.epsilon) * greedy + self.epsilon / len(contexts)


@dataclass(slots=True, kw_only=True)
class UniformState:
    """The rounds learned."""

    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Index 0 for every arm, so that all tie."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> UniformState:
        return UniformState(round=0)

    def index(self, state: UniformState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return np.zeros(len(contexts))

    def update(self, state: UniformState, seen: Observation, rng: np.random.Generator) -> None:
        state.round += 1

    def grow(self, state: UniformState, blocks: int, rng: np.random.Generator) -> None:
        """Do nothing: nothing is remembered of arms."""

    def weigh(
        self, state: UniformState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return a tie, and 1/n for each arm."""
        n = len(contexts)
        return np.zeros(n), np.full(n, 1 / n)
