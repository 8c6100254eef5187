"""The drift alarm: do rewards stay below what they were, and below what the model expects?

Two tests use cumulative sums (Page 1954) of standardised shortfalls, clipped so that a few large ones count
little. The quick test detects a large fall. The slow one detects a smaller fall, but counts it only if the
model did not expect it and can no longer predict which rewards are high: in a quiet night rewards fall too, but
the model stays right.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel, part

# Places in `Watch`. Sums are of r − ORIGIN, and PRIOR of the COUNT rewards were not seen but imagined.
SUM, SQUARES, COUNT, EXCESS, DEVIATIONS, LEAST, ORIGIN, PRIOR = range(8)
FALL, LENGTH, EXPECTED, REWARDS, SPREAD, PRODUCTS = range(8, 14)  # of the slow test
PLACES = 14
ALLOWANCE = 0.25  # deviations by which rewards may stay below, for as long as they like
CLIP = 2.0  # deviations that a shortfall counts at most
SLOW_ALLOWANCE = 0.1  # of the slow test
SLOWNESS = 1.5  # the slow test's threshold, in alarms
UNEXPECTED = 0.5  # part of a fall that the model must not have expected
USELESS = (
    0.45  # slope of rewards on expectations, below which these say little; 1 if they are right
)
SURENESS = 1.0  # standard errors by which the slope is below it
TINY = 1e-12

Watch = Float[np.ndarray, " 14"]


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
    """Take in a reward before it is learned; return whether the drift alarm went off.

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
    if is_outdated(watch, r, expected - watch[ORIGIN], mean, deviation, alarm):
        watch[EXCESS] = 2.0 * alarm  # which is above it, so both tests end alike
    watch[DEVIATIONS] += abs(r - mean)
    watch[SUM] += r
    watch[SQUARES] += r * r
    watch[COUNT] += 1.0
    watch[LEAST] = min(watch[LEAST], reward)
    return watch[EXCESS] > alarm > 0.0


@inlined
def is_outdated(
    watch: Watch, reward: float, expected: float, mean: float, deviation: float, alarm: float
) -> bool:
    """Add a reward; return whether rewards have fallen a little, and the model no longer predicts them.

    F ← max(0, F + min((r̄ − r)/σ, clip) − allowance) is above 1½ alarms; of the fall since F was 0, at least
    half was not expected; and the slope of the rewards since then on what was expected, by least squares,
    is more than a standard error below 0.45.
    """
    watch[FALL] += min((mean - reward) / deviation, CLIP) - SLOW_ALLOWANCE
    if watch[FALL] <= 0.0:
        for place in range(FALL, PLACES):
            watch[place] = 0.0
        return False
    watch[LENGTH] += 1.0
    n = watch[LENGTH]
    e, r = expected - mean, reward - mean  # near to 0, for the sake of rounding
    watch[EXPECTED] += e
    watch[REWARDS] += r
    watch[SPREAD] += e * e
    watch[PRODUCTS] += e * r
    if alarm == 0.0 or watch[FALL] <= SLOWNESS * alarm:
        return False
    mean_e, mean_r = watch[EXPECTED] / n, watch[REWARDS] / n
    if mean_e - mean_r < -UNEXPECTED * mean_r:
        return False
    spread = watch[SPREAD] - n * mean_e * mean_e
    products = watch[PRODUCTS] - n * mean_e * mean_r
    return products + SURENESS * deviation * math.sqrt(max(spread, 0.0)) < USELESS * spread
