"""Regression of an exponential family by its last Newton step: a mode θ̂, and a square root F of H⁻¹ = FFᵀ."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Rows
from rbmle.engine.compiled import call_scalar, inlined, kernel, part
from rbmle.engine.root_search import root
from rbmle.engine.square_root import move_diagonal, project, project_diagonal
from rbmle.engine.watching import Watch, notice

notice_one = part(notice)

CLOSE = 1e-10  # relative error at which the search for the mode ends
APART = 2.0**-13  # of two points, by which b″ is a difference of b′


@inlined
def excess(z: float, given: tuple[int, float, float, float]) -> float:
    """Return z − before − q (r − b′(z))."""
    mean, before, q, reward = given
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
    From `begin` on; return n, or what comes after an observation that set off the alarm.
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
    """As `generalised_update`, from a diagonal H⁻¹ to the diagonal of the new one."""
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
