"""The most that a next state can be worth when its probabilities are known only roughly.

Values h are those of the next states, p is how often each was seen after a state and an action.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import inlined, part
from rbmle.engine.root_search import root

NEWTON_STEPS = 60  # it converges in about 6; a bound keeps rounding from making it endless
PRECISION = 1e-13
CLOSE = 1e-11  # of log(ν − max h), at which the search for it ends
NOTHING = 1e-16  # of the spread of values


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


@inlined
def divergence(
    x: float, p: Float[np.ndarray, " states"], h: Float[np.ndarray, " states"], top: float
) -> float:
    """Return KL(p ‖ q) of q_j ∝ p_j/(ν − h_j), with ν = top + x: Σ p_j log(ν − h_j) + log Σ p_j/(ν − h_j)."""
    logs, mass = 0.0, 0.0
    for j in range(h.shape[0]):
        if p[j] > 0.0:
            gap = x + (top - h[j])
            logs += p[j] * math.log(gap)
            mass += p[j] / gap
    return logs + math.log(mass)


@inlined
def log_divergence(
    y: float, given: tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"], float, float]
) -> float:
    """Return the logarithm of the loss at x = eʸ, less that of the radius; it is almost a line."""
    p, h, top, radius = given
    return math.log(divergence(math.exp(y), p, h, top) / radius)


@inlined
def enough(
    p: Float[np.ndarray, " states"], h: Float[np.ndarray, " states"], top: float, radius: float
) -> float:
    """Return an x at which the loss is below the radius: x E Y = Var(Y)/radius, where Y = x + top − h.

    For the loss is log E(1/Y) + E log Y < E(1/Y) E Y − 1 = E{(Y − E Y)²/Y}/E Y ≤ Var(Y)/(x E Y), as Y ≥ x.
    """
    gap, variance = 0.0, 0.0
    for j in range(h.shape[0]):
        gap += p[j] * (top - h[j])
    for j in range(h.shape[0]):
        variance += p[j] * (top - h[j] - gap) ** 2
    return (math.sqrt(gap**2 + 4.0 * variance / radius) - gap) / 2.0


@part
def within_divergence(
    p: Float[np.ndarray, " states"], h: Float[np.ndarray, " states"], radius: float
) -> float:
    """Return max_q Σ_j q_j h_j over distributions with KL(p ‖ q) ≤ radius, which is above 0.

    Filippi, Cappé, Garivier (2010), MaxKL: where p_j > 0, q_j ∝ p_j/(ν − h_j), with ν such that the loss is the
    radius. If that needs a ν below the largest h, which then is that of a state with p_j = 0, ν is this h, and
    the state gets 1 − exp(loss − radius).
    """
    states = h.shape[0]
    top, share, low = -np.inf, 0.0, np.inf  # of the states that were seen
    limit = -np.inf  # of all states
    for j in range(states):
        limit = max(limit, h[j])
        if p[j] > 0.0:
            low = min(low, h[j])
            if h[j] > top:
                top, share = h[j], p[j]
    if low == limit:
        return limit
    # With a smaller x = ν − top, the value would be the limit to the last place all the same.
    x = max(limit - top, NOTHING * share * (top - low))
    here = divergence(x, p, h, top)
    if here <= radius:
        rest = 1.0 - math.exp(here - radius)
    else:
        rest, given = 0.0, (p, h, top, radius)
        near, far = math.log(x), math.log(enough(p, h, top, radius))
        there = log_divergence(far, given)
        x = math.exp(root(log_divergence, given, near, math.log(here / radius), far, there, CLOSE))
    value, mass = 0.0, 0.0
    for j in range(states):
        if p[j] > 0.0:
            q = p[j] / (x + (top - h[j]))
            mass += q
            value += q * (top - h[j])
    return (1.0 - rest) * (top - value / mass) + rest * limit
