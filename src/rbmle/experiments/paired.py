"""Whether two policies differ over the seeds that both have played."""

import numpy as np

from rbmle.experiments.summary import Cell

FEW = 6  # with fewer seeds no p is below 0.05
SIGNIFICANT = 0.05  # a smaller p tells two policies apart
CLOSE = 0.01  # "within 1% performance difference are regarded as equally competitive", table 1


def is_level(cell: Cell, best: Cell, rounds: int) -> bool:
    """Return whether a policy's regret after some rounds is not told from that of the best.

    By the signed-rank test (Wilcoxon 1945) over the seeds that both have played: a seed is one order of the
    data, which makes a problem easy or hard for all policies alike, and one trial that is stuck is one sign,
    however much it lost. With few seeds, by a difference of 1 % at most.
    """
    p = p_value(cell, best, rounds)
    return cell.at(rounds)[0] <= best.at(rounds)[0] * (1 + CLOSE) if p is None else p >= SIGNIFICANT


def p_value(cell: Cell, other: Cell, rounds: int) -> float | None:
    """Return how likely differences of so much one sign are by chance, or None if few seeds are shared."""
    from scipy.stats import wilcoxon

    shared = sorted(set(cell.seeds) & set(other.seeds))
    if len(shared) < FEW:
        return None
    one, two = (_regrets(each, shared, rounds) for each in (cell, other))
    return float(wilcoxon(one, two).pvalue) if (one != two).any() else 1.0


def _regrets(cell: Cell, seeds: list[int], rounds: int) -> np.ndarray:
    """Return the regret after some rounds, of the first run of each seed."""
    return np.array([cell.regrets[cell.seeds.index(seed), rounds - 1] for seed in seeds])
