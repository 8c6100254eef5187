"""The most that a next state can be worth when its probabilities are known only roughly.

Values h are those of the next states, p is how often each was seen after a state and an action.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import inlined, part

NEWTON_STEPS = 60  # it converges in about 6; a bound keeps rounding from making it endless
PRECISION = 1e-13


@inlined
def expectation(p: Float[np.ndarray, " states"], h: Float[np.ndarray, " states"]) -> float:
    """Return Σ_j p_j h_j."""
    total = 0.0
    for j in range(h.shape[0]):
        total += p[j] * h[j]
    return total


@part
def within_distance(
    p: Float[np.ndarray, " states"],
    h: Float[np.ndarray, " states"],
    order: Int[np.ndarray, " states"],
    radius: float,
) -> float:
    """Return max_q Σ_j q_j h_j over distributions with ‖q − p‖₁ ≤ radius; `order` sorts h upwards.

    Jaksch, Ortner, Auer (2010), figure 2: the best state gets radius/2 more, the worst ones pay for it.
    """
    best = order[-1]
    moved = min(radius / 2.0, 1.0 - p[best])
    value = expectation(p, h) + moved * h[best]
    for k in range(order.shape[0]):
        j = order[k]
        if moved <= 0.0 or j == best:
            break
        taken = min(p[j], moved)
        value -= taken * h[j]
        moved -= taken
    return value


@part
def within_likelihood(
    p: Float[np.ndarray, " states"], h: Float[np.ndarray, " states"], weight: float
) -> float:
    """Return max_q { Σ_j q_j h_j − weight · KL(p‖q) } over distributions q.

    Where p_j > 0, q_j = weight · p_j / (ν − h_j); ν is such that they sum to 1. If that needs a ν below the
    largest h, which then is that of a state with p_j = 0, ν is this h, and the state gets what is left.
    """
    states = h.shape[0]
    top, best = -np.inf, 0  # of the states that were seen
    limit = -np.inf  # of all states
    for j in range(states):
        limit = max(limit, h[j])
        if p[j] > 0.0 and h[j] > top:
            top, best = h[j], j
    if weight <= 0.0:
        return limit
    nu = top + weight * p[best]  # at most the solution: this state alone has q = 1
    for _ in range(NEWTON_STEPS):
        mass, slope = 0.0, 0.0
        for j in range(states):
            if p[j] > 0.0:
                q = weight * p[j] / (nu - h[j])
                mass += q
                slope += q / (nu - h[j])
        step = (mass - 1.0) * mass / slope  # Newton's on 1 − 1/mass, which is almost a line
        nu += step
        if step <= PRECISION * (1.0 + abs(nu)):
            break
    nu = max(nu, limit)
    value, mass = 0.0, 0.0
    for j in range(states):
        if p[j] > 0.0:
            q = weight * p[j] / (nu - h[j])
            mass += q
            value += q * h[j] - weight * p[j] * math.log(p[j] / q)
    return value + max(1.0 - mass, 0.0) * limit
