"""The appendix: the neural tangent kernel H, the effective dimension d̃, and the bound."""

import numpy as np
import pytest

from rbmle.core.errors import RBMLEError
from rbmle.theory import effective_dimension, ntk, regret_bound
from tests.samples import rng


def test_the_kernel_of_one_unit_context_is_that_of_a_hand() -> None:
    """Σ^l = 1 for all l, and H̃^{l+1} = H̃^l + 1: H = (L + 1)/2."""
    for depth in (2, 3, 5):
        np.testing.assert_allclose(ntk(np.array([[0.6, 0.8]]), depth=depth), [[(depth + 1) / 2]])


@pytest.mark.parametrize("depth", [2, 3])
def test_the_kernel_is_its_definition_by_monte_carlo(depth: int) -> None:
    """E[σ(u)σ(v)] and E[σ′(u)σ′(v)] by 400,000 draws of (u, v) for each pair."""
    X = rng(1).normal(size=(4, 3))
    draws = rng(2).normal(size=(400_000, 2))
    n = len(X)
    sigma = X @ X.T
    tangent = sigma.copy()
    for _ in range(depth - 1):
        products, slopes = np.empty((n, n)), np.empty((n, n))
        for i in range(n):
            for j in range(n):
                A = np.array([[sigma[i, i], sigma[i, j]], [sigma[i, j], sigma[j, j]]])
                values, vectors = np.linalg.eigh(A)
                u, v = ((draws * np.sqrt(np.maximum(values, 0))) @ vectors.T).T
                products[i, j] = (np.maximum(u, 0) * np.maximum(v, 0)).mean()
                slopes[i, j] = ((u > 0) & (v > 0)).mean()
        sigma = 2 * products
        tangent = 2 * tangent * slopes + sigma
    np.testing.assert_allclose(ntk(X, depth=depth), (tangent + sigma) / 2, rtol=0.02, atol=0.02)


def test_the_kernel_is_the_limit_of_gradients_of_wide_networks() -> None:
    """⟨g(x), g(x′)⟩/m at θ₀ tends to ⟨x, x′⟩ E[σ′σ′] + ½ Σ² for the paper's start with L = 2.

    H has ⟨x, x′⟩ E[σ′σ′] + Σ²: with the variances 4/m and 2/m of Zhou et al. (2020), in the place of
    2/m and 1/m, the limit would be 2 ⟨x, x′⟩ E[σ′σ′] + Σ².
    """
    from rbmle.core.contexts import per_arm
    from rbmle.engine.precision_exact import gram
    from rbmle.models.precision_exact import differentiated
    from tests.samples import double

    network = double(width=200_000, start="paired")
    half = rng(1).normal(size=(4, 3))
    half /= np.linalg.norm(half, axis=1, keepdims=True) * 2**0.5
    X = np.concatenate([half, half], axis=1)
    net = network.init(1, 6, rng(2))
    _, g = differentiated(net, per_arm(X, 6).rows)
    kernel, squares = np.empty((4, 4)), np.empty(4)
    gram(net, g, 4, g, kernel, squares)
    empirical = kernel / network.width
    S = X @ X.T
    angle = np.arccos(np.clip(S, -1, 1))
    slopes = (np.pi - angle) / (2 * np.pi)
    products = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    expected = slopes * S + products
    np.testing.assert_allclose(empirical, expected, rtol=0.02, atol=0.02)


def test_disjoint_contexts_are_orthogonal_across_blocks() -> None:
    X = rng(1).normal(size=(3, 2))
    long = np.zeros((3, 4))
    long[0, :2], long[1, 2:], long[2, :2] = X
    np.testing.assert_allclose(ntk(X, blocks=np.array([0, 1, 0])), ntk(long), atol=1e-12)


def test_the_effective_dimension_on_numbers_a_hand_can_check() -> None:
    """H = I of two contexts and λ = 0.5: log det(3 I)/log(1 + 2/0.5) = 2 log 3/log 5."""
    assert effective_dimension(np.eye(2), ridge=0.5) == pytest.approx(2 * np.log(3) / np.log(5))
    assert effective_dimension(np.zeros((3, 3)), ridge=1.0) == 0


def test_the_bound_is_that_of_the_theorems() -> None:
    """√T · d̃ · log(1 + TK/λ) = √T · log det(I + H/λ)."""
    H = ntk(rng(1).normal(size=(6, 3)))
    expected = 3**0.5 * np.linalg.slogdet(np.eye(6) + H / 0.1)[1]
    assert regret_bound(H, rounds=3, ridge=0.1) == pytest.approx(expected)


def test_bad_input_is_refused() -> None:
    for attempt in (
        lambda: ntk(np.array([1.0, 2.0])),
        lambda: ntk(np.array([[np.nan, 2.0]])),
        lambda: ntk(np.eye(2), depth=1),
        lambda: effective_dimension(np.eye(2), ridge=0.0),
        lambda: regret_bound(np.eye(5), rounds=2, ridge=1.0),
    ):
        with pytest.raises(RBMLEError):
            attempt()
