"""Which arms to play: probabilities with a floor, and what is drawn from them, in one round or in many."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import DivergenceError
from rbmle.core.policy import KnowsProbabilities, Policy, SeparateIndex
from rbmle.core.randomness import Purpose, generator, uniform
from rbmle.core.types import Chosen, Contexts, Indices, Probabilities


def weigh_all(
    policy: Policy[Any],
    state: Any,
    contexts: Contexts,
    sizes: Sequence[int],
    ids: Sequence[str],
    *,
    seed: int,
    floor: float,
    draws: int,
) -> list[Chosen]:
    """Return what to play in some rounds, whose contexts stand in a row, `sizes` of each.

    What is chosen in a round depends on its contexts, its id and the state, not on the other rounds.
    The arm is drawn from (1 − ε) p + ε/n for a floor ε, where p is what the policy says, or 1 for the
    largest index, in equal parts if several have it. Without either, there are no probabilities.
    """
    ends = np.cumsum(sizes).tolist()
    starts = [end - size for end, size in zip(ends, sizes, strict=True)]
    asked: list[tuple[Indices, Probabilities | None]] = []
    if isinstance(policy, SeparateIndex) and policy.is_separate:
        every = _finite(policy.index(state, contexts, generator(seed, Purpose.INDEX, "")))
        asked += [(every[start:end], None) for start, end in zip(starts, ends, strict=True)]
    else:
        parts = zip(starts, ends, ids, strict=True)
        asked += [
            _asked(policy, state, contexts.part(start, end), draws, seed, id)
            for start, end, id in parts
        ]
    found: list[Any] = [None] * len(ids)
    for size in set(sizes):
        rounds = [i for i, n in enumerate(sizes) if n == size]
        indices = np.array([asked[i][0] for i in rounds])
        chances = shares(indices)
        for row, i in enumerate(rounds):
            if (known := asked[i][1]) is not None:
                chances[row] = known
        if floor:
            chances = (1 - floor) * chances + floor / size
        uniforms = np.array([uniform(seed, Purpose.CHOOSE, ids[i]) for i in rounds])
        places = drawn(chances, uniforms).tolist()
        for row, i in enumerate(rounds):
            is_known = floor > 0 or asked[i][1] is not None
            found[i] = Chosen(places[row], indices[row], chances[row] if is_known else None)
    return found


def shares(indices: Float[np.ndarray, "rounds arms"]) -> Float[np.ndarray, "rounds arms"]:
    """Return 1 for the largest index of a round, in equal parts if several have it, and 0 for others.

    >>> shares(np.array([[0.1, 0.7, 0.3, 0.7], [2.0, 1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.5, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0]]
    """
    wins = indices == indices.max(axis=1, keepdims=True)
    return wins / wins.sum(axis=1, keepdims=True)


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


def _asked(
    policy: Policy[Any], state: Any, contexts: Contexts, draws: int, seed: int, id: str
) -> tuple[Indices, Probabilities | None]:
    """Return the index of one round, and the probabilities that the policy knows."""
    rng = generator(seed, Purpose.INDEX, id)
    if isinstance(policy, KnowsProbabilities):
        indices, chances = policy.weigh(state, contexts, draws, rng)
    else:
        indices, chances = policy.index(state, contexts, rng), None
    return _finite(indices), chances


def _finite(indices: Indices) -> Indices:
    """Return the indices, or raise DivergenceError if they say nothing."""
    if not math.isfinite(np.add.reduce(indices)):
        raise DivergenceError(
            f"the indices are {indices}, but they must be finite numbers: training has diverged; use a "
            "smaller rate, Replay() in place of FullBatch(), or smaller features, and start again"
        )
    return indices
