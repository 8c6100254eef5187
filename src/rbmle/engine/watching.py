"""Whether rewards stay below what they were, and below what the model expects of them.

The test is a cumulative sum (Page 1954) of standardised shortfalls, clipped: a few large ones say little.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel

SUM, SQUARES, COUNT, EXCESS, DEVIATIONS, LEAST = range(6)  # places in `Watch`
ALLOWANCE = 0.25  # deviations by which rewards may stay below, for as long as they like
CLIP = 2.0  # deviations that a shortfall counts at most
TINY = 1e-12

Watch = Float[np.ndarray, " 6"]


@kernel
def notice(watch: Watch, reward: float, expected: float, alarm: float) -> bool:
    """Take in a reward before it is learned; return whether to begin anew.

    With r̄ and σ the mean and the deviation of the rewards before it, and q = min(expected, r̄),
    S ← max(0, S + clip((q − r)/σ) − allowance), and the alarm is S > alarm. The expectation alone would not
    do: the arm that is played is one whose estimate is high, and so more often too high than too low. Nor
    would the mean: contexts that promise little may come in a row. An `alarm` of 0 never goes off.
    """
    mean = watch[SUM] / watch[COUNT]
    deviation = math.sqrt(max(watch[SQUARES] / watch[COUNT] - mean * mean, TINY))
    shortfall = min(max((min(expected, mean) - reward) / deviation, -CLIP), CLIP)
    watch[EXCESS] = max(0.0, watch[EXCESS] + shortfall - ALLOWANCE)
    watch[DEVIATIONS] += abs(reward - mean)
    watch[SUM] += reward
    watch[SQUARES] += reward * reward
    watch[COUNT] += 1.0
    watch[LEAST] = min(watch[LEAST], reward)
    return alarm > 0.0 and watch[EXCESS] > alarm
