"""Whether two policies differ over the seeds that both have played."""

import numpy as np

from rbmle.experiments.summary import Cell

FEW = 5  # with fewer seeds a test tells nothing apart
SIGNIFICANT = 0.05  # a smaller p tells two policies apart
CLOSE = 0.01  # "within 1% performance difference are regarded as equally competitive", table 1


def is_level(cell: Cell, best: Cell, rounds: int) -> bool:
    """Return whether a policy's regret after some rounds is not told from that of the best.

    By a paired t-test (Student 1908) over the seeds that both have played: a seed is one order of the data,
    which makes a problem easy or hard for all policies alike. With few seeds, by a difference of 1 % at most.
    """
    p = p_value(cell, best, rounds)
    return cell.at(rounds)[0] <= best.at(rounds)[0] * (1 + CLOSE) if p is None else p >= SIGNIFICANT


def p_value(cell: Cell, other: Cell, rounds: int) -> float | None:
    """Return how likely so large a mean difference is by chance, or None if few seeds are shared."""
    from scipy.stats import ttest_rel

    shared = sorted(set(cell.seeds) & set(other.seeds))
    if len(shared) < FEW:
        return None
    one, two = (_regrets(each, shared, rounds) for each in (cell, other))
    if np.ptp(one - two) == 0:  # the statistic is 0/0, or infinite
        return 1.0 if one[0] == two[0] else 0.0
    return float(ttest_rel(one, two).pvalue)


def _regrets(cell: Cell, seeds: list[int], rounds: int) -> np.ndarray:
    """Return the regret after some rounds, of the first run of each seed."""
    return np.array([cell.regrets[cell.seeds.index(seed), rounds - 1] for seed in seeds])
