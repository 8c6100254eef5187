"""Whether given contexts are as the paper's Assumption 1 has them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.theory.ntk import ntk

TOLERANCE = 1e-6  # of lengths and halves, which single precision keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption1:
    """H ⪰ λI, and for all contexts ‖x‖ = 1 and x_j = x_{j+d/2}."""

    smallest_eigenvalue: float  # of H
    ridge: float  # λ
    are_of_length_one: bool
    are_paired: bool

    @property
    def is_positive(self) -> bool:
        """Return whether H ⪰ λI."""
        return self.smallest_eigenvalue >= self.ridge

    @property
    def holds(self) -> bool:
        """Return whether all of it holds."""
        return self.is_positive and self.are_of_length_one and self.are_paired


def assumption_1(
    X: Float[np.ndarray, "n features"],
    *,
    ridge: float,
    depth: int = 2,
    blocks: Int[np.ndarray, " n"] | None = None,
) -> Assumption1:
    """Return which parts of Assumption 1 hold for contexts, the rows of X; for blocks see `ntk`.

    Two contexts that are parallel, or the same one in two rounds, make H singular.

    >>> assumption_1(np.array([[1.0, 1.0], [1.0, 1.0]]) / 2**0.5, ridge=0.001).is_positive
    False
    """
    X = np.asarray(X, dtype=np.float64)
    H = ntk(X, depth=depth, blocks=blocks)
    half = X.shape[1] // 2
    return Assumption1(
        smallest_eigenvalue=float(np.linalg.eigvalsh(H)[0]),
        ridge=ridge,
        are_of_length_one=bool(np.allclose((X**2).sum(axis=1), 1, atol=TOLERANCE)),
        are_paired=X.shape[1] % 2 == 0
        and bool(np.allclose(X[:, :half], X[:, half:], atol=TOLERANCE)),
    )
