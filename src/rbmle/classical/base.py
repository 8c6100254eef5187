"""What policies without contexts share: they know an arm by how often it was played, and by its mean reward."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Contexts, Indices, Observation, Probabilities
from rbmle.core.weighing import shares

UNPLAYED = 1e100  # the index of an arm that was never played: all are played once

# One number for each arm, in one run or in many at once.
Arms = Float[np.ndarray, "*runs arms"]


@dataclass(slots=True, kw_only=True)
class ArmState:
    """How often each arm was played, and the sum of its rewards."""

    plays: Float[np.ndarray, " arms"]  # N
    totals: Float[np.ndarray, " arms"]  # S
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPolicy(ABC):
    """A policy that a bandit can hold as any other: an arm is its block, and contexts tell nothing."""

    ignores_contexts: ClassVar[bool] = True

    @abstractmethod
    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm in round t = 1, 2, …, if it was played; `plays` are 1 or more."""

    def of_arms(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm, of those that were never played too."""
        return np.where(plays > 0, self.of_played(np.maximum(plays, 1.0), totals, t, rng), UNPLAYED)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (-math.inf, math.inf)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> ArmState:
        """Return the state before any data."""
        return ArmState(plays=np.zeros(blocks), totals=np.zeros(blocks), round=0)

    def index(self, state: ArmState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the index of each arm that is offered."""
        indices = self.of_arms(state.plays, state.totals, state.round + 1, rng)
        return indices[contexts.rows.blocks]

    def predict(self, state: ArmState, contexts: Contexts) -> Indices:
        """Return the mean reward of each arm that is offered; 0 if it was never played."""
        return (state.totals / np.maximum(state.plays, 1.0))[contexts.rows.blocks]

    def update(self, state: ArmState, seen: Observation, rng: np.random.Generator) -> None:
        """Count the play, and add its reward."""
        (block,) = seen.context.rows.blocks
        state.plays[block] += 1
        state.totals[block] += seen.reward
        state.round += 1

    def grow(self, state: ArmState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more arms."""
        more = blocks - len(state.plays)
        state.plays, state.totals = np.pad(state.plays, (0, more)), np.pad(state.totals, (0, more))


def weigh_draws(
    policy: ArmPolicy, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
) -> tuple[Indices, Probabilities | None]:
    """Return one draw of a random index, and how often each arm comes first in so many draws."""
    indices = np.stack([policy.index(state, contexts, rng) for _ in range(max(draws, 1))])
    return indices[0], shares(indices).mean(axis=0) if draws else None
