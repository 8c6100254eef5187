"""Perturbed rewards that are held for a while: in each round, some of them are drawn anew."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel
from rbmle.engine.hashing import below, mix, normal


@kernel
def redraw(
    rewards: Float[np.ndarray, " slots"],
    count: int,
    times: int,
    noise: float,
    key: np.uint64,
    perturbed: Float[np.ndarray, " slots"],
) -> None:
    """Write r_s + noise · ε, with ε ~ N(0, 1), for some of the first `count` rewards, drawn at random."""
    for j in range(times):
        bits = mix(key, j)
        s = below(bits, count)
        perturbed[s] = rewards[s] + noise * normal(bits, j)
