"""The first reading of a log: how long it is, what rewards and propensities it has, and who was played."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rbmle.evaluation.errors import LogFileError
from rbmle.evaluation.logs.reading import Reading
from rbmle.evaluation.logs.table import Log
from rbmle.evaluation.rounds import Rounds, rounds_of


@dataclass(slots=True, kw_only=True)
class Survey:
    """What a log is as a whole."""

    reading: Reading
    rounds: int = 0
    total: float = 0.0  # of the rewards
    lowest: float = np.inf  # reward
    highest: float = -np.inf
    smallest: float = 1.0  # propensity
    unknown: int = 0  # rounds without a propensity
    offered: Counter[str] = field(default_factory=Counter)  # how often each arm could be played
    played: Counter[str] = field(default_factory=Counter)

    @property
    def mean(self) -> float:
        """Return the mean reward of the log."""
        return self.total / self.rounds

    def add(self, rounds: Rounds) -> None:
        """Count some rounds."""
        self.rounds += len(rounds)
        self.total += float(rounds.rewards.sum())
        self.lowest = min(self.lowest, float(rounds.rewards.min()))
        self.highest = max(self.highest, float(rounds.rewards.max()))
        is_known = ~np.isnan(rounds.propensities)
        if is_known.any():
            self.smallest = min(self.smallest, float(rounds.propensities[is_known].min()))
        self.unknown += len(rounds) - int(is_known.sum())
        pairs, counts = np.unique(
            np.stack([rounds.offered, rounds.played]), axis=1, return_counts=True
        )
        for (offer, place), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            self.played[rounds.offers[offer].ids[place]] += count
            for id in rounds.offers[offer].ids:
                self.offered[id] += count


def survey(
    log: Log, reading: Reading, default_reward: float, step: Callable[[int], object]
) -> Survey:
    """Read a log once; raise LogFileError if there is nothing in it to learn from."""
    found = Survey(reading=reading)
    for rounds in rounds_of(log, reading, has_contexts=False, default_reward=default_reward):
        found.add(rounds)
        step(found.rounds)
    if not found.rounds:
        raise LogFileError(f"{log.name} has no decision with an arm and a reward")
    return found
