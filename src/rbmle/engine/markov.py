"""Markov decision processes: steps of a chain, and value iteration for known and for optimistic transitions.

The random number of step t is a function of (key, t).
"""

import math

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import in_order, inlined, kernel, part
from rbmle.engine.exponential_family import root
from rbmle.engine.hashing import mix, unit

STATE, TIME = 0, 1  # of `place`


@inlined
def successor(
    cumulative: Float[np.ndarray, "states actions states"], s: int, a: int, key: int, t: int
) -> int:
    """Return the state after s and a, in step t."""
    u = unit(mix(key, t))
    j = 0
    while u >= cumulative[s, a, j]:
        j += 1
    return j


@kernel
def step(
    cumulative: Float[np.ndarray, "states actions states"], s: int, a: int, key: np.uint64, t: int
) -> int:
    """Return the state after s and a, in step t."""
    return successor(cumulative, s, a, key, t)


@kernel
def follow(
    cumulative: Float[np.ndarray, "states actions states"],
    gaps: Float[np.ndarray, "states actions"],
    policy: Int[np.ndarray, " states"],
    limits: Int[np.ndarray, "states actions"],
    end: int,
    key: np.uint64,
    regret: float,
    place: Int[np.ndarray, "2"],
    counts: Int[np.ndarray, "states actions states"],
    visits: Int[np.ndarray, "states actions"],
) -> tuple[float, bool]:
    """Follow a policy to the end, or until a state and action have been visited as often as their limit.

    Counts, visits and the place are written; the regret, what was given included, is returned, and whether a
    limit was reached.
    """
    s, t = place[STATE], place[TIME]
    is_over = False
    while t < end and not is_over:
        a = policy[s]
        j = successor(cumulative, s, a, key, t)
        regret += gaps[s, a]
        counts[s, a, j] += 1
        visits[s, a] += 1
        is_over = visits[s, a] >= limits[s, a]
        s = j
        t += 1
    place[STATE], place[TIME] = s, t
    return regret, is_over


@in_order
def likeliest(
    log_likelihoods: Float[np.ndarray, " models"],
    log_gains: Float[np.ndarray, " models"],
    alpha: float,
) -> int:
    """Return the first argmax of log L(θ) + α log J*(θ)."""
    best, place = -np.inf, 0
    for k in range(log_gains.shape[0]):
        value = log_likelihoods[k] + alpha * log_gains[k]
        if value > best:
            best, place = value, k
    return place


@kernel
def identify(
    log_likelihoods: Float[np.ndarray, " models"],
    log_gains: Float[np.ndarray, " models"],
    alpha: float,
) -> int:
    """Return the first argmax of log L(θ) + α log J*(θ)."""
    return likeliest(log_likelihoods, log_gains, alpha)


@kernel
def follow_likeliest(
    cumulative: Float[np.ndarray, "states actions states"],
    gaps: Float[np.ndarray, "states actions"],
    log_p: Float[np.ndarray, "models states actions states"],
    log_gains: Float[np.ndarray, " models"],
    policies: Int[np.ndarray, "models states"],
    alphas: Float[np.ndarray, " steps"],
    key: np.uint64,
    regret: float,
    place: Int[np.ndarray, "2"],
    log_likelihoods: Float[np.ndarray, " models"],
) -> float:
    """In each step, do what is best for argmax_θ { log L(θ) + α log J*(θ) }, and learn from it.

    The log-likelihoods and the place are written; the regret, what was given included, is returned.
    """
    s, t = place[STATE], place[TIME]
    for i in range(alphas.shape[0]):
        a = policies[likeliest(log_likelihoods, log_gains, alphas[i]), s]
        j = successor(cumulative, s, a, key, t)
        regret += gaps[s, a]
        for k in range(log_likelihoods.shape[0]):
            log_likelihoods[k] += log_p[k, s, a, j]
        s = j
        t += 1
    place[STATE], place[TIME] = s, t
    return regret


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
    y: float,
    problem: tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"], float, float],
) -> float:
    """Return the logarithm of the loss at x = eʸ, less that of the radius; it is almost a line."""
    p, h, top, radius = problem
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
        rest, problem = 0.0, (p, h, top, radius)
        near, far = math.log(x), math.log(enough(p, h, top, radius))
        there = log_divergence(far, problem)
        x = math.exp(
            root(log_divergence, problem, near, math.log(here / radius), far, there, CLOSE)
        )
    value, mass = 0.0, 0.0
    for j in range(states):
        if p[j] > 0.0:
            q = p[j] / (x + (top - h[j]))
            mass += q
            value += q * (top - h[j])
    return (1.0 - rest) * (top - value / mass) + rest * limit


# What p is: true, within an L1 ball of the true one, weighed by its likelihood, or within a KL ball.
KNOWN, DISTANCE, LIKELIHOOD, DIVERGENCE = range(4)
DAMPING = 0.9  # τ


@kernel
def iterate(
    kind: int,
    p: Float[np.ndarray, "states actions states"],
    rewards: Float[np.ndarray, "states actions"],
    slack: Float[np.ndarray, "states actions"],
    tolerance: float,
    most: int,
    h: Float[np.ndarray, " states"],
    policy: Int[np.ndarray, " states"],
) -> tuple[float, float]:
    """Write h and the greedy policy; return the gain and how far from it the true one can be.

    `slack` is the radius of each ball, or the weight of each KL loss. It ends when the error is at most
    the tolerance, or after `most` iterations. Of equal actions the first is taken.
    """
    states, actions = rewards.shape
    values = np.empty(states)
    order = np.arange(states)
    gain, error = 0.0, np.inf
    for _ in range(most):
        if kind == DISTANCE:
            order = np.argsort(h)
        low, high = np.inf, -np.inf
        for s in range(states):
            best = -np.inf
            for a in range(actions):
                if kind == KNOWN:
                    ahead = expectation(p[s, a], h)
                elif kind == DISTANCE:
                    ahead = within_distance(p[s, a], h, order, slack[s, a])
                elif kind == DIVERGENCE:
                    ahead = within_divergence(p[s, a], h, slack[s, a])
                else:
                    ahead = within_likelihood(p[s, a], h, slack[s, a])
                if rewards[s, a] + ahead > best:
                    best = rewards[s, a] + ahead
                    policy[s] = a
            difference = best - h[s]
            values[s] = h[s] + DAMPING * difference
            low, high = min(low, difference), max(high, difference)
        for s in range(states):
            h[s] = values[s] - values[0]
        gain, error = (low + high) / 2.0, (high - low) / 2.0
        if error <= tolerance:
            break
    return gain, error
