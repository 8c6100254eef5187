"""log L(P) = Σ N(s, a, s′) log P(s′ | s, a): the likelihood of the transitions that were counted."""

import numpy as np
from jaxtyping import Float, Int


def log_likelihood(
    transitions: Float[np.ndarray, "states actions states"],
    counts: Int[np.ndarray, "states actions states"],
) -> float:
    """Return Σ N log P; −∞ if something was seen that P excludes.

    >>> import numpy as np
    >>> round(log_likelihood(np.array([[[0.25, 0.75]]]), np.array([[[1, 2]]])), 4)
    -1.9617
    """
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float((counts[seen] * np.log(transitions[seen])).sum())


def frequencies(
    counts: Int[np.ndarray, "states actions states"],
) -> Float[np.ndarray, "states actions states"]:
    """Return the P of the largest likelihood, N(s, a, s′)/N(s, a); uniform where nothing was seen.

    >>> import numpy as np
    >>> frequencies(np.array([[[1, 3], [0, 0]]])).tolist()
    [[[0.25, 0.75], [0.5, 0.5]]]
    """
    visits = counts.sum(axis=2, keepdims=True)
    return np.where(visits > 0, counts / np.maximum(visits, 1), 1 / counts.shape[2])
