"""Intervals for a value V at which Σ (N − V D) is near 0: normal, bootstrap and empirical Bernstein."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from rbmle.core.randomness import Purpose, generator
from rbmle.evaluation.sums import RatioSums

Interval = tuple[float, float]
FEWEST = 2  # rounds that an interval needs
RESAMPLES = 1_000


def normal(sums: RatioSums, confidence: float) -> Interval | None:
    """Return V̂ ± z s, with s² = n/(n − 1) Σ (N − V̂ D)² / (Σ D)², the delta method's.

    >>> sums = RatioSums()
    >>> sums.add(np.array([0.0, 1.0, 1.0, 2.0]), np.ones(4))
    >>> [round(end, 4) for end in normal(sums, 0.95)]  # 1 ± 1.96 √(2/3/4)
    [0.1998, 1.8002]
    """
    value, n = sums.value, sums.rounds
    if value is None or n < FEWEST:
        return None
    deviation = math.sqrt(n / (n - 1) * sums.ratio.squares(value)) / abs(sums.ratio.d)
    width = NormalDist().inv_cdf((1 + confidence) / 2) * deviation
    return value - width, value + width


def bernstein(
    sums: RatioSums, confidence: float, spread: float, low: float, high: float
) -> Interval:
    """Return the range of V between low and high that the empirical Bernstein inequality does not exclude.

    For n independent z_i = N_i − V D_i with mean 0 and a range of at most `spread`, with probability
    1 − δ (Maurer and Pontil 2009, Theorem 4, on both sides)

        |Σ z / n| ≤ √(2 s² ln(4/δ) / n) + 7 spread ln(4/δ) / (3 (n − 1)).
    """
    n, ratio, logarithm = sums.rounds, sums.ratio, math.log(4 / (1 - confidence))
    if sums.value is None or n < FEWEST:
        return low, high

    def excess(value: float) -> float:
        mean = (ratio.n - value * ratio.d) / n
        variance = max(0.0, ratio.squares(value) - n * mean * mean) / (n - 1)
        bound = math.sqrt(2 * variance * logarithm / n) + 7 * spread * logarithm / (3 * (n - 1))
        return abs(mean) - bound

    middle = min(max(sums.value, low), high)
    if excess(middle) > 0:  # every V is excluded: the bounds are wrong, or this is the rare case
        return middle, middle
    ends = [end if excess(end) <= 0 else float(brentq(excess, middle, end)) for end in (low, high)]
    return ends[0], ends[1]


def bootstrap(sums: RatioSums, confidence: float, seed: int) -> Interval | None:
    """Return the studentised bootstrap's interval over blocks of rounds (Efron and Tibshirani 1993, 12.5).

    Blocks are drawn with replacement. t = (V* − V̂)/s* of each draw has quantiles, and V is
    between V̂ − t_{1−δ/2} s and V̂ − t_{δ/2} s. Up to 2,047 rounds, a block is a round.
    """
    blocks, value = sums.blocks, sums.value
    m = len(blocks)
    if value is None or m < FEWEST:
        return None
    n, d = blocks.T
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = _counts(m, seed) @ np.stack([n, d, n * n, n * d, d * d], axis=1)
        values = drawn[:, 0] / drawn[:, 1]
        squares = drawn[:, 2] - 2 * values * drawn[:, 3] + values**2 * drawn[:, 4]
        t = (values - value) / (np.sqrt(np.maximum(squares, 0)) / np.abs(drawn[:, 1]))
    t = t[np.isfinite(t)]
    if not len(t):
        return value, value
    deviation = math.sqrt(float(((n - value * d) ** 2).sum())) / abs(float(d.sum()))
    tail = (1 - confidence) / 2
    smallest, largest = np.quantile(t, [tail, 1 - tail])
    return value - float(largest) * deviation, value - float(smallest) * deviation


@lru_cache(maxsize=2)
def _counts(m: int, seed: int) -> Float[np.ndarray, "resamples blocks"]:
    """Return how often each of m blocks is drawn in each resample; all estimates of a log share it."""
    rng = generator(seed, Purpose.EVALUATE, "bootstrap")
    return rng.multinomial(m, np.full(m, 1 / m), size=RESAMPLES).astype(float)
