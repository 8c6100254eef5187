"""A linear model beside a network: ridge regressions of several strengths, and how much each part is trusted.

A ridge regression is kept by a square root F of V⁻¹ = FFᵀ for each block, or, where contexts are wide, by the
diagonal of V⁻¹. A context x is seen as (z, 1), with z_j = x_j/(r_j s). Here r_j is the root mean square of the
values of feature j that were learned and not 0, and s² the mean ‖x/r‖². So features in units of their own count
alike, and z has a length of about 1.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Rows
from rbmle.engine.compiled import inlined, kernel

# Places in `Record`, before one for the loss of each ridge regression. SQUARES and SEEN are never forgotten.
COUNT, MISSED, LL, LN, NN, LR, NR, SQUARES, SEEN, LOSSES = range(10)
CLIP = 5.0  # deviations that an error counts at most
MOST = 1.2  # largest weight of a part
LEAST = 1e-3  # smallest weight of the network; below, it is not asked
TINY = 1e-200

Record = Float[np.ndarray, " 9+ridges"]
Roots = Float[
    np.ndarray, "ridges blocks features+1 features+1"
]  # or [..., features+1, 1], a diagonal
Linear = Float[np.ndarray, "ridges blocks features+1"]
Sizes = Float[
    np.ndarray, "features 3"
]  # of each feature: values that were not 0, their squares, and 1/r_j


@inlined
def scale_of(record: Record) -> float:
    """Return 1/s."""
    return math.sqrt(record[SEEN] / record[SQUARES]) if record[SQUARES] > 0.0 else 1.0


@inlined
def dot(theta: Linear, l: int, rows: Rows, i: int, sizes: Sizes, scale: float) -> float:
    """Return θᵀ(z_i, 1)."""
    block = rows.blocks[i]
    total = theta[l, block, theta.shape[2] - 1]
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        j = rows.indices[k]
        total += scale * sizes[j, 2] * rows.values[k] * theta[l, block, j]
    return total


@inlined
def project(
    F: Roots,
    l: int,
    rows: Rows,
    i: int,
    sizes: Sizes,
    scale: float,
    v: Float[np.ndarray, " features+1"],
) -> float:
    """Return ‖(z_i, 1)‖²_{V⁻¹}; v becomes Fᵀ(z_i, 1), unless F is a diagonal."""
    block, last = rows.blocks[i], v.shape[0] - 1
    first, end = rows.starts[i], rows.starts[i] + rows.lengths[i]
    if F.shape[3] == 1:
        total = F[l, block, last, 0]
        for k in range(first, end):
            x = scale * sizes[rows.indices[k], 2] * rows.values[k]
            total += x * x * F[l, block, rows.indices[k], 0]
        return total
    for j in range(last + 1):
        v[j] = F[l, block, last, j]
    for k in range(first, end):
        feature = rows.indices[k]
        x = scale * sizes[feature, 2] * rows.values[k]
        for j in range(last + 1):
            v[j] += x * F[l, block, feature, j]
    total = 0.0
    for j in range(last + 1):
        total += v[j] * v[j]
    return total


@inlined
def add(
    F: Roots,
    theta: Linear,
    ones: Linear,
    l: int,
    rows: Rows,
    i: int,
    sizes: Sizes,
    scale: float,
    reward: float,
    v: Float[np.ndarray, " features+1"],
) -> None:
    """V ← V + zzᵀ, θ̂ ← V⁻¹ Σ r z and ones ← V⁻¹ Σ z, with z = (z_i, 1), as `ridge_update` does."""
    block, last = rows.blocks[i], v.shape[0] - 1
    s = 1.0 + project(F, l, rows, i, sizes, scale, v)
    error = (reward - dot(theta, l, rows, i, sizes, scale)) / s
    rest = (1.0 - dot(ones, l, rows, i, sizes, scale)) / s
    if F.shape[3] == 1:
        first, length = rows.starts[i], rows.lengths[i]
        for k in range(first, first + length + 1):
            is_last = k == first + length
            j = last if is_last else rows.indices[k]
            u = F[l, block, j, 0]
            u *= 1.0 if is_last else scale * sizes[j, 2] * rows.values[k]
            theta[l, block, j] += u * error
            ones[l, block, j] += u * rest
            F[l, block, j, 0] -= u * u / s
        return
    shrink = 1.0 / (s + math.sqrt(s))
    for j in range(last + 1):
        u = 0.0
        for k in range(last + 1):
            u += F[l, block, j, k] * v[k]
        theta[l, block, j] += u * error
        ones[l, block, j] += u * rest
        u *= shrink
        for k in range(last + 1):
            F[l, block, j, k] -= u * v[k]


@inlined
def measure(rows: Rows, i: int, sizes: Sizes) -> float:
    """Take in the features of a context, and return ‖x_i/r‖²."""
    total = 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        j, x = rows.indices[k], rows.values[k]
        if x != 0.0:
            sizes[j, 0] += 1.0
            sizes[j, 1] += x * x
            sizes[j, 2] = math.sqrt(sizes[j, 0] / max(sizes[j, 1], TINY))
            total += (x * sizes[j, 2]) ** 2
    return total


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
    F: Roots,
    theta: Linear,
    ones: Linear,
    sizes: Sizes,
    means: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
) -> tuple[float, float]:
    """Write θ̂ᵀx and ‖x‖²_{V⁻¹} for every context, averaged over the ridges; return both weights."""
    shares, v = np.empty(theta.shape[0]), np.empty(theta.shape[2])
    trust_ridges(record, shares)
    weights, scale = trust_parts(record, patience), scale_of(record)
    means[:] = 0.0
    norms[:] = 0.0
    for l in range(theta.shape[0]):
        if shares[l] < 1e-3:
            continue
        for i in range(rows.blocks.shape[0]):
            value = dot(theta, l, rows, i, sizes, scale) - centre * dot(
                ones, l, rows, i, sizes, scale
            )
            means[i] += shares[l] * value * gain
            norms[i] += shares[l] * project(F, l, rows, i, sizes, scale, v)
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
    record: Record,
    F: Roots,
    theta: Linear,
    ones: Linear,
    sizes: Sizes,
) -> None:
    """Judge both parts by each reward before it is learned, then let the linear part learn it.

    A forecast is f(x; θ̂) of the network before it had learned the reward, and the units of all rewards up
    to this one: they are learned less the first of them, times the second.
    """
    shares, v = np.empty(theta.shape[0]), np.empty(theta.shape[2])
    for i in range(begin, end):
        f, centre, gain = forecasts[i]
        if record[SEEN] > 0.0:
            r = (rewards[i] - centre) * gain
            scale = scale_of(record)
            trust_ridges(record, shares)
            weights = trust_parts(record, patience)
            mean = 0.0
            for place in range(COUNT, SQUARES):
                record[place] *= memory
            for l in range(theta.shape[0]):
                value = dot(theta, l, rows, i, sizes, scale) - centre * dot(
                    ones, l, rows, i, sizes, scale
                )
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
        record[SQUARES] += measure(rows, i, sizes)
        record[SEEN] += 1.0
        scale = scale_of(record)
        for l in range(theta.shape[0]):
            add(F, theta, ones, l, rows, i, sizes, scale, rewards[i], v)
