"""Scale features: numbers by a running mean and deviation, and all features by how often they came.

The values of hashed features are NaN for an indicator, and a number as it came. Their moments are in a hash
table with open addressing, by the hash of the feature's name. Features known by place have an array of moments.
"""

import math

import numpy as np
from jaxtyping import Float, Int, UInt64

from rbmle.core.types import Moments, Rows, Scales
from rbmle.engine.compiled import in_order, inlined, kernel, part

COUNT, MEAN, VARIANCE = range(3)  # columns of the moments
HORIZON = 10_000.0  # observations over which a scale that drifts is forgotten
FULLEST = 0.75  # the largest load of the table; further names are not scaled
CONSTANT = 1e-24  # of the squared mean; a smaller variance is rounding
ENOUGH = 20.0  # times that a feature has to come for half of its squared weight
OFTEN = 0.5  # share of rows in which a number must not be 0, to be centred
FARTHEST = 4.0  # deviations to which a number is clipped
HALF = 0.5  # squared length of the constants of a row, and the mean one of the rest


@kernel
def plain_values(values: Float[np.ndarray, " features"]) -> None:
    """Replace each number x by arcsinh(x), and each indicator by 1."""
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
    """Replace a number that came n times by √(n/(n + ENOUGH)) · arcsinh((x − mean)/deviation).

    An indicator has 1 for the arcsinh. The first group of a call is its context's, and the next
    `sizes[call]` are its actions'. If it is learning, the features of each call update the statistics before
    the call is scaled, so calls give the same bits together as one by one.
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
            values[i] = _scale_number(scales, hashes[i], values[i])
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
    """Return the place of a feature's count, which features may share."""
    return np.int64(np.uint64(name) & np.uint64(len(scales.counts) - 1))


@in_order
def _take_in(scales: Scales, name: int, x: float) -> None:
    """Count a feature, and update the moments of a number: over all values, later over the last ones."""
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
def _scale_number(scales: Scales, name: int, x: float) -> float:
    """Return a feature as the network sees it; 0 for a number that has not varied."""
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


@kernel
def standardised_rows(rows: Rows, moments: Moments, is_learning: bool) -> Rows:
    """Return standardised rows; the statistics of each are those of the moments and the row itself.

    A constant is appended. If it is learning, each row updates the moments after it was standardised.
    Consecutive rows over the same entries stay so. See `_standardise`.
    """
    n, features = len(rows.starts), len(moments.counts)
    starts, lengths = np.empty(n, np.int64), np.empty(n, np.int64)
    indices, values = np.empty(0, np.int32), np.empty(0, np.float64)
    usual, is_there = np.empty(features, np.int64), np.zeros(features, np.bool_)
    used, usually, share = 0, 0, 0.0
    for i in range(n):
        begin, length = rows.starts[i], rows.lengths[i]
        is_again = i > 0 and begin == rows.starts[i - 1] and length == rows.lengths[i - 1]
        if is_again and not is_learning:
            starts[i], lengths[i] = starts[i - 1], lengths[i - 1]
            continue
        if i == 0 or is_learning:
            usually, share = _usual(moments, usual)
        if used + length + usually + 1 > len(values):
            room = 2 * len(values) + length + usually + 1
            indices, values = _enlarge(indices, room), _enlarge(values, room)
        entries = rows.indices[begin : begin + length], rows.values[begin : begin + length]
        starts[i] = used
        used = _standardise(
            entries, moments, usual[:usually], share, is_there, used, indices, values
        )
        lengths[i] = used - starts[i]
        if is_learning:
            _see(entries, moments)
    return Rows(starts, lengths, rows.blocks, indices[:used], values[:used])


@part
def _enlarge(array: np.ndarray, size: int) -> np.ndarray:
    """Return a longer array that begins with this one."""
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


@in_order
def _usual(moments: Moments, usual: np.ndarray) -> tuple[int, float]:
    """Write the features whose standardised value is not 0 where they are 0: the centred ones.

    Return their number, and the mean squared length of the standardised features after one more row of zeros.
    """
    rows, count, share = moments.rows[0] + 1.0, 0, 0.0
    for j in range(len(moments.counts)):
        often = moments.counts[j] / rows
        if _is_centred(often, moments.means[j], moments.variances[j]):
            usual[count] = j
            count += 1
            share += 1.0
        else:
            share += often
    return count, share


@inlined
def _is_centred(often: float, mean: float, variance: float) -> bool:
    """Return whether a number is centred: it is often not 0, and not always the same."""
    return often >= OFTEN and variance > CONSTANT * mean * mean


@inlined
def _with(moments: Moments, j: int, x: float) -> tuple[float, float, float]:
    """Return the count, mean and variance of a feature after one more value, which is not 0."""
    count = moments.counts[j] + 1.0
    change = x - moments.means[j]
    mean = moments.means[j] + change / count
    return count, mean, (1.0 - 1.0 / count) * (moments.variances[j] + change * change / count)


@in_order
def _see(entries: tuple[np.ndarray, np.ndarray], moments: Moments) -> None:
    """Update the moments by a row."""
    indices, values = entries
    moments.rows[0] += 1.0
    for k in range(len(indices)):
        j = indices[k]
        count, mean, variance = _with(moments, j, values[k])
        moments.counts[j], moments.means[j], moments.variances[j] = count, mean, variance


@in_order
def _standardise(
    entries: tuple[np.ndarray, np.ndarray],
    moments: Moments,
    usual: np.ndarray,
    share: float,
    is_there: np.ndarray,
    used: int,
    indices: np.ndarray,
    values: np.ndarray,
) -> int:
    """Write a row from `used` on, and return its end.

    - A constant, the same in all rows, is its sign; constants, with the added one, together have the squared
      length ½.
    - A number that is not 0 in half of the rows or more is (x − mean)/deviation, over all rows.
    - Others are x/√(mean of x²), over the rows in which they are not 0: 0 stays 0, and a flag is its sign.

    The last two are clipped at `FARTHEST`, and scaled together so that their mean squared length is ½.
    """
    at, xs = entries
    rows, constants = moments.rows[0] + 1.0, 1
    for k in range(len(at)):
        j = at[k]
        is_there[j] = True
        absent = moments.counts[j] / rows
        is_usual = _is_centred(absent, moments.means[j], moments.variances[j])
        share -= 1.0 if is_usual else absent
        count, mean, variance = _with(moments, j, xs[k])
        if count == rows and variance <= CONSTANT * mean * mean:
            constants += 1
        else:
            share += 1.0 if _is_centred(count / rows, mean, variance) else count / rows
    level = math.sqrt(HALF / constants)
    scale = math.sqrt(HALF / max(share, 0.5 / rows))
    k = u = 0
    while k < len(at) or u < len(usual):
        if u < len(usual) and (k == len(at) or usual[u] <= at[k]):
            j = usual[u]
            u += 1
            if is_there[j]:
                continue
            often = moments.counts[j] / rows
            z = scale * _centre(0.0, often, moments.means[j], moments.variances[j])
        else:
            j, x = at[k], xs[k]
            k += 1
            count, mean, variance = _with(moments, j, x)
            often = count / rows
            if _is_centred(often, mean, variance):
                z = scale * _centre(x, often, mean, variance)
            elif variance > CONSTANT * mean * mean:
                z = scale * _cut(x / math.sqrt(variance + mean * mean))
            else:
                z = math.copysign(level if count == rows else scale, x)
        if z != 0.0:
            indices[used], values[used] = j, z
            used += 1
    for k in range(len(at)):
        is_there[at[k]] = False
    indices[used], values[used] = len(is_there), level
    return used + 1


@inlined
def _centre(x: float, often: float, mean: float, variance: float) -> float:
    """Return how many deviations a number is from its mean, over all rows including zeros."""
    deviation = math.sqrt(often * (variance + (1.0 - often) * mean * mean))
    return _cut((x - often * mean) / deviation)


@inlined
def _cut(z: float) -> float:
    return min(max(z, -FARTHEST), FARTHEST)
