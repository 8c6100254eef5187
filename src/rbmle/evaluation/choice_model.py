"""With which probability each arm of a round is played, learned from which ones were.

Multinomial logistic regression over the arms b of a round (McFadden 1974),

    p(a | x) = s_a exp(θᵀz_a) / Σ_b s_b exp(θᵀz_b),

where s_a is how often a was played when it could be. So it begins with what does not hang on the context.
"""

from collections import Counter

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Contexts
from rbmle.evaluation.rounds import Rounds

RATE = 1.0
STEP = 64  # rounds of a gradient


class ChoiceModel:
    """θ by AdaGrad, averaged over its steps since `begin_average`, with z_j = x_j/(c_j √k) for k features.

    c_j is the largest |x_j|, so shift and scale of features do not decide how fast they are learned. The
    last feature of a block is the constant 1.
    """

    def __init__(self) -> None:
        self._offered, self._played = Counter[str](), Counter[str]()
        self._scales, self._theta, self._squares, self._sum = (np.zeros(0) for _ in range(4))
        self._steps = 0  # in the sum of θ

    def count(self, rounds: Rounds, contexts: Contexts) -> None:
        """Count plays, and see how large features are; all rounds are counted before any is learned."""
        for k, place in zip(rounds.offered.tolist(), rounds.played.tolist(), strict=True):
            ids = rounds.offers[k].ids
            self._played[ids[place]] += 1
            self._offered.update(ids)
        slots, x, _ = _entries(contexts)
        self._grow(int(slots.max(initial=-1)) + 1)
        np.maximum.at(self._scales, slots, np.abs(x))

    def learn(self, rounds: Rounds, contexts: Contexts) -> None:
        """Take a step for every few rounds."""
        slots, z, arms = self._scaled(contexts)
        offsets, at = self._offsets(rounds), rounds.at
        ends = np.searchsorted(arms, np.append(rounds.starts, len(contexts)))
        for first in range(0, len(rounds), STEP):
            some = slice(first, min(first + STEP, len(rounds)))
            begin, end = rounds.starts[first], rounds.starts[some][-1] + rounds.sizes[some][-1]
            here = slice(ends[first], ends[some.stop])
            own = arms[here] - begin
            chances = _softmax(
                offsets[begin:end] + _totals(self._theta[slots[here]] * z[here], own, end - begin),
                rounds.starts[some] - begin,
                rounds.sizes[some],
            )
            chances[at[some] - begin] -= 1
            self._descend(np.bincount(slots[here], chances[own] * z[here], len(self._theta)))

    def _descend(self, gradient: Float[np.ndarray, " slots"]) -> None:
        self._squares += gradient * gradient
        moved = self._squares > 0
        self._theta[moved] -= RATE * gradient[moved] / np.sqrt(self._squares[moved])
        self._sum += self._theta
        self._steps += 1

    def begin_average(self) -> None:
        """Forget the steps so far, but not where they led."""
        self._sum[:], self._steps = 0.0, 0

    def chances(self, rounds: Rounds, contexts: Contexts) -> Float[np.ndarray, " arms"]:
        """Return the probability of every arm of every round."""
        slots, z, arms = self._scaled(contexts)
        theta = self._sum / max(self._steps, 1)
        odds = self._offsets(rounds) + _totals(theta[slots] * z, arms, len(contexts))
        return _softmax(odds, rounds.starts, rounds.sizes)

    def _scaled(
        self, contexts: Contexts
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """Return slots, z and arms of all entries."""
        slots, x, arms = _entries(contexts)
        self._grow(int(slots.max(initial=-1)) + 1)
        scales = self._scales[slots]
        roots = np.sqrt(contexts.rows.lengths + 1.0)[arms]
        return slots, np.divide(x, scales * roots, out=np.zeros_like(x), where=scales > 0), arms

    def _offsets(self, rounds: Rounds) -> Float[np.ndarray, " arms"]:
        """Return log s of every arm; one more play and one more round without it keep it finite."""
        tables = {
            k: np.log([(self._played[id] + 1) / (self._offered[id] + 2) for id in offer.ids])
            for k, offer in enumerate(rounds.offers)
            if offer.ids
        }
        return np.concatenate([tables[k] for k in rounds.offered.tolist()])

    def _grow(self, slots: int) -> None:
        if (missing := slots - len(self._theta)) > 0:
            more = np.zeros(missing)
            self._scales, self._theta, self._squares, self._sum = (
                np.concatenate([one, more])
                for one in (self._scales, self._theta, self._squares, self._sum)
            )


def _entries(
    contexts: Contexts,
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Return the slot, the value and the arm of every feature of every arm, a constant last."""
    starts, lengths, blocks, indices, values = contexts.rows
    arms = np.repeat(np.arange(len(contexts)), lengths + 1)
    ends = np.cumsum(lengths + 1)
    places = np.arange(len(arms)) + np.repeat(starts - (ends - lengths - 1), lengths + 1)
    places[ends - 1] = 0  # of the constants, whose values follow
    slots = blocks[arms] * (contexts.features + 1)
    if len(indices):
        slots = slots + indices[places]
        x = values[places].astype(float)
    else:
        x = np.zeros(len(arms))
    slots[ends - 1] = blocks * (contexts.features + 1) + contexts.features
    x[ends - 1] = 1.0
    return slots, x, arms


def _totals(
    values: Float[np.ndarray, " n"], at: Int[np.ndarray, " n"], size: int
) -> Float[np.ndarray, " arms"]:
    return np.bincount(at, values, size)


def _softmax(
    odds: Float[np.ndarray, " arms"],
    starts: Int[np.ndarray, " rounds"],
    sizes: Int[np.ndarray, " rounds"],
) -> Float[np.ndarray, " arms"]:
    """Return the probabilities of the arms of each round."""
    largest = np.repeat(np.maximum.reduceat(odds, starts), sizes)
    found = np.exp(odds - largest)
    return found / np.repeat(np.add.reduceat(found, starts), sizes)
