"""The neural tangent kernel H of the paper's appendix A (Jacot, Gabriel, Hongler 2018)."""

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import ContextError, SettingError


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
