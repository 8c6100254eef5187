"""Uniform play: the control that any policy must beat."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.types import Contexts, Indices, Observation, Probabilities


@dataclass(slots=True, kw_only=True)
class UniformState:
    """The rounds learned."""

    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Index 0 for every arm, so that all tie."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> UniformState:
        """Return the state before any data."""
        return UniformState(round=0)

    def index(self, state: UniformState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return a tie."""
        return np.zeros(len(contexts))

    def update(self, state: UniformState, seen: Observation, rng: np.random.Generator) -> None:
        """Count the round."""
        state.round += 1

    def grow(self, state: UniformState, blocks: int, rng: np.random.Generator) -> None:
        """Do nothing: no arm is remembered."""

    def weigh(
        self, state: UniformState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return a tie, and 1/n for each arm."""
        n = len(contexts)
        return np.zeros(n), np.full(n, 1 / n)
