"""Steps of a controlled Markov chain; the random number of step t is a function of (key, t)."""

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import in_order, inlined, kernel
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
