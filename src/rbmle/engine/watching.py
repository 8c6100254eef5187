"""Whether rewards stay below what they were, and below what the model expects of them.

The test is a cumulative sum (Page 1954) of standardised shortfalls, clipped: a few large ones say little.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel, part

# Places in `Watch`. Sums are of r − ORIGIN, and PRIOR of the COUNT rewards were not seen but imagined.
SUM, SQUARES, COUNT, EXCESS, DEVIATIONS, LEAST, ORIGIN, PRIOR = range(8)
ALLOWANCE = 0.25  # deviations by which rewards may stay below, for as long as they like
CLIP = 2.0  # deviations that a shortfall counts at most
TINY = 1e-12

Watch = Float[np.ndarray, " 8"]


@part
def units_of(watch: Watch) -> tuple[float, float]:
    """Return the mean of the rewards so far and 1/σ, with σ their deviation; 1 if they are all alike."""
    if watch[COUNT] == 0.0:
        return watch[ORIGIN], 1.0
    mean = watch[SUM] / watch[COUNT]
    variance = watch[SQUARES] / watch[COUNT] - mean * mean
    # Below this it is rounding. Rewards that are all alike have sums of exactly 0.
    is_spread = variance > 1e-14 * watch[SQUARES] / watch[COUNT]
    return watch[ORIGIN] + mean, 1.0 / math.sqrt(variance) if is_spread else 1.0


@kernel
def notice(watch: Watch, reward: float, expected: float, alarm: float) -> bool:
    """Take in a reward before it is learned; return whether to begin anew.

    With r̄ and σ the mean and the deviation of the rewards before it, and q = min(expected, r̄),
    S ← max(0, S + clip((q − r)/σ) − allowance), and the alarm is S > alarm. The expectation alone would not
    do: the arm that is played is one whose estimate is high, and so more often too high than too low. Nor
    would the mean: contexts that promise little may come in a row. An `alarm` of 0 never goes off.
    """
    if watch[COUNT] == 0.0:  # nothing is imagined: rewards are measured from the first
        watch[ORIGIN] = reward
    r = reward - watch[ORIGIN]
    count = max(watch[COUNT], 1.0)
    mean = watch[SUM] / count
    deviation = math.sqrt(max(watch[SQUARES] / count - mean * mean, TINY))
    shortfall = min(max((min(expected - watch[ORIGIN], mean) - r) / deviation, -CLIP), CLIP)
    watch[EXCESS] = max(0.0, watch[EXCESS] + shortfall - ALLOWANCE)
    watch[DEVIATIONS] += abs(r - mean)
    watch[SUM] += r
    watch[SQUARES] += r * r
    watch[COUNT] += 1.0
    watch[LEAST] = min(watch[LEAST], reward)
    return alarm > 0.0 and watch[EXCESS] > alarm
