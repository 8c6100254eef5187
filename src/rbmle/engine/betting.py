"""The wealth of bets on every round, from which confidence sequences are computed."""

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import kernel

TOGETHER = 8  # factors that are multiplied before their logarithm is taken
LARGEST = (
    1e30  # ξ is clipped to it, which is conservative and keeps products of eight factors finite
)


@kernel
def bet(
    xi: Float[np.ndarray, " rounds"],
    bets: Float[np.ndarray, " bets"],
    log_wealth: Float[np.ndarray, " bets"],
) -> None:
    """Add Σ log(1 + κ ξ) to the logarithm of the wealth of each bet κ, for ξ ≥ 0."""
    products = np.ones(bets.shape[0])
    waiting = 0
    for t in range(xi.shape[0]):
        if xi[t] == 0.0:
            continue
        for j in range(bets.shape[0]):
            products[j] *= 1.0 + bets[j] * min(xi[t], LARGEST)
        waiting += 1
        if waiting == TOGETHER:
            for j in range(bets.shape[0]):
                log_wealth[j] += np.log(products[j])
                products[j] = 1.0
            waiting = 0
    for j in range(bets.shape[0]):
        log_wealth[j] += np.log(products[j])


@kernel
def bet_with_control(
    rewards: Float[np.ndarray, " rounds"],
    weights: Float[np.ndarray, " rounds"],
    sizes: Int[np.ndarray, " rounds"],
    at: Int[np.ndarray, " rounds"],
    chances: Float[np.ndarray, " arms"],
    falls: Float[np.ndarray, " arms"],
    controls: Float[np.ndarray, " arms"],
    share: float,
    bets: Float[np.ndarray, " bets"],
    log_wealth: Float[np.ndarray, " bets"],
) -> None:
    """Do the same for ξ = Σ_b π(b) q(b) + w (r − q(a)), whose control q is lowered so that κ ξ ≥ −share.

    If a is played, ξ is at least −q(a) f(a) with f(a) = π(a)/p(a) − π(a), so q(a) is at most share/(κ f(a)).
    """
    products = np.ones(bets.shape[0])
    waiting, first = 0, 0
    for t in range(rewards.shape[0]):
        last = first + sizes[t]
        expected, lowest = 0.0, 0.0
        for b in range(first, last):
            if chances[b] > 0.0 and controls[b] > 0.0:
                expected += chances[b] * controls[b]
                lowest = max(lowest, controls[b] * falls[b])
        w, r, a = weights[t], rewards[t], at[t]
        whole = expected + w * (r - controls[a])
        for j in range(bets.shape[0]):
            xi = whole
            if bets[j] * lowest > share:
                most = share / bets[j]
                xi = w * (r - min(controls[a], most / falls[a]))
                for b in range(first, last):
                    if chances[b] > 0.0:
                        xi += chances[b] * min(controls[b], most / falls[b])
            products[j] *= 1.0 + bets[j] * min(xi, LARGEST)
        waiting += 1
        if waiting == TOGETHER:
            for j in range(bets.shape[0]):
                log_wealth[j] += np.log(products[j])
                products[j] = 1.0
            waiting = 0
        first = last
    for j in range(bets.shape[0]):
        log_wealth[j] += np.log(products[j])
