"""The appendix: the neural tangent kernel H, the effective dimension d̃, and the bound."""

import numpy as np
import pytest

from rbmle.core.errors import RBMLEError
from rbmle.likelihoods import Bernoulli, Gaussian, Mixture
from rbmle.theory import (
    assumption_1,
    conditions,
    confidence_radius,
    curvature_bounds,
    effective_dimension,
    ga_bound,
    ntk,
    pc_bound,
    regret_bound,
    reward_norm,
)
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
    from rbmle.core.encoding import per_arm
    from rbmle.engine.precision import gram
    from rbmle.models.precision import differentiate_rows
    from tests.samples import double

    network = double(width=200_000, start="paired")
    half = rng(1).normal(size=(4, 3))
    half /= np.linalg.norm(half, axis=1, keepdims=True) * 2**0.5
    X = np.concatenate([half, half], axis=1)
    net = network.init(1, 6, rng(2))
    _, g = differentiate_rows(net, per_arm(X, 6).rows)
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


def test_the_norm_of_a_reward_function_is_that_of_a_hand() -> None:
    """H = diag(2, 8), h = (1, 2): √(2 (1/2 + 4/8)) = √2."""
    assert reward_norm(np.array([1.0, 2.0]), np.diag([2.0, 8.0])) == pytest.approx(2**0.5)


def test_the_terms_of_the_bounds_are_those_of_a_hand() -> None:
    """T = 4, K = 1, H = λ (e − 1) I: log det(I + H/λ) = 4. δ = e^{−½}: γ̄ = ½ √6 + √λ S, γ = ½ √5 + √λ S."""
    H = 0.25 * (np.e - 1) * np.eye(4)
    given = {"rounds": 4, "norm": 2.0, "ridge": 0.25, "noise": 0.5, "delta": np.exp(-0.5)}
    gamma = 0.5 * 6**0.5 + 1
    assert confidence_radius(4.0, norm=2.0, ridge=0.25, noise=0.5, delta=np.exp(-0.5)) == (
        pytest.approx(gamma)
    )
    ga = ga_bound(H, **given, bias=3.0, zeta=lambda t: 1e12)
    alphas = 3 * np.sqrt([1, 2, 3, 4])
    assert ga.estimation == pytest.approx(2 * gamma * (2 * 4 * 5) ** 0.5)
    assert ga.bias == pytest.approx(4 * 6 * 5)
    assert ga.lack == pytest.approx(gamma**2 / 4 * (1 / alphas).sum())
    assert ga.chance == pytest.approx(np.pi**2 / 6)
    assert ga.early == 0
    assert ga.total == ga.estimation + ga.bias + ga.lack + ga.chance
    pc, radius = pc_bound(H, **given), 0.5 * 5**0.5 + 1
    assert pc.total == pytest.approx(2 * radius * 2 * 10**0.5 + 2 * 10 + 2 * radius**2)


def test_a_growing_zeta_and_two_curvatures_by_hand() -> None:
    """T = 4 and D = 5 as above, L_b = 1 and U_b = 2: κ = 2. ζ = 8 = 2κ² in round 1, then 16: c = 16/12.

    1 + κc = 11/3; the bias is at most (11/3) α(4)/L_b · 2D = (11/3) 6 · 10 = 220.
    """
    H = 0.25 * (np.e - 1) * np.eye(4)
    gamma = 0.5 * 6**0.5 + 1
    ga = ga_bound(
        H,
        rounds=4,
        norm=2.0,
        noise=0.5,
        delta=np.exp(-0.5),
        ridge=0.25,
        bias=3.0,
        curvature=(1.0, 2.0),
        zeta=lambda t: 8.0 if t < 2 else 16.0,
    )
    assert ga.early == 1
    assert ga.estimation == pytest.approx(11 / 3 * gamma * (3 * 10) ** 0.5)
    assert ga.bias == pytest.approx(220)
    late = 1 / (3 * np.sqrt([2, 3, 4]))
    assert ga.lack == pytest.approx(2 / 4 * 4 / 3 * gamma**2 * late.sum())
    assert ga.total == pytest.approx(ga.estimation + ga.bias + ga.lack + ga.chance + 1)


def test_a_multiple_of_a_likelihood_has_the_same_bound() -> None:
    """ℓ_λ + α f and a multiple of it choose alike: λ and α are multiplied with L_b and U_b."""
    H = ntk(np.ones((20, 1)), blocks=np.tile([0, 1], 10))

    def bound(factor: float) -> float:
        curvature = (0.8 * factor, factor)
        found = ga_bound(
            H, rounds=10, norm=1.0, ridge=0.1 * factor, bias=0.3 * factor, curvature=curvature
        )
        return found.total

    assert bound(0.1) == pytest.approx(bound(1.0))
    assert bound(0.5) == pytest.approx(bound(1.0))
    assert bound(3.0) == pytest.approx(bound(1.25))  # with L_b = 1, the smallest that will do


def test_equation_7_of_the_proof_holds_only_with_its_constants_swapped() -> None:
    """One dimension, Z̄ = 1 and U_t = L_b = ½, U_b = ⅝: for g = 1 and g* = 0 the left side is 2."""
    L_b, U_b, g, best = 0.5, 0.625, 1.0, 0.0
    left = g**2 / L_b - best**2 / L_b
    assert left == 2.0
    assert g**2 / U_b - best**2 / L_b == 1.6  # as printed: 2 ≤ 1.6 is false
    for curvature in (L_b, 0.55, U_b):
        for g, best in ((1.0, 0.0), (0.0, 1.0), (0.7, 0.4)):
            left = g**2 / curvature - best**2 / curvature
            assert left <= g**2 / L_b - best**2 / U_b + 1e-12


def test_the_completed_square_keeps_a_factor_that_the_proof_drops() -> None:
    """e = 1, y = 0, α = 1, L_b = U_b = 1, ζ = 2: Ψ(x) = x − x²/2 has the maximum ½, and the proof ¼."""
    x = np.linspace(-5, 5, 100_001)
    assert (x + (1 / 2 - 1) * x**2).max() == pytest.approx(1 / 2)
    printed, factor = 1 / 4, 2 / (2 - 1)  # e² L_b/(4α), and ζ/(ζ − 1)
    assert printed * factor == 1 / 2
    for L, U, zeta, alpha, e, y in ((1.0, 1.0, 3.0, 0.5, 0.3, 0.8), (0.8, 1.0, 5.0, 2.0, 1.0, 0.1)):
        c = zeta / (zeta - (U / L) ** 2)
        psi = (e + 2 * alpha * y / L) * x + alpha * (U / (L**2 * zeta) - 1 / U) * x**2
        round_12 = e * y + alpha * y**2 / L + psi.max()
        kappa = U / L
        bound = (1 + kappa * c) * (e * y + alpha * y**2 / L) + U * c * e**2 / (4 * alpha)
        assert round_12 == pytest.approx(bound, rel=1e-6)


def test_the_bound_is_vacuous_where_assumption_1_holds() -> None:
    """H ⪰ λI gives log det(I + H/λ) ≥ TK log 2, so that √T times it is above T from the second round on."""
    for seed in range(10):
        X = rng(seed).normal(size=(12, 4))
        X = np.concatenate([X, X], axis=1)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        assert assumption_1(X, ridge=0.001).holds
        assert regret_bound(ntk(X), rounds=6, ridge=0.001) > 6
        assert ga_bound(ntk(X), rounds=6, norm=0.0).is_vacuous
        assert pc_bound(ntk(X), rounds=6, norm=0.0).is_vacuous


def test_the_bound_is_not_vacuous_where_contexts_repeat() -> None:
    """Two arms, each with one context in all T rounds: H has the eigenvalues T (1.5 ± 1/π), and no others."""
    T, ridge = 1000, 0.01
    H = ntk(np.ones((2 * T, 1)), blocks=np.tile([0, 1], T))
    logarithms = np.log(1 + T * (1.5 + np.array([1, -1]) / np.pi) / ridge)
    assert regret_bound(H, rounds=T, ridge=ridge) == pytest.approx(T**0.5 * logarithms.sum())
    norm = reward_norm(np.array([1.0, 0.0]), ntk(np.ones((2, 1)), blocks=np.array([0, 1])))
    assert not ga_bound(H, rounds=T, norm=norm, ridge=ridge, bias=0.1, noise=0.1).is_vacuous


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (np.array([[0.6, 0.8, 0.6, 0.8], [0.8, -0.6, 0.8, -0.6]]) / 2**0.5, (True, True, True)),
        (np.array([[0.6, 0.8], [0.8, -0.6]]), (True, True, False)),
        (np.array([[3.0, 3.0], [1.0, 1.0]]), (False, False, True)),
        (np.array([[1.0, 1.0], [1.0, 1.0]]) / 2**0.5, (False, True, True)),
    ],
)
def test_assumption_1_is_checked_part_by_part(X: np.ndarray, parts: tuple[bool, ...]) -> None:
    found = assumption_1(X, ridge=0.01)
    assert (found.is_positive, found.are_of_length_one, found.are_paired) == parts
    assert found.holds == all(parts)
    assert found.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(ntk(X)).min(), abs=1e-12)


def test_curvatures_are_those_of_the_second_derivative() -> None:
    assert curvature_bounds(Gaussian()) == pytest.approx((1.0, 1.0))
    at = 1 / (1 + np.exp(-3.0))
    assert curvature_bounds(Bernoulli(), reach=3.0) == pytest.approx(
        (at * (1 - at), 0.25), rel=1e-3
    )
    assert curvature_bounds(Mixture(), reach=30.0) == pytest.approx((0.5, 0.625), rel=1e-3)


def test_the_conditions_hold_with_equality() -> None:
    """With T = 10, K = 2, L = 2, λ = ½ and δ = 0.1, in logarithms; m stands on both sides."""
    found = conditions(rounds=10, arms=2, ridge=0.5, delta=0.1)
    log_m = found.log10_width * np.log(10)
    first = 16 * np.log(10) + 7 * np.log(2) + 24 * np.log(2) + 3 * np.log(log_m)
    second = 6 * np.log(40) + 0.5 * np.log(2) + 1.5 * np.log(np.log(800))
    assert log_m == pytest.approx(max(first, second))
    assert found.log10_rate == pytest.approx(-np.log10(0.5 + 20) - found.log10_width)
    assert found.steps == 40
    wider = conditions(rounds=10, arms=2, ridge=0.5, delta=0.1, algorithm="pc")
    assert wider.log10_width == pytest.approx(found.log10_width + 5, abs=0.3)
    assert wider.steps == 0


def test_bad_input_is_refused() -> None:
    for attempt in (
        lambda: ntk(np.array([1.0, 2.0])),
        lambda: ntk(np.array([[np.nan, 2.0]])),
        lambda: ntk(np.eye(2), depth=1),
        lambda: effective_dimension(np.eye(2), ridge=0.0),
        lambda: regret_bound(np.eye(5), rounds=2, ridge=1.0),
        lambda: ga_bound(np.eye(5), rounds=2, norm=1.0),
        lambda: ga_bound(np.eye(2), rounds=2, norm=1.0, curvature=(0.0, 0.25)),
        lambda: pc_bound(np.eye(2), rounds=2, norm=1.0, ridge=0.0),
        lambda: conditions(rounds=0, arms=2, ridge=1.0),
        lambda: curvature_bounds(Gaussian(), reach=0.0),
    ):
        with pytest.raises(RBMLEError):
            attempt()
