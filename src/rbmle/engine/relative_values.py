"""Relative value iteration, h ← T h − (T h)₀, for a known MDP and for optimistic ones.

The operator is damped, T′h = τ T h + (1 − τ) h, so that chains with a period converge too (Puterman 1994,
section 8.5.4); gain and policy are those of T.
"""

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import kernel
from rbmle.engine.optimism import (
    expectation,
    within_distance,
    within_divergence,
    within_likelihood,
)

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
