"""Features by what is known of them: numbers by a running mean and deviation, all by how often they came.

What is read has NaN for an indicator, and a number as it came. Moments stand in a table by the hash of their
name, with open addressing: a name is at the first place from its hash on that has it, or is free.
"""

import math

import numpy as np
from jaxtyping import Float, Int, UInt64

from rbmle.core.types import Scales
from rbmle.engine.compiled import in_order, inlined, kernel

COUNT, MEAN, VARIANCE = range(3)  # columns of the moments
HORIZON = 10_000.0  # observations over which a scale that drifts is forgotten
FULLEST = 0.75  # part of the table that is taken at most; names beyond it are not scaled
CONSTANT = 1e-24  # of the squared mean: what varies less is rounding
ENOUGH = 20.0  # times that a feature has to come for half of its squared weight


@kernel
def plain_values(values: Float[np.ndarray, " features"]) -> None:
    """Put arcsinh(x) in the place of each number, and 1 in that of each indicator."""
    for i in range(len(values)):
        values[i] = 1.0 if math.isnan(values[i]) else math.asinh(values[i])


@kernel
def scaled_values(
    hashes: UInt64[np.ndarray, " features"],
    counts: Int[np.ndarray, " groups"],
    sizes: Int[np.ndarray, " calls"],
    scales: Scales,
    is_learning: bool,
    values: Float[np.ndarray, " features"],
) -> None:
    """Put √(n/(n + ENOUGH)) · arcsinh((x − mean)/deviation) in the place of a number that came n times.

    An indicator has 1 for the arcsinh. The first group of a call is its context's, and the next
    `sizes[call]` are its actions'. If it is learning, the features of a call are taken in before the call
    is scaled, one call after the other: calls give the same bits together as one by one.
    """
    group = first = 0
    for size in sizes:
        end = first
        for count in counts[group : group + size + 1]:
            end += count
        group += size + 1
        if is_learning:
            for i in range(first, end):
                if hashes[i] != 0:
                    _take_in(scales, hashes[i], values[i])
        for i in range(first, end):
            values[i] = _scaled(scales, hashes[i], values[i])
        first = end


@inlined
def _place(names: UInt64[np.ndarray, " places"], name: int) -> int:
    """Return where a name is, or the free place where it would be."""
    last = np.uint64(len(names) - 1)  # their number is a power of 2
    place = np.uint64(name) & last
    while names[place] != 0 and names[place] != name:
        place = (place + np.uint64(1)) & last
    return np.int64(place)


@inlined
def _bucket(scales: Scales, name: int) -> int:
    """Return where a feature is counted; two may be counted in one place."""
    return np.int64(np.uint64(name) & np.uint64(len(scales.counts) - 1))


@in_order
def _take_in(scales: Scales, name: int, x: float) -> None:
    """Count a feature, and let the moments of a number follow it: the mean of all, later of the last ones."""
    bucket = _bucket(scales, name)
    scales.counts[bucket] = min(scales.counts[bucket] + np.float32(1), np.float32(HORIZON))
    if math.isnan(x):
        return
    names, moments = scales.names, scales.moments
    place = _place(names, name)
    if names[place] == 0:
        if scales.used[0] >= FULLEST * len(names):
            return
        names[place] = name
        scales.used[0] += 1
    count = min(moments[place, COUNT] + 1.0, HORIZON)
    rate = 1.0 / count
    change = x - moments[place, MEAN]
    moments[place, COUNT] = count
    moments[place, MEAN] += rate * change
    moments[place, VARIANCE] = (1.0 - rate) * (moments[place, VARIANCE] + rate * change * change)


@in_order
def _scaled(scales: Scales, name: int, x: float) -> float:
    """Return a feature as the network sees it; 0 if nothing tells a number from those before."""
    if name == 0:
        return 1.0
    count = np.float64(scales.counts[_bucket(scales, name)])
    weight = math.sqrt(count / (count + ENOUGH))
    if math.isnan(x):
        return weight
    place = _place(scales.names, name)
    if scales.names[place] == 0:
        return weight * math.asinh(x)
    mean, variance = scales.moments[place, MEAN], scales.moments[place, VARIANCE]
    if variance <= CONSTANT * mean * mean:
        return 0.0
    return weight * math.asinh((x - mean) / math.sqrt(variance))
