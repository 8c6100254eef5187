"""Choose arms: probabilities with a floor, and draws from them, in one round or in many."""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import DivergenceError
from rbmle.core.policy import KnowsProbabilities, Policy, SeparateIndex, has
from rbmle.core.randomness import Purpose, generator, uniform
from rbmle.core.types import Chosen, Contexts, Indices, Probabilities

Asked = tuple[Indices, Probabilities | None]  # a policy's answer for a round
NO_STREAM = np.random.Generator(np.random.PCG64(0))  # for an index that draws no random numbers


class Rule(NamedTuple):
    """How arms are drawn."""

    seed: int
    floor: float  # ε
    draws: int  # that estimate the probabilities of a policy whose index is random
    sharpness: float = 0.0  # γ, the weight of gaps of indices; 0: the largest is played


def choose_many(
    policy: Policy[Any],
    state: Any,
    contexts: Contexts,
    sizes: Sequence[int],
    ids: Sequence[str],
    rule: Rule,
) -> list[Chosen]:
    """Return the choice of each round; round i has the next `sizes[i]` of the contexts.

    The choice in a round depends on its contexts, its id and the state, not on the other rounds.
    The arm is drawn from (1 − ε) p + ε/n for a floor ε. Here p are the probabilities of the policy; if it
    has none, the largest index has probability 1, which ties share. With a sharpness, p depends on the gaps
    between indices; see `inverse_gaps`. A choice has no probabilities if the policy has none, and there is
    neither a floor nor a sharpness.
    """
    if len(ids) == 1:
        asked = [_ask(policy, state, contexts, ids[0], rule)]
    elif _is_separate(policy):
        every, _ = _ask(policy, state, contexts, "", rule)
        asked = [(every[end - n : end], None) for n, end in _ends(sizes)]
    else:
        parts = [contexts.part(slice(end - n, end)) for n, end in _ends(sizes)]
        asked = [_ask(policy, state, *part, rule) for part in zip(parts, ids, strict=True)]
    return _choose(asked, ids, rule)


def rank(
    policy: Policy[Any],
    state: Any,
    contexts: Contexts,
    k: int,
    id: str,
    rule: Rule,
) -> list[tuple[list[int], Chosen]]:
    """Return, for each position of a ranking, the arms that are left and the choice among them.

    The first position is what `choose_many` plays. Every later one is drawn by the same rule from the arms
    that are left: their probabilities are scaled to sum to 1. If all are 0, the largest index is played.
    """
    indices, chances = _ask(policy, state, contexts, id, rule)
    left, positions = list(range(len(contexts))), []
    for position in range(k):
        rest = None if chances is None else chances[left]
        if rest is not None and position > 0:
            rest = rest / rest.sum() if rest.sum() > 0 else shares(indices[None, left])[0]
        name = f"{id}/{position}" if position else id
        (chosen,) = _choose([(indices[left], rest)], [name], rule)
        positions.append((left, chosen))
        left = [arm for place, arm in enumerate(left) if place != chosen.place]
    return positions


def _choose(asked: Sequence[Asked], ids: Sequence[str], rule: Rule) -> list[Chosen]:
    """Draw an arm for each round; rounds with equally many arms are drawn together."""
    if len(ids) == 1 and not rule.sharpness and (only := _certain(*asked[0], rule.floor)):
        return [only]
    choices: list[Any] = [None] * len(ids)
    floor = rule.floor
    sizes = [len(indices) for indices, _ in asked]
    for size in set(sizes):
        rounds = [i for i, n in enumerate(sizes) if n == size]
        indices = np.array([asked[i][0] for i in rounds])
        chances = inverse_gaps(indices, rule.sharpness) if rule.sharpness else shares(indices)
        for row, i in enumerate(rounds):
            if (known := asked[i][1]) is not None:
                chances[row] = known
        if floor:
            chances = (1 - floor) * chances + floor / size
        uniforms = np.array([uniform(rule.seed, Purpose.CHOOSE, ids[i]) for i in rounds])
        places = draw_places(chances, uniforms).tolist()
        for row, i in enumerate(rounds):
            is_known = floor > 0 or rule.sharpness > 0 or asked[i][1] is not None
            choices[i] = Chosen(places[row], indices[row], chances[row] if is_known else None)
    return choices


def _certain(indices: Indices, known: Probabilities | None, floor: float) -> Chosen | None:
    """Return the choice if nothing is random: one index is the largest, and no floor is set.

    `shares` and `draw_places` would give the same, in ten times as long.
    """
    if floor or known is not None:
        return None
    best = int(indices.argmax())
    return Chosen(best, indices, None) if np.count_nonzero(indices == indices[best]) == 1 else None


def shares(indices: Float[np.ndarray, "rounds arms"]) -> Float[np.ndarray, "rounds arms"]:
    """Return 1 for the largest index of a round, in equal parts if several have it, and 0 for others.

    >>> shares(np.array([[0.1, 0.7, 0.3, 0.7], [2.0, 1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.5, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0]]
    """
    wins = indices == indices.max(axis=1, keepdims=True)
    return wins / wins.sum(axis=1, keepdims=True)


def inverse_gaps(
    indices: Float[np.ndarray, "rounds arms"], sharpness: float
) -> Float[np.ndarray, "rounds arms"]:
    """Return 1/(K + γ (I_best − I_a)) for each of K arms; the best arms share what remains of 1.

    Foster and Rakhlin, Beyond UCB, 2020. Arms with nearly equal indices are played nearly equally often,
    and arms that are clearly worse are hardly ever played.

    >>> inverse_gaps(np.array([[0.5, 0.2, 0.5]]), 10.0).round(3).tolist()
    [[0.417, 0.167, 0.417]]
    """
    gaps = indices.max(axis=1, keepdims=True) - indices
    chances = 1 / (indices.shape[1] + sharpness * gaps)
    return chances + shares(indices) * (1 - chances.sum(axis=1, keepdims=True))


def draw_places(
    chances: Float[np.ndarray, "rounds arms"], uniforms: Float[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"]:
    """Return the arm of each round by inverse transform sampling, given a number between 0 and 1.

    >>> draw_places(np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([0.1, 0.3])).tolist()
    [0, 1]
    """
    edges = chances.cumsum(axis=1)
    arms = (edges <= (uniforms * edges[:, -1])[:, None]).sum(axis=1)
    return np.minimum(arms, chances.shape[1] - 1)


def _ask(policy: Policy[Any], state: Any, contexts: Contexts, id: str, rule: Rule) -> Asked:
    """Return the index of one round, or of many if the policy's index is separate, and the probabilities."""
    rng = NO_STREAM if _is_separate(policy) else generator(rule.seed, Purpose.INDEX, id)
    if has(policy, KnowsProbabilities):
        indices, chances = policy.weigh(state, contexts, rule.draws, rng)
    else:
        indices, chances = policy.index(state, contexts, rng), None
    return _finite(indices), chances


def _is_separate(policy: Policy[Any]) -> bool:
    return has(policy, SeparateIndex) and policy.is_separate


def _ends(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(sizes, accumulate(sizes), strict=True)


def _finite(indices: Indices) -> Indices:
    """Return the indices, or raise DivergenceError if one is not finite."""
    if not math.isfinite(np.add.reduce(indices)):
        raise DivergenceError(
            f"the indices are {indices}, but they must be finite numbers: training has diverged; use a "
            "smaller rate, Replay() instead of FullBatch(), or smaller features, and start again"
        )
    return indices
