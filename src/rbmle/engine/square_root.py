"""Ridge regression by a square root F of V⁻¹ = FFᵀ: always positive, and a sample is F times noise."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Rows
from rbmle.engine.compiled import inlined, kernel, part
from rbmle.engine.watching import Watch, notice

notice_one = part(notice)


@inlined
def project(
    F: Float[np.ndarray, "blocks features features"],
    rows: Rows,
    i: int,
    v: Float[np.ndarray, " features"],
) -> float:
    """Write v = Fᵀx_i and return ‖v‖² = ‖x_i‖²_{V⁻¹}."""
    block = rows.blocks[i]
    v[:] = 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        feature, value = rows.indices[k], rows.values[k]
        for j in range(v.shape[0]):
            v[j] += value * F[block, feature, j]
    total = 0.0
    for j in range(v.shape[0]):
        total += v[j] * v[j]
    return total


@kernel
def ridge_estimates(
    F: Float[np.ndarray, "blocks features features"],
    theta: Float[np.ndarray, "blocks features"],
    rows: Rows,
    means: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
    projections: Float[np.ndarray, "n features"],
) -> None:
    """Write θ̂ᵀx_i, ‖x_i‖²_{V⁻¹} and Fᵀx_i for every context."""
    for i in range(rows.blocks.shape[0]):
        mean = 0.0
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            mean += rows.values[k] * theta[rows.blocks[i], rows.indices[k]]
        means[i] = mean
        norms[i] = project(F, rows, i, projections[i])


@kernel
def ridge_update(
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    begin: int,
    alarm: float,
    F: Float[np.ndarray, "blocks features features"],
    theta: Float[np.ndarray, "blocks features"],
    watch: Watch,
) -> int:
    """V ← V + xxᵀ and θ̂ ← V⁻¹ Σ r x for each context and its reward, one after the other.

    By Potter's form: F ← F − (F v) vᵀ/(s + √s), with v = Fᵀx and s = 1 + ‖v‖². From `begin` on; return n,
    or what comes after an observation that set off the alarm.
    """
    d = theta.shape[1]
    v = np.empty(d)
    for n in range(begin, rewards.shape[0]):
        block = rows.blocks[n]
        s = 1.0 + project(F, rows, n, v)
        error = rewards[n]
        for k in range(rows.starts[n], rows.starts[n] + rows.lengths[n]):
            error -= rows.values[k] * theta[block, rows.indices[k]]
        for i in range(d):
            u = 0.0
            for j in range(d):
                u += F[block, i, j] * v[j]
            theta[block, i] += u * error / s  # V⁻¹x · (r − θ̂ᵀx)/(1 + ‖x‖²_{V⁻¹})
            u /= s + math.sqrt(s)
            for j in range(d):
                F[block, i, j] -= u * v[j]
        if notice_one(watch, rewards[n], rewards[n] - error, alarm):
            return n + 1
    return rewards.shape[0]
