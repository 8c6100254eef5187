"""Linear models by a square root F of the inverse precision: V⁻¹ = FFᵀ in ridge regression, H⁻¹ = FFᵀ in a GLM.

F keeps the precision positive, and a sample of θ is F times noise. A diagonal F is stored as its diagonal:
learning and deciding then cost as much as a context has entries.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Rows
from rbmle.engine.compiled import call_scalar, inlined, kernel, part
from rbmle.engine.drift import Watch, notice, units_of
from rbmle.engine.exponential_family import root

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


@inlined
def linear_value(theta: Float[np.ndarray, "blocks features"], rows: Rows, i: int) -> float:
    """Return θᵀx_i; 0 if θ has no blocks."""
    total = 0.0
    if theta.shape[0] > 0:
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            total += rows.values[k] * theta[rows.blocks[i], rows.indices[k]]
    return total


@kernel
def ridge_estimates(
    F: Float[np.ndarray, "blocks features features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    rows: Rows,
    centre: float,
    gain: float,
    means: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
    projections: Float[np.ndarray, "n features"],
) -> None:
    """Write θ̂ᵀx_i for rewards (r − centre) · gain, ‖x_i‖²_{V⁻¹} and Fᵀx_i for every context."""
    for i in range(rows.blocks.shape[0]):
        means[i] = (linear_value(theta, rows, i) - centre * linear_value(ones, rows, i)) * gain
        norms[i] = project(F, rows, i, projections[i])


@kernel
def ridge_update(
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    begin: int,
    alarm: float,
    F: Float[np.ndarray, "blocks features features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    watch: Watch,
) -> int:
    """V ← V + xxᵀ, θ̂ ← V⁻¹ Σ r x and ones ← V⁻¹ Σ x for each context and its reward, one after the other.

    θ̂ is linear in the rewards: that of all (r − c) · g is (θ̂ − c · ones) · g, whatever c and g become
    later. `ones` has no blocks where rewards are learned as they are.
    By Potter's form: F ← F − (F v) vᵀ/(s + √s), with v = Fᵀx and s = 1 + ‖v‖². Start at `begin`; return n, or
    the place after an observation that set off the alarm.
    """
    d = theta.shape[1]
    v = np.empty(d)
    for n in range(begin, rewards.shape[0]):
        block = rows.blocks[n]
        s = 1.0 + project(F, rows, n, v)
        error = rewards[n] - linear_value(theta, rows, n)
        centre, rest = 0.0, 0.0
        if ones.shape[0] > 0:
            centre = units_of(watch)[0]
            rest = 1.0 - linear_value(ones, rows, n)
        expected = rewards[n] - error + centre * rest
        for i in range(d):
            u = 0.0
            for j in range(d):
                u += F[block, i, j] * v[j]
            theta[block, i] += u * error / s  # V⁻¹x · (r − θ̂ᵀx)/(1 + ‖x‖²_{V⁻¹})
            if ones.shape[0] > 0:
                ones[block, i] += u * rest / s
            u /= s + math.sqrt(s)
            for j in range(d):
                F[block, i, j] -= u * v[j]
        if notice_one(watch, rewards[n], expected, alarm):
            return n + 1
    return rewards.shape[0]


@inlined
def project_diagonal(F: Float[np.ndarray, "blocks features"], rows: Rows, i: int) -> float:
    """Return ‖Fx_i‖² = ‖x_i‖²_{V⁻¹} for a diagonal V."""
    block, total = rows.blocks[i], 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        v = rows.values[k] * F[block, rows.indices[k]]
        total += v * v
    return total


@inlined
def move_diagonal(
    F: Float[np.ndarray, "blocks features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    rows: Rows,
    i: int,
    rest: float,
    rest_of_one: float,
    weight: float,
    q: float,
) -> None:
    """θ̂ ← θ̂ + rest · V⁻¹x_i, then V⁻¹ ← the diagonal of (V + weight · x_i x_iᵀ)⁻¹, with q = ‖x_i‖²_{V⁻¹}.

    `ones` moves as θ̂ does, if it has any blocks.
    """
    block, share = rows.blocks[i], weight / (1.0 + weight * q)
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        j = rows.indices[k]
        v = rows.values[k] * F[block, j]
        theta[block, j] += F[block, j] * v * rest
        if ones.shape[0] > 0:
            ones[block, j] += F[block, j] * v * rest_of_one
        F[block, j] *= math.sqrt(1.0 - share * v * v)  # v² ≤ q


@kernel
def diagonal_ridge_estimates(
    F: Float[np.ndarray, "blocks features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    rows: Rows,
    centre: float,
    gain: float,
    means: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
) -> None:
    """Write θ̂ᵀx_i for rewards (r − centre) · gain, and ‖x_i‖²_{V⁻¹}, for every context, for a diagonal V."""
    for i in range(rows.blocks.shape[0]):
        means[i] = (linear_value(theta, rows, i) - centre * linear_value(ones, rows, i)) * gain
        norms[i] = project_diagonal(F, rows, i)


@kernel
def diagonal_ridge_update(
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    begin: int,
    alarm: float,
    F: Float[np.ndarray, "blocks features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    watch: Watch,
) -> int:
    """Learn as `ridge_update` does from a V that is diagonal, then keep only the diagonal of the new V⁻¹.

    Start at `begin`; return n, or the place after an observation that set off the alarm.
    """
    for n in range(begin, rewards.shape[0]):
        error, s = rewards[n] - linear_value(theta, rows, n), 1.0 + project_diagonal(F, rows, n)
        centre, rest = 0.0, 0.0
        if ones.shape[0] > 0:
            centre = units_of(watch)[0]
            rest = 1.0 - linear_value(ones, rows, n)
        expected = rewards[n] - error + centre * rest
        move_diagonal(F, theta, ones, rows, n, error / s, rest / s, 1.0, s - 1.0)
        if notice_one(watch, rewards[n], expected, alarm):
            return n + 1
    return rewards.shape[0]


CLOSE = 1e-10  # relative error at which the search for the mode ends
APART = 2.0**-13  # of two points, by which b″ is a difference of b′


@inlined
def excess(z: float, problem: tuple[int, float, float, float]) -> float:
    """Return z − before − q (r − b′(z))."""
    mean, before, q, reward = problem
    return z - before - q * (reward - call_scalar(mean, z))


@inlined
def mode(mean: int, before: float, q: float, reward: float) -> float:
    """Return z = before + q (r − b′(z)), which is between `before` and what it would be with b′(before)."""
    near, here = before, q * (call_scalar(mean, before) - reward)
    far = before - here
    there = q * (call_scalar(mean, far) - call_scalar(mean, before))
    return root(excess, (mean, before, q, reward), near, here, far, there, CLOSE)


@inlined
def curvature(mean: int, z: float) -> float:
    """Return b″(z), by the difference of b′ at two points."""
    return max((call_scalar(mean, z + APART) - call_scalar(mean, z - APART)) / (2.0 * APART), 0.0)


@kernel
def generalised_update(
    mean: int,
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    begin: int,
    alarm: float,
    F: Float[np.ndarray, "blocks features features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    watch: Watch,
) -> int:
    """θ̂ ← argmax_θ { r θᵀx − b(θᵀx) − ½ ‖θ − θ̂‖²_H }, then H ← H + b″(θ̂ᵀx) xxᵀ, one context after the other.

    The maximum is θ̂ + (r − b′(z)) H⁻¹x, with z = θᵀx as in `mode`; H by Potter's form, as in `ridge_update`.
    Start at `begin`; return n, or the place after an observation that set off the alarm.
    """
    d = theta.shape[1]
    v = np.empty(d)
    for n in range(begin, rewards.shape[0]):
        block = rows.blocks[n]
        q = project(F, rows, n, v)
        before = 0.0
        for k in range(rows.starts[n], rows.starts[n] + rows.lengths[n]):
            before += rows.values[k] * theta[block, rows.indices[k]]
        z = mode(mean, before, q, rewards[n])
        rest, weight = rewards[n] - call_scalar(mean, z), curvature(mean, z)
        s = 1.0 + weight * q
        for i in range(d):
            u = 0.0
            for j in range(d):
                u += F[block, i, j] * v[j]
            theta[block, i] += u * rest
            u *= weight / (s + math.sqrt(s))
            for j in range(d):
                F[block, i, j] -= u * v[j]
        if notice_one(watch, rewards[n], call_scalar(mean, before), alarm):
            return n + 1
    return rewards.shape[0]


@kernel
def diagonal_generalised_update(
    mean: int,
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    begin: int,
    alarm: float,
    F: Float[np.ndarray, "blocks features"],
    theta: Float[np.ndarray, "blocks features"],
    ones: Float[np.ndarray, "blocks features"],
    watch: Watch,
) -> int:
    """Learn as `generalised_update` does from a diagonal H⁻¹, then keep only the diagonal of the new one."""
    for n in range(begin, rewards.shape[0]):
        block, before = rows.blocks[n], 0.0
        for k in range(rows.starts[n], rows.starts[n] + rows.lengths[n]):
            before += rows.values[k] * theta[block, rows.indices[k]]
        q = project_diagonal(F, rows, n)
        z = mode(mean, before, q, rewards[n])
        rest = rewards[n] - call_scalar(mean, z)
        move_diagonal(F, theta, ones, rows, n, rest, 0.0, curvature(mean, z), q)
        if notice_one(watch, rewards[n], call_scalar(mean, before), alarm):
            return n + 1
    return rewards.shape[0]


@kernel
def predict_then_learn(
    rows: Rows,
    sizes: Int[np.ndarray, " rounds"],
    played: Int[np.ndarray, " rounds"],
    rewards: Float[np.ndarray, " rounds"],
    rate: float,
    theta: Float[np.ndarray, "blocks features+1"],
    squares: Float[np.ndarray, "blocks features+1"],
    scales: Float[np.ndarray, "blocks features+1"],
    predictions: Float[np.ndarray, " arms"],
) -> None:
    """Write f = θᵀz of every arm of a round, then take a step of AdaGrad for the arm that was played.

    z_j = x_j/(s_j √k) for the k features of a row, where s_j is the largest |x_j| so far: so shift and
    scale of features do not decide how fast they are learned. The last feature is the constant 1.
    """
    starts, lengths, blocks, indices, values = rows
    last, first = theta.shape[1] - 1, 0
    for t in range(sizes.shape[0]):
        for i in range(first, first + sizes[t]):
            b, root = blocks[i], math.sqrt(max(1.0, float(lengths[i])))
            f = theta[b, last]
            for k in range(starts[i], starts[i] + lengths[i]):
                j = indices[k]
                if scales[b, j] > 0.0:
                    f += theta[b, j] * values[k] / (scales[b, j] * root)
            predictions[i] = f
        i = first + played[t]
        b, root = blocks[i], math.sqrt(max(1.0, float(lengths[i])))
        error = predictions[i] - rewards[t]
        for k in range(starts[i], starts[i] + lengths[i]):
            j = indices[k]
            scales[b, j] = max(scales[b, j], abs(values[k]))
            if scales[b, j] > 0.0:
                g = error * values[k] / (scales[b, j] * root)
                squares[b, j] += g * g
                if squares[b, j] > 0.0:
                    theta[b, j] -= rate * g / math.sqrt(squares[b, j])
        squares[b, last] += error * error
        if squares[b, last] > 0.0:
            theta[b, last] -= rate * error / math.sqrt(squares[b, last])
        first += sizes[t]
