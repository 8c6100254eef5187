"""Propensities that a log does not have, estimated from the contexts of which arms were played."""

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Contexts
from rbmle.evaluation.choice_model import ChoiceModel
from rbmle.evaluation.contexts import Featuriser, featuriser_of
from rbmle.evaluation.rounds import Rounds

FOLDS = 2
ROUNDS = 200_000  # that are learned at least, by reading a short log several times
FEWEST_PASSES, MOST_PASSES = 2, 40
MIX = np.uint64(
    0x9E3779B97F4A7C15
)  # 2⁶⁴ over the golden ratio: neighbours are in folds as if at random


class ContextPropensities:
    """p̂(a | x) by a model for each half of the log, which learned from the other half (cross-fitting).

    So no round is judged by a model that saw which arm was played there. Rounds whose propensity is known
    are not learned from: another policy may have played them.
    """

    def __init__(self) -> None:
        self.smallest = 1.0  # what no propensity is below
        self._models = [ChoiceModel() for _ in range(FOLDS)]
        self._featuriser: Featuriser | None = None

    @staticmethod
    def learned(
        read: Callable[[], Iterable[Rounds]], rows: int, step: Callable[[int], object]
    ) -> "ContextPropensities":
        """Return estimates from a log that can be read again and again; `step` is told how many rounds."""
        found, seen = ContextPropensities(), 0

        def parts(chosen: int) -> Iterator[tuple[ChoiceModel, Rounds, Contexts]]:
            nonlocal seen
            for rounds in read():
                seen += len(rounds)
                step(seen)
                for fold, _, some, contexts in found._folds(rounds):
                    yield found._models[(fold + chosen) % FOLDS], some, contexts

        for model, some, contexts in parts(0):
            model.count(some, contexts)
        passes = min(max(math.ceil(ROUNDS / max(rows, 1)), FEWEST_PASSES), MOST_PASSES)
        for number in range(passes):
            if number in (passes // 2, 0):
                for model in found._models:
                    model.begin_average()
            for model, some, contexts in parts(0):
                model.learn(some, contexts)
        for model, some, contexts in parts(1):
            chances = model.chances(some, contexts)[some.at]
            found.smallest = min(found.smallest, float(chances.min()))
        return found

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        """Return the propensities of a log, estimated where they are not known."""
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
