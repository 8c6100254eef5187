"""Arms of an exponential family, log p(r; z) = r z − b(z), given by their plays N and the sum S of rewards.

Kernels take the addresses of b and b′, see `compiled.scalar`, so one kernel works for every likelihood.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import call_scalar, inlined, kernel

FARTHEST = 2.0**40  # that is searched for z
CLOSE = 1e-7  # relative error of z at which a search ends; the results depend on its square


@inlined
def shortfall(z: float, data: tuple[int, float]) -> float:
    """Return target − b′(z)."""
    mean, target = data
    return target - call_scalar(mean, z)


@inlined
def natural(mean: int, target: float) -> float:
    """Return z with b′(z) = target; if b′ is never so large or so small, the z from which on it stays."""
    here = target - call_scalar(mean, 0.0)
    if here == 0.0:
        return 0.0
    side = 1.0 if here > 0.0 else -1.0
    near, far = 0.0, side
    there = target - call_scalar(mean, far)
    while there * side > 0.0 and abs(far) < FARTHEST:
        beyond = target - call_scalar(mean, 2.0 * far)
        if beyond == there:
            return far
        near, here, far, there = far, there, 2.0 * far, beyond
    return root(shortfall, (mean, target), near, here, far, there, CLOSE)


@inlined
def fit(b: int, plays: float, total: float, z: float) -> float:
    """Return the log-likelihood S z − N b(z)."""
    return total * z - plays * call_scalar(b, z)


@kernel
def biased_maxima(
    b: int,
    mean: int,
    plays: Float[np.ndarray, " n"],
    totals: Float[np.ndarray, " n"],
    alpha: float,
    maxima: Float[np.ndarray, " n"],
) -> None:
    """Write max_z { S z − N b(z) + α z } − max_z { S z − N b(z) } of every arm that was played."""
    for i in range(plays.shape[0]):
        n, s = plays[i], totals[i]
        biased, plain = natural(mean, (s + alpha) / n), natural(mean, s / n)
        maxima[i] = fit(b, n, s + alpha, biased) - fit(b, n, s, plain)


@kernel
def divergence_bounds(
    b: int,
    mean: int,
    plays: Float[np.ndarray, " n"],
    totals: Float[np.ndarray, " n"],
    level: float,
    bounds: Float[np.ndarray, " n"],
) -> None:
    """Write the largest mean q with N KL(S/N ‖ q) ≤ level, of every arm that was played.

    N KL(S/N ‖ b′(z)) = max_ζ { S ζ − N b(ζ) } − { S z − N b(z) } falls short of the level by a concave function
    of z: Newton's steps come down to its root from above, and never pass it.
    """
    for i in range(plays.shape[0]):
        n, s = plays[i], totals[i]
        z = natural(mean, s / n)
        least = fit(b, n, s, z) - level
        step = 1.0
        while fit(b, n, s, z) > least and step < FARTHEST:
            z, step = z + step, 2.0 * step
        while step > CLOSE * max(abs(z), 1.0):
            slope = n * call_scalar(mean, z) - s
            step = (least - fit(b, n, s, z)) / slope if slope > 0.0 else 0.0
            z -= step
        bounds[i] = call_scalar(mean, z)


@inlined
def root(
    function: Callable[[float, Any], float],
    data: Any,
    near: float,
    here: float,
    far: float,
    there: float,
    close: float,
) -> float:
    """Return z with function(z, data) = 0, from its values `here` at `near` and `there` at `far`.

    The search is regula falsi, by Dowell and Jarratt (1971): an end that stays counts half, then a quarter, …
    It ends when the two ends are close, relative to z. A short step is not enough: the first ones are short
    where the function is steep at one end and flat at the other.
    """
    z = far
    while abs(far - near) > close * max(abs(z), 1.0) and there != 0.0:
        z = near + (far - near) * here / (here - there)
        value = function(z, data)
        if value * here > 0.0:
            near, here, there = z, value, 0.5 * there
        else:
            far, there, here = z, value, 0.5 * here
    return z


@kernel
def expectations(f: Float[np.ndarray, " n"], mean: int, expected: Float[np.ndarray, " n"]) -> None:
    """Write b′(f_i) for every context."""
    for i in range(f.shape[0]):
        expected[i] = call_scalar(mean, f[i])
