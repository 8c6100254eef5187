"""DeepFPL: follow the perturbed leader, the neural variant of Kveton et al. (2020)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.trees import copied
from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.models.regression import Regression, RegressionState
from rbmle.models.training import View
from rbmle.policies.base import check_not_negative


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepFPL:
    """Index f(x; θ) of a network fitted to r_s + ν ε_{t,s}, with ε_{t,s} ~ N(0, 1).

    All rewards of the history are perturbed anew in each round: one draw for a past sample and a
    round, however often training visits it. With a draw for each visit, noise would average out.
    """

    exploration: float = 0.1  # ν
    model: Regression = field(default_factory=Regression)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the state before any data."""
        return self.model.init(blocks, features, rng)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates of the perturbed leader."""
        return self.model.predict(state, contexts)

    def update(self, state: RegressionState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit the network to rewards that are perturbed anew."""
        self.model.update(state, seen, rng, View(noise=self.exploration))

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Learn a batch."""
        self.model.update_all(state, batch, View(noise=self.exploration))

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return a copy of the network."""
        return copied(state.estimator)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)
