"""A linear model beside a network: ridge regressions of several strengths, and how much each part is trusted.

A ridge regression is kept by a square root F of V⁻¹ = FFᵀ for each block, or, where contexts are wide, by the
diagonal of V⁻¹. A context x is seen as (z, 1), with z_j = (x_j − m_j)/(r_j s). The mean m_j of a feature is
subtracted as far as the feature is there: it is multiplied by 2p_j − 1, with p_j the share of contexts in which
x_j is not 0, and there is none below a half, or where contexts are wide. So sparse contexts stay sparse. Here
r_j is the root mean square of x_j − m_j over all contexts, or over those in which x_j is not 0 if that is
larger, and s² the mean ‖(x − m)/r‖². So neither the unit nor the offset of a feature counts, a rare flag counts
as much as a common one, and z has a length of about 1.

The last ridge regressions share what they learn between blocks. There θ_a = μ + δ_a, where μ has the precision
τλ and each δ_a has the precision λ. With V⁻¹ and θ̂ of a block as if μ were 0, a reward r tells of μ as much as
an observation (r − θ̂ᵀz)/√s of λV⁻¹z/√s with noise of 1, where s = 1 + zᵀV⁻¹z. So μ is a ridge regression as
well, and θ_aᵀz has the mean θ̂ᵀz + μ̂ᵀw and the variance ‖z‖²_{V⁻¹} + ‖w‖² in the norm of μ, with w = λV⁻¹z.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Rows
from rbmle.engine.compiled import inlined, kernel

# Places in `Record`, before one for the loss of each ridge regression. SQUARES and SEEN are never forgotten.
COUNT, MISSED, LL, LN, NN, LR, NR, SQUARES, SEEN, LOSSES = range(10)
CLIP = 5.0  # deviations that an error counts at most
MOST = 1.2  # largest weight of a part
LEAST = 1e-3  # smallest weight of the network; below, it is not asked
TINY = 1e-200
ROUNDING = 1e-24  # share of its square below which the variance of a feature is rounding

Record = Float[np.ndarray, " 9+ridges"]
Roots = Float[
    np.ndarray, "ridges blocks features+1 features+1"
]  # or [..., features+1, 1], a diagonal
Linear = Float[np.ndarray, "ridges blocks features+1"]
# Places in `Sizes`: how many values of a feature were not 0, the first of them, the sum of the others less
# the first and that of its squares, then m_j and 1/r_j.
VALUES, FIRST, SUM, SUM_SQUARES, MEAN, GAIN, SIZES = range(7)
Sizes = Float[np.ndarray, "features 6"]
Entries = tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"], int]  # places, values, how many


class Ridges(NamedTuple):
    """Ridge regressions of each block; or those of what blocks share, with one block."""

    F: Roots
    theta: Linear  # V⁻¹ Σ r z
    ones: Linear  # V⁻¹ Σ z


@inlined
def scale_of(record: Record) -> float:
    """Return 1/s."""
    return math.sqrt(record[SEEN] / record[SQUARES]) if record[SQUARES] > 0.0 else 1.0


@inlined
def encode(
    rows: Rows,
    i: int,
    sizes: Sizes,
    scale: float,
    is_dense: bool,
    places: Int[np.ndarray, " features+1"],
    z: Float[np.ndarray, " features+1"],
) -> int:
    """Write those entries of (z_i, 1) that are not 0, and their places; return how many they are."""
    first, end, last, n = rows.starts[i], rows.starts[i] + rows.lengths[i], sizes.shape[0], 0
    if is_dense:
        for j in range(last):
            z[j] = -sizes[j, MEAN]
        for k in range(first, end):
            z[rows.indices[k]] += rows.values[k]
        for j in range(last):
            if z[j] != 0.0 and sizes[j, GAIN] > 0.0:
                places[n], z[n] = j, scale * sizes[j, GAIN] * z[j]
                n += 1
    else:
        for k in range(first, end):
            j = rows.indices[k]
            places[n], z[n] = j, scale * sizes[j, GAIN] * rows.values[k]
            n += 1
    places[n], z[n] = last, 1.0
    return n + 1


@inlined
def dot(theta: Linear, l: int, block: int, entries: Entries) -> float:
    """Return θᵀz."""
    places, z, n = entries
    total = 0.0
    for k in range(n):
        total += z[k] * theta[l, block, places[k]]
    return total


@inlined
def project(
    F: Roots, l: int, block: int, entries: Entries, v: Float[np.ndarray, " features+1"]
) -> float:
    """Return ‖z‖²_{V⁻¹}; v becomes Fᵀz, unless F is a diagonal."""
    places, z, n = entries
    total = 0.0
    if F.shape[3] == 1:
        for k in range(n):
            total += z[k] * z[k] * F[l, block, places[k], 0]
        return total
    size = v.shape[0]
    for j in range(size):
        v[j] = 0.0
    for k in range(n):
        x, place = z[k], places[k]
        for j in range(size):
            v[j] += x * F[l, block, place, j]
    for j in range(size):
        total += v[j] * v[j]
    return total


@inlined
def reach(
    F: Roots,
    l: int,
    block: int,
    ridge: float,
    entries: Entries,
    v: Float[np.ndarray, " features+1"],
    everywhere: Int[np.ndarray, " features+1"],
    w: Float[np.ndarray, " features+1"],
) -> Entries:
    """Return w = λV⁻¹z, given v = Fᵀz."""
    places, z, n = entries
    if F.shape[3] == 1:
        for k in range(n):
            w[k] = ridge * F[l, block, places[k], 0] * z[k]
        return places, w, n
    for j in range(w.shape[0]):
        total = 0.0
        for k in range(w.shape[0]):
            total += F[l, block, j, k] * v[k]
        w[j] = ridge * total
    return everywhere, w, w.shape[0]


@inlined
def add(
    ridges: Ridges,
    l: int,
    block: int,
    entries: Entries,
    reward: float,
    one: float,
    v: Float[np.ndarray, " features+1"],
) -> None:
    """V ← V + zzᵀ, θ̂ ← V⁻¹ Σ r z and ones ← V⁻¹ Σ z, as `ridge_update` does."""
    F, theta, ones = ridges
    places, z, n = entries
    s = 1.0 + project(F, l, block, entries, v)
    error = (reward - dot(theta, l, block, entries)) / s
    rest = (one - dot(ones, l, block, entries)) / s
    if F.shape[3] == 1:
        for k in range(n):
            j = places[k]
            u = F[l, block, j, 0] * z[k]
            theta[l, block, j] += u * error
            ones[l, block, j] += u * rest
            F[l, block, j, 0] -= u * u / s
        return
    shrink = 1.0 / (s + math.sqrt(s))
    size = v.shape[0]
    for j in range(size):
        u = 0.0
        for k in range(size):
            u += F[l, block, j, k] * v[k]
        theta[l, block, j] += u * error
        ones[l, block, j] += u * rest
        u *= shrink
        for k in range(size):
            F[l, block, j, k] -= u * v[k]


@inlined
def measure(rows: Rows, i: int, sizes: Sizes, seen: float, is_dense: bool) -> float:
    """Take in the features of a context, the last of `seen`, and return ‖(x_i − m)/r‖²."""
    first, end = rows.starts[i], rows.starts[i] + rows.lengths[i]
    for k in range(first, end):
        j, x = rows.indices[k], rows.values[k]
        if x != 0.0:
            if sizes[j, VALUES] == 0.0:
                sizes[j, FIRST] = x if is_dense else 0.0
            sizes[j, VALUES] += 1.0
            sizes[j, SUM] += x - sizes[j, FIRST]
            sizes[j, SUM_SQUARES] += (x - sizes[j, FIRST]) ** 2
            if not is_dense:
                sizes[j, GAIN] = math.sqrt(sizes[j, VALUES] / max(sizes[j, SUM_SQUARES], TINY))
    total = 0.0
    if is_dense:
        for j in range(sizes.shape[0]):
            if sizes[j, VALUES] > 0.0:
                locate(sizes, j, seen)
                total += (sizes[j, MEAN] * sizes[j, GAIN]) ** 2
        for k in range(first, end):
            j, x = rows.indices[k], rows.values[k]
            total += x * (x - 2.0 * sizes[j, MEAN]) * sizes[j, GAIN] ** 2
        return max(total, 0.0)
    for k in range(first, end):
        total += (rows.values[k] * sizes[rows.indices[k], GAIN]) ** 2
    return total


@inlined
def locate(sizes: Sizes, j: int, seen: float) -> None:
    """Write m_j and 1/r_j, which is 0 while a feature has not varied."""
    n, first = sizes[j, VALUES], sizes[j, FIRST]
    mean = first + sizes[j, SUM] / n  # of the values that are not 0
    shift = max(2.0 * n / seen - 1.0, 0.0) * mean * n / seen
    # Squares of x − m: mean over the values that are not 0, then over all.
    off = first - shift
    square = max(sizes[j, SUM_SQUARES] + 2.0 * off * sizes[j, SUM] + n * off * off, 0.0) / n
    square = max(square, (n * square + (seen - n) * shift * shift) / seen)
    sizes[j, MEAN] = shift
    sizes[j, GAIN] = 1.0 / math.sqrt(square) if square > ROUNDING * (first * first) else 0.0


@inlined
def trust_ridges(record: Record, shares: Float[np.ndarray, " ridges"]) -> None:
    """Write p(ridge | errors) ∝ exp(−Σ e²/2σ²), with σ² the mean e² of the best of them."""
    best = np.inf
    for l in range(shares.shape[0]):
        best = min(best, record[LOSSES + l])
    variance = (best + 1.0) / (record[COUNT] + 1.0)
    total = 0.0
    for l in range(shares.shape[0]):
        shares[l] = math.exp((best - record[LOSSES + l]) / (2.0 * variance))
        total += shares[l]
    for l in range(shares.shape[0]):
        shares[l] /= total


@inlined
def trust_parts(record: Record, patience: float) -> tuple[float, float]:
    """Return the weights of the line and of the network in f.

    The blend is the least-squares fit of rewards to what both parts predicted. Its weights are not negative,
    and `patience` rounds of evidence pull them to (0, 1). The weights are those of the line, 1 − p, and of the
    blend, p, with p/(1 − p) = exp(−ΔBIC/2): the blend has one parameter more than the line, and must reduce the
    squared error by σ² log n more.
    """
    count = record[COUNT]
    if count == 0.0:
        return 0.5, 0.5
    pull = patience * ((record[LL] + record[NN]) / (2.0 * count) + 1e-6)
    ll, nn, ln = record[LL] + pull, record[NN] + pull, record[LN]
    lr, nr = record[LR], record[NR] + pull
    determinant = ll * nn - ln * ln
    linear, network = (lr * nn - nr * ln) / determinant, (nr * ll - lr * ln) / determinant
    if linear < 0.0 or network < 0.0:  # the better of the two edges
        linear, network = max(lr / ll, 0.0), max(nr / nn, 0.0)
        if linear * lr > network * nr:
            network = 0.0
        else:
            linear = 0.0
    linear, network = min(linear, MOST), min(network, MOST)
    # Squared errors, less Σ r².
    of_line = record[LL] - 2.0 * record[LR]
    of_blend = linear * (linear * record[LL] + network * record[LN] - 2.0 * record[LR])
    of_blend += network * (linear * record[LN] + network * record[NN] - 2.0 * record[NR])
    variance = (record[MISSED] + 1e-9) / count
    odds = (of_line - of_blend) / variance - math.log(count + 1.0)
    share = 1.0 / (1.0 + math.exp(-min(max(odds / 2.0, -50.0), 50.0)))
    if share * network < LEAST:
        return 1.0 - share + share * linear, 0.0
    return 1.0 - share + share * linear, share * network


@kernel
def blend_values(
    rows: Rows,
    record: Record,
    patience: float,
    centre: float,
    gain: float,
    strengths: Float[np.ndarray, " ridges"],
    ridges: Ridges,
    common: Ridges,
    sizes: Sizes,
    means: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
) -> tuple[float, float]:
    """Write the mean and the variance of θᵀx for every context, averaged over the ridges; return both weights.

    The last of the ridges share what they learn, by `common`.
    """
    F, theta, ones = ridges
    count, size = theta.shape[0], theta.shape[2]
    separate = count - common.theta.shape[0]
    shares, v, w = np.empty(count), np.empty(size), np.empty(size)
    is_dense = F.shape[3] > 1
    places, z = np.empty(size, np.int64), np.empty(size)
    everywhere = np.arange(size if is_dense else 0)
    trust_ridges(record, shares)
    weights, scale = trust_parts(record, patience), scale_of(record)
    means[:] = 0.0
    norms[:] = 0.0
    for i in range(rows.blocks.shape[0]):
        block = rows.blocks[i]
        entries = places, z, encode(rows, i, sizes, scale, is_dense, places, z)
        for l in range(count):
            if shares[l] < 1e-3:
                continue
            value = dot(theta, l, block, entries) - centre * dot(ones, l, block, entries)
            norm = project(F, l, block, entries, v)
            if l >= separate:
                m = l - separate
                shared = reach(F, l, block, strengths[l], entries, v, everywhere, w)
                value += dot(common.theta, m, 0, shared) - centre * dot(common.ones, m, 0, shared)
                norm += project(common.F, m, 0, shared, v)
            means[i] += shares[l] * value * gain
            norms[i] += shares[l] * norm
    return weights


@kernel
def blend_update(
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    forecasts: Float[np.ndarray, "n 3"],
    begin: int,
    end: int,
    memory: float,
    patience: float,
    strengths: Float[np.ndarray, " ridges"],
    record: Record,
    ridges: Ridges,
    common: Ridges,
    sizes: Sizes,
) -> None:
    """Judge both parts by each reward before it is learned, then let the linear part learn it.

    A forecast is f(x; θ̂) of the network before it had learned the reward, and the units of all rewards up
    to this one: they are learned less the first of them, times the second.
    """
    F, theta, ones = ridges
    count, size = theta.shape[0], theta.shape[2]
    separate = count - common.theta.shape[0]
    shares, v, w = np.empty(count), np.empty(size), np.empty(size)
    is_dense = F.shape[3] > 1
    places, z = np.empty(size, np.int64), np.empty(size)
    everywhere = np.arange(size if is_dense else 0)
    for i in range(begin, end):
        f, centre, gain = forecasts[i]
        block = rows.blocks[i]
        if record[SEEN] > 0.0:
            r = (rewards[i] - centre) * gain
            entries = places, z, encode(rows, i, sizes, scale_of(record), is_dense, places, z)
            trust_ridges(record, shares)
            weights = trust_parts(record, patience)
            mean = 0.0
            for place in range(COUNT, SQUARES):
                record[place] *= memory
            for l in range(count):
                value = dot(theta, l, block, entries) - centre * dot(ones, l, block, entries)
                if l >= separate:
                    m = l - separate
                    project(F, l, block, entries, v)
                    shared = reach(F, l, block, strengths[l], entries, v, everywhere, w)
                    value += dot(common.theta, m, 0, shared)
                    value -= centre * dot(common.ones, m, 0, shared)
                mean += shares[l] * value * gain
                error = min(max(r - value * gain, -CLIP), CLIP)
                record[LOSSES + l] = memory * record[LOSSES + l] + error * error
            error = min(max(r - weights[0] * mean - weights[1] * f, -CLIP), CLIP)
            r = min(max(r, -CLIP), CLIP)
            record[COUNT] += 1.0
            record[MISSED] += error * error
            record[LL] += mean * mean
            record[LN] += mean * f
            record[NN] += f * f
            record[LR] += mean * r
            record[NR] += f * r
        record[SEEN] += 1.0
        record[SQUARES] += measure(rows, i, sizes, record[SEEN], is_dense)
        entries = places, z, encode(rows, i, sizes, scale_of(record), is_dense, places, z)
        for l in range(count):
            if l >= separate:
                root = math.sqrt(1.0 + project(F, l, block, entries, v))
                reward = (rewards[i] - dot(theta, l, block, entries)) / root
                one = (1.0 - dot(ones, l, block, entries)) / root
                ridge = strengths[l] / root
                shared = reach(F, l, block, ridge, entries, v, everywhere, w)
                add(common, l - separate, 0, shared, reward, one, v)
            add(ridges, l, block, entries, rewards[i], 1.0, v)
