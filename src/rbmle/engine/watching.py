"""How large a model's errors are, and whether rewards stay below what it expects of them.

The test is a cumulative sum (Page 1954) of standardised errors, clipped so that a few large ones say little.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel

SQUARES, COUNT, EXCESS = range(3)  # places in `Watch`
ALLOWANCE = 0.25  # deviations by which rewards may stay below, for as long as they like
CLIP = 2.0  # deviations that an error counts at most

Watch = Float[np.ndarray, " 3"]


@kernel
def notice(watch: Watch, error: float, alarm: float) -> bool:
    """Take in the error r − E[r] of a reward before it is learned; return whether to begin anew.

    With σ² the mean square of the errors before it, S ← max(0, S − clip(error/σ) − allowance), and the
    alarm is S > alarm. An `alarm` of 0 never goes off.
    """
    deviation = math.sqrt(watch[SQUARES] / watch[COUNT])
    shortfall = min(max(-error / deviation, -CLIP), CLIP)
    watch[EXCESS] = max(0.0, watch[EXCESS] + shortfall - ALLOWANCE)
    watch[SQUARES] += error * error
    watch[COUNT] += 1.0
    return alarm > 0.0 and watch[EXCESS] > alarm
