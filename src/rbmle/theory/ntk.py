"""The neural tangent kernel of contexts, its effective dimension, and the paper's Assumption 1."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.checks import check_positive
from rbmle.core.errors import ContextError, SettingError

TOLERANCE = 1e-6  # of lengths and halves, which single precision keeps


def ntk(
    X: Float[np.ndarray, "n features"],
    *,
    depth: int = 2,
    blocks: Int[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "n n"]:
    """Return H = (H̃^L + Σ^L)/2 for the rows of X, of a ReLU network with L = depth layers.

    Σ^1 = H̃^1 = ⟨x_i, x_j⟩, Σ^{l+1} = 2 E[σ(u)σ(v)], H̃^{l+1} = 2 H̃^l E[σ′(u)σ′(v)] + Σ^{l+1}, with
    (u, v) ~ N(0, A) and A = ((Σ^l_ii, Σ^l_ij), (Σ^l_ij, Σ^l_jj)). The paper prints Σ^l_ij in all four
    places of A, which would be no covariance for Σ^l_ij < 0; the definition it cites is this one.

    With `blocks`, contexts are disjoint: rows of different blocks are orthogonal.

    >>> ntk(np.eye(2)).round(4)
    array([[1.5   , 0.3183],
           [0.3183, 1.5   ]])
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not np.isfinite(X).all():
        raise ContextError(
            f"contexts of shape {X.shape} have no kernel; give a matrix of finite numbers, a row each"
        )
    if depth < 2:
        raise SettingError(f"`depth` must be at least 2, got {depth}")
    sigma = X @ X.T  # Σ^1
    if blocks is not None:
        sigma *= np.equal.outer(blocks, blocks)
    tangent = sigma.copy()  # H̃^1
    for _ in range(depth - 1):
        variance = np.sqrt(np.outer(sigma.diagonal(), sigma.diagonal()))
        cosine = np.divide(sigma, variance, out=np.zeros_like(sigma), where=variance > 0)
        angle = np.arccos(np.clip(cosine, -1, 1))
        slopes = (np.pi - angle) / (2 * np.pi)  # E[σ′(u)σ′(v)]
        sigma = variance * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
        tangent = 2 * tangent * slopes + sigma
    return (tangent + sigma) / 2


def effective_dimension(H: Float[np.ndarray, "n n"], *, ridge: float) -> float:
    """Return d̃ = log det(I + H/λ)/log(1 + TK/λ) for the kernel H of TK contexts.

    >>> round(effective_dimension(np.eye(4), ridge=1.0), 4)  # 4 log 2/log 5
    1.7227
    """
    check_positive("ridge", ridge)
    n = len(H)
    _, log_determinant = np.linalg.slogdet(np.eye(n) + np.asarray(H) / ridge)
    return float(log_determinant / np.log(1 + n / ridge))


def regret_bound(H: Float[np.ndarray, "n n"], *, rounds: int, ridge: float) -> float:
    """Return √T · d̃ · log(1 + TK/λ), the bound of Theorems 1 and 2 up to its constant.

    H is the kernel of the contexts of all arms in all T rounds, n = TK of them.

    >>> round(regret_bound(np.eye(4), rounds=2, ridge=1.0), 4)  # √2 · 4 log 2
    3.921
    """
    n = len(H)
    if rounds < 1 or n % rounds:
        raise SettingError(
            f"{n} contexts cannot be those of {rounds} rounds; give the kernel of the contexts of all "
            "arms in all rounds"
        )
    return float(rounds**0.5 * effective_dimension(H, ridge=ridge) * np.log(1 + n / ridge))


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
        """Return whether all three parts hold."""
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
