"""What policies over a model share: all but their index."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic

import numpy as np

from rbmle.core.hints import Settings
from rbmle.core.policy import State
from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPolicy(Settings, ABC, Generic[State]):
    """A policy whose state is that of a model, and which learns as the model does."""

    @property
    @abstractmethod
    def learner(self) -> Model[State]:
        """Return the model."""

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.learner.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.learner.standardises

    @abstractmethod
    def index(self, state: State, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> State:
        """Return the state before any data."""
        return self.learner.init(blocks, features, rng)

    def predict(self, state: State, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.learner.predict(state, contexts)

    def update(self, state: State, seen: Observation, rng: np.random.Generator) -> None:
        """Learn from one observation."""
        self.learner.update_all(state, Batch.of(seen, rng))

    def update_all(self, state: State, batch: Batch) -> None:
        """Learn a batch."""
        self.learner.update_all(state, batch)

    def grow(self, state: State, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.learner.grow(state, blocks, rng)

    def frozen(self, state: State) -> State:
        """Return what the index reads, which stays as it is when the state learns."""
        return self.learner.frozen(state)
