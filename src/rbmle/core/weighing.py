"""Many rounds at once: probabilities with a floor, and the arms that are drawn from them."""

import numpy as np
from jaxtyping import Float, Int


def chances_of(
    indices: Float[np.ndarray, "rounds arms"], floor: float
) -> Float[np.ndarray, "rounds arms"]:
    """Return (1 − ε) for the largest index of a round, in equal parts if there are several, and ε/n for all.

    >>> chances_of(np.array([[0.1, 0.7, 0.3, 0.7]]), 0.2).round(2).tolist()
    [[0.05, 0.45, 0.05, 0.45]]
    """
    wins = indices == indices.max(axis=1, keepdims=True)
    return (1 - floor) * (wins / wins.sum(axis=1, keepdims=True)) + floor / indices.shape[1]


def drawn(
    chances: Float[np.ndarray, "rounds arms"], uniforms: Float[np.ndarray, " rounds"]
) -> Int[np.ndarray, " rounds"]:
    """Return the arm of each round on which a number from 0 to 1 falls.

    >>> drawn(np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([0.1, 0.3])).tolist()
    [0, 1]
    """
    edges = chances.cumsum(axis=1)
    arms = (edges <= (uniforms * edges[:, -1])[:, None]).sum(axis=1)
    return np.minimum(arms, chances.shape[1] - 1)
