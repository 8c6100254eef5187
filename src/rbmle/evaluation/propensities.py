"""Propensities that a log does not have: from arm frequencies, or from contexts by logistic regression."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Contexts
from rbmle.evaluation.features import Featuriser, featuriser_of
from rbmle.evaluation.rounds import Rounds


class Propensities(Protocol):
    """Fills in the propensities that a log does not have."""

    @property
    def smallest(self) -> float:
        """Return the smallest estimate for an arm that was played; 1 if there is none."""
        ...

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        """Return the propensities of rounds, estimated where they are missing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShares:
    """p(a) = s_a / Σ_b s_b over the arms b of a round, with s_a = plays of a / offers of a.

    It is right if the logging policy did not look at the context.
    """

    shares: Mapping[str, float]  # s

    @staticmethod
    def fit(every: Iterable[Rounds]) -> "ArmShares":
        offered, played = Counter[str](), Counter[str]()
        for rounds in every:
            most = int(rounds.sizes.max())
            counts = np.bincount(rounds.offered * most + rounds.played)
            for code in np.flatnonzero(counts).tolist():
                ids, count = rounds.offers[code // most].ids, int(counts[code])
                played[ids[code % most]] += count
                offered.update(dict.fromkeys(ids, count))
        return ArmShares(shares={id: played[id] / count for id, count in offered.items()})

    @property
    def smallest(self) -> float:
        played = [share for share in self.shares.values() if share]
        return min(played) / sum(played) if played else 1.0

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        missing = np.isnan(rounds.propensities)
        if not missing.any():
            return rounds.propensities
        tables = {
            k: _normalise([self.shares[id] for id in rounds.offers[k].ids])
            for k in np.unique(rounds.offered[missing]).tolist()
        }
        pairs = zip(rounds.offered[missing].tolist(), rounds.played[missing].tolist(), strict=True)
        filled = rounds.propensities.copy()
        filled[missing] = [tables[k][place] for k, place in pairs]
        return filled


def _normalise(values: list[float]) -> Float[np.ndarray, " arms"]:
    shares = np.array(values)
    return shares / shares.sum()


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
        """Count plays, and find the scale of each feature; all rounds are counted before any is learned."""
        for k, place in zip(rounds.offered.tolist(), rounds.played.tolist(), strict=True):
            ids = rounds.offers[k].ids
            self._played[ids[place]] += 1
            self._offered.update(ids)
        slots, x, _ = _entries(contexts)
        self._grow(int(slots.max(initial=-1)) + 1)
        np.maximum.at(self._scales, slots, np.abs(x))

    def learn(self, rounds: Rounds, contexts: Contexts) -> None:
        slots, z, arms = self._scale_entries(contexts)
        offsets, at = self._offsets(rounds), rounds.at
        ends = np.searchsorted(arms, np.append(rounds.starts, len(contexts)))
        for first in range(0, len(rounds), STEP):
            some = slice(first, min(first + STEP, len(rounds)))
            begin, end = rounds.starts[first], rounds.starts[some][-1] + rounds.sizes[some][-1]
            here = slice(ends[first], ends[some.stop])
            arm_places = arms[here] - begin
            chances = _softmax(
                offsets[begin:end]
                + _totals(self._theta[slots[here]] * z[here], arm_places, end - begin),
                rounds.starts[some] - begin,
                rounds.sizes[some],
            )
            chances[at[some] - begin] -= 1
            self._descend(np.bincount(slots[here], chances[arm_places] * z[here], len(self._theta)))

    def _descend(self, gradient: Float[np.ndarray, " slots"]) -> None:
        self._squares += gradient * gradient
        moved = self._squares > 0
        self._theta[moved] -= RATE * gradient[moved] / np.sqrt(self._squares[moved])
        self._sum += self._theta
        self._steps += 1

    def begin_average(self) -> None:
        """Start the average again from the present θ."""
        self._sum[:], self._steps = 0.0, 0

    def chances(self, rounds: Rounds, contexts: Contexts) -> Float[np.ndarray, " arms"]:
        slots, z, arms = self._scale_entries(contexts)
        theta = self._sum / max(self._steps, 1)
        odds = self._offsets(rounds) + _totals(theta[slots] * z, arms, len(contexts))
        return _softmax(odds, rounds.starts, rounds.sizes)

    def _scale_entries(
        self, contexts: Contexts
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
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
                np.concatenate([array, more])
                for array in (self._scales, self._theta, self._squares, self._sum)
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
    largest = np.repeat(np.maximum.reduceat(odds, starts), sizes)
    exponentials = np.exp(odds - largest)
    return exponentials / np.repeat(np.add.reduceat(exponentials, starts), sizes)


FOLDS = 2
ROUNDS = 200_000  # at least so many are learned, by reading a short log several times
FEWEST_PASSES, MOST_PASSES = 2, 40
# 2⁶⁴ over the golden ratio: neighbouring rounds fall into folds as if at random.
MIX = np.uint64(0x9E3779B97F4A7C15)


class ContextPropensities:
    """p̂(a | x) by cross-fitting: a model for each half of the log, which learned from the other half.

    So no model sees the arm of a round that it judges. Rounds with a known propensity are not learned: another
    policy may have played them.
    """

    def __init__(self) -> None:
        self.smallest = 1.0  # the smallest propensity of a played arm
        self._models = [ChoiceModel() for _ in range(FOLDS)]
        self._featuriser: Featuriser | None = None

    @staticmethod
    def fit(
        read: Callable[[], Iterable[Rounds]], rows: int, step: Callable[[int], object]
    ) -> "ContextPropensities":
        """Fit the models to a log that can be read repeatedly; `step` is called with the rounds so far."""
        estimates, seen = ContextPropensities(), 0

        def parts(chosen: int) -> Iterator[tuple[ChoiceModel, Rounds, Contexts]]:
            nonlocal seen
            for rounds in read():
                seen += len(rounds)
                step(seen)
                for fold, _, some, contexts in estimates._folds(rounds):
                    yield estimates._models[(fold + chosen) % FOLDS], some, contexts

        for model, some, contexts in parts(0):
            model.count(some, contexts)
        passes = min(max(math.ceil(ROUNDS / max(rows, 1)), FEWEST_PASSES), MOST_PASSES)
        for number in range(passes):
            if number in (passes // 2, 0):
                for model in estimates._models:
                    model.begin_average()
            for model, some, contexts in parts(0):
                model.learn(some, contexts)
        for model, some, contexts in parts(1):
            chances = model.chances(some, contexts)[some.at]
            estimates.smallest = min(estimates.smallest, float(chances.min()))
        return estimates

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        filled = rounds.propensities.copy()
        for fold, at, some, contexts in self._folds(rounds):
            chances = self._models[(fold + 1) % FOLDS].chances(some, contexts)
            filled[at] = chances[some.at]
        return filled

    def _folds(
        self, rounds: Rounds
    ) -> Iterator[tuple[int, Int[np.ndarray, " some"], Rounds, Contexts]]:
        """Yield the rounds without a propensity of each fold, their places, and their contexts."""
        missing = np.isnan(rounds.propensities)
        folds = _fold(rounds.numbers)
        if self._featuriser is None:
            self._featuriser = featuriser_of(rounds)
        for fold in range(FOLDS):
            at = np.flatnonzero(missing & (folds == fold))
            if len(at):
                some = rounds.part(at)
                yield fold, at, some, self._featuriser.rows(some)


def _fold(numbers: Int[np.ndarray, " rounds"]) -> Int[np.ndarray, " rounds"]:
    """Return 0 or 1 for each row, always the same."""
    mixed = numbers.astype(np.uint64) * MIX
    return ((mixed ^ (mixed >> np.uint64(29))) * MIX >> np.uint64(63)).astype(np.int64)
