"""The first reading of a log, of few columns: how long it is, and within what rewards and propensities are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rbmle.evaluation.logs.reading import Reading
from rbmle.evaluation.logs.table import Log


@dataclass(slots=True, kw_only=True)
class Survey:
    """What a log is as a whole; rows that make no sense are not told from others yet."""

    rows: int = 0
    lowest: float = np.inf  # reward
    highest: float = -np.inf
    smallest: float = 1.0  # propensity
    unknown: int = 0  # rows without a propensity
    baselines: int = 0  # rows with a baseline action


def survey(
    log: Log, reading: Reading, default_reward: float, step: Callable[[int], object]
) -> Survey:
    """Read a log once; `step` is told how many rows were read."""
    found = Survey()
    for batch in log.batches(reading, ("propensity", "reward", "baseline")):
        rewards = batch.table["reward"].to_numpy(zero_copy_only=False)
        rewards = np.where(np.isnan(rewards), default_reward, rewards)
        rewards = rewards[np.isfinite(rewards)]
        chances = batch.table["propensity"].to_numpy(zero_copy_only=False)
        found.rows += len(chances)
        found.unknown += int(np.isnan(chances).sum())
        found.baselines += len(chances) - batch.table["baseline"].null_count
        found.lowest = min(found.lowest, float(rewards.min(initial=np.inf)))
        found.highest = max(found.highest, float(rewards.max(initial=-np.inf)))
        found.smallest = min(found.smallest, float(chances[chances > 0].min(initial=1.0)))
        step(found.rows)
    return found
