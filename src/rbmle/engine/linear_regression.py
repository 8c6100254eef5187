"""Linear regression that predicts each round before it learns from it."""

import math

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.types import Rows
from rbmle.engine.compiled import kernel


@kernel
def predict_then_learn(
    rows: Rows,
    sizes: Int[np.ndarray, " rounds"],
    played: Int[np.ndarray, " rounds"],
    rewards: Float[np.ndarray, " rounds"],
    rate: float,
    theta: Float[np.ndarray, "blocks features+1"],
    squares: Float[np.ndarray, "blocks features+1"],
    scales: Float[np.ndarray, "blocks features+1"],
    predictions: Float[np.ndarray, " arms"],
) -> None:
    """Write f = θᵀz of every arm of a round, then take a step of AdaGrad for the arm that was played.

    z_j = x_j/(s_j √k) for the k features of a row, where s_j is the largest |x_j| so far: so shift and
    scale of features do not decide how fast they are learned. The last feature is the constant 1.
    """
    starts, lengths, blocks, indices, values = rows
    last, first = theta.shape[1] - 1, 0
    for t in range(sizes.shape[0]):
        for i in range(first, first + sizes[t]):
            b, root = blocks[i], math.sqrt(max(1.0, float(lengths[i])))
            f = theta[b, last]
            for k in range(starts[i], starts[i] + lengths[i]):
                j = indices[k]
                if scales[b, j] > 0.0:
                    f += theta[b, j] * values[k] / (scales[b, j] * root)
            predictions[i] = f
        i = first + played[t]
        b, root = blocks[i], math.sqrt(max(1.0, float(lengths[i])))
        error = predictions[i] - rewards[t]
        for k in range(starts[i], starts[i] + lengths[i]):
            j = indices[k]
            scales[b, j] = max(scales[b, j], abs(values[k]))
            if scales[b, j] > 0.0:
                g = error * values[k] / (scales[b, j] * root)
                squares[b, j] += g * g
                if squares[b, j] > 0.0:
                    theta[b, j] -= rate * g / math.sqrt(squares[b, j])
        squares[b, last] += error * error
        if squares[b, last] > 0.0:
            theta[b, last] -= rate * error / math.sqrt(squares[b, last])
        first += sizes[t]
