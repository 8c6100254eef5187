"""Which arms to play: probabilities with a floor, and what is drawn from them, in one round or in many."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import DivergenceError
from rbmle.core.policy import Policy, choose, frequencies, largest
from rbmle.core.randomness import Purpose, generator, uniform
from rbmle.core.types import Chosen, Contexts, Indices, Probabilities


@dataclass(frozen=True, slots=True)
class Chooser:
    """A policy at one of its states; what it chooses for an id is always the same."""

    policy: Policy[Any]
    state: Any
    seed: int
    draws: int  # that estimate the probabilities of a policy whose index is random

    def weigh(self, contexts: Contexts, id: str, floor: float) -> Chosen:
        """Return which of some contexts to play, and what that was drawn from."""
        rng = generator(self.seed, Purpose.INDEX, id)
        indices = self.policy.index(self.state, contexts, rng)
        _check_finite(indices)
        chances = self._chances(contexts, indices, rng, floor)
        place = choose(indices, rng) if chances is None else _draw(chances, rng)
        return Chosen(place, indices, chances)

    def weigh_all(
        self, contexts: Contexts, sizes: Sequence[int], ids: Sequence[str], floor: float
    ) -> list[Chosen]:
        """Return what to play in some rounds, whose contexts stand in a row, `sizes` of each."""
        ends = np.cumsum(sizes)
        if not getattr(self.policy, "is_separate", False):
            parts = zip((ends - sizes).tolist(), ends.tolist(), ids, strict=True)
            return [self.weigh(contexts.part(a, b), id, floor) for a, b, id in parts]
        every = self.policy.index(self.state, contexts, generator(self.seed, Purpose.INDEX, ""))
        _check_finite(every)
        found: dict[int, Chosen] = {}
        for size in set(sizes):
            rounds = [i for i, n in enumerate(sizes) if n == size]
            indices = every[(ends[rounds] - size)[:, None] + np.arange(size)]
            chances = chances_of(indices, floor)
            uniforms = np.array([uniform(self.seed, Purpose.CHOOSE, ids[i]) for i in rounds])
            places = drawn(chances, uniforms).tolist()
            found |= dict(zip(rounds, map(Chosen, places, indices, chances), strict=True))
        return [found[i] for i in range(len(ids))]

    def _chances(
        self, contexts: Contexts, indices: Indices, rng: np.random.Generator, floor: float
    ) -> Probabilities | None:
        """Return the probabilities from which the arm is drawn, or None if there are none."""
        chances = self.policy.probabilities(self.state, contexts, self.draws, rng)
        if floor == 0:
            return chances
        least = floor / len(indices)
        if chances is None and (best := largest(indices)) is not None:
            chances = np.empty(len(indices))
            chances.fill(least)
            chances[best] = (1 - floor) + least
            return chances
        if chances is None:
            chances = frequencies(indices[None])
        return (1 - floor) * chances + least


def chances_of(
    indices: Float[np.ndarray, "rounds arms"], floor: float
) -> Float[np.ndarray, "rounds arms"]:
    """Return (1 − ε) for the largest index of a round, in equal parts if there are several, and ε/n for all.

    >>> chances_of(np.array([[0.1, 0.7, 0.3, 0.7]]), 0.2).round(2).tolist()
    [[0.05, 0.45, 0.05, 0.45]]
    """
    wins = indices == indices.max(axis=1, keepdims=True)
    return (1 - floor) * (wins / wins.sum(axis=1, keepdims=True)) + floor / indices.shape[1]


def drawn(
    chances: Float[np.ndarray, "rounds arms"], uniforms: Float[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"]:
    """Return the arm of each round on which a number from 0 to 1 falls.

    >>> drawn(np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([0.1, 0.3])).tolist()
    [0, 1]
    """
    edges = chances.cumsum(axis=1)
    arms = (edges <= (uniforms * edges[:, -1])[:, None]).sum(axis=1)
    return np.minimum(arms, chances.shape[1] - 1)


def _draw(chances: Probabilities, rng: np.random.Generator) -> int:
    """Return an arm drawn from its probability."""
    edges = chances.cumsum()
    return min(bisect_right(edges, rng.random() * edges[-1]), len(edges) - 1)


def _check_finite(indices: Indices) -> None:
    """Raise DivergenceError for indices that say nothing."""
    if not math.isfinite(np.add.reduce(indices)):
        raise DivergenceError(
            f"the indices are {indices}, but they must be finite numbers: training has diverged; use a "
            "smaller rate, Replay() in the place of FullBatch(), or smaller features, and start anew"
        )
