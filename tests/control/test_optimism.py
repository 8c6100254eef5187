"""The optimistic values of a next state: by hand, on a fine grid of distributions, by the dual problem."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from rbmle.engine.markov import within_distance, within_divergence, within_likelihood

GRID = np.array([(i, j, 200 - i - j) for i in range(201) for j in range(201 - i)]) / 200


@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.5, 0.5, 0.0), (0.0, 1.0, 0.0)])
@pytest.mark.parametrize("weight", [0.1, 1.0, 5.0, 100.0])
def test_the_likelihood_is_weighed_against_the_value(
    p: tuple[float, float, float], weight: float
) -> None:
    p_hat, h = np.array(p), np.array([0.0, 1.0, 3.0])
    found = within_likelihood(p_hat, h, weight)
    seen = p_hat > 0
    with np.errstate(divide="ignore"):
        losses = (p_hat[seen] * (np.log(p_hat[seen]) - np.log(GRID[:, seen]))).sum(axis=1)
    best = (GRID @ h - weight * losses).max()
    assert best - 1e-12 <= found <= best + 0.02


def test_two_states_with_a_weight_of_one_by_hand() -> None:
    """p = (½, ½), h = (0, 1): ½/ν + ½/(ν − 1) = 1 at ν = 1 + 1/√2, so q = (0.2929, 0.7071)."""
    q = np.array([1 - 1 / math.sqrt(2), 1 / math.sqrt(2)])
    by_hand = q[1] - 0.5 * (math.log(0.5 / q[0]) + math.log(0.5 / q[1]))
    found = within_likelihood(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 1.0)
    assert found == pytest.approx(by_hand, abs=1e-12)


def test_without_observations_the_best_state_follows() -> None:
    assert within_likelihood(np.full(3, 1 / 3), np.array([0.0, 1.0, 3.0]), 0.0) == 3.0


def test_an_unseen_state_gets_mass_while_the_loss_is_small() -> None:
    """p = e_0, h = (0, 2): q_1 = ε gains 2ε and loses −w log(1 − ε), so w < 2 is where hope begins."""
    p, h = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert within_likelihood(p, h, 2.0) == pytest.approx(0.0, abs=1e-12)
    assert within_likelihood(p, h, 1.0) == pytest.approx(2 * 0.5 + math.log(0.5), abs=1e-12)


@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.5, 0.5, 0.0), (0.0, 1.0, 0.0)])
@pytest.mark.parametrize("radius", [0.0, 0.1, 0.7, 2.0, 9.0])
def test_the_best_distribution_of_a_ball_is_found(
    p: tuple[float, float, float], radius: float
) -> None:
    p_hat, h = np.array(p), np.array([3.0, 0.0, 1.0])
    is_near = np.abs(GRID - p_hat).sum(axis=1) <= radius + 1e-12
    best = (GRID[is_near] @ h).max()
    assert within_distance(p_hat, h, np.argsort(h), radius) == pytest.approx(best, abs=1e-9)


def test_two_states_within_a_divergence_by_hand() -> None:
    """p = (½, ½), q = (⅕, ⅘): KL = −½ log(4 · ⅕ · ⅘) = log(5/4)."""
    p, h = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    assert within_divergence(p, h, math.log(5 / 4)) == pytest.approx(0.8, abs=1e-10)


def test_an_unseen_state_gets_the_mass_that_the_divergence_allows() -> None:
    """p = e_0: q_1 = ½ has KL = log 2. p = (½, ½, 0), h = (0, 1, 2): with ν = 2, q ∝ (¼, ½) and q_2 = ½."""
    p, h = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert within_divergence(p, h, math.log(2)) == pytest.approx(1.0, abs=1e-12)
    p, h = np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 2.0])
    radius = -0.5 * (math.log(2 * 1 / 6) + math.log(2 * 1 / 3))  # of q = (1/6, 1/3, 1/2)
    assert within_divergence(p, h, radius) == pytest.approx(1 / 3 + 1, abs=1e-12)


def test_a_state_that_was_never_seen_gets_nothing_where_the_divergence_is_better_spent() -> None:
    """As above, but −½ log(4 q (1 − q)) = 0.01 leaves ν above 2: the third state is as if it were not there."""
    p, h = np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0, 2.0])
    q = (1 + math.sqrt(1 - math.exp(-0.02))) / 2
    assert within_divergence(p, h, 0.01) == pytest.approx(q, abs=1e-10)


@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.5, 0.5, 0.0), (0.0, 1.0, 0.0)])
def test_with_any_divergence_allowed_the_best_state_follows(p: tuple[float, float, float]) -> None:
    assert within_divergence(np.array(p), np.array([0.0, 1.0, 3.0]), np.inf) == 3.0
    assert within_divergence(np.array(p), np.array([0.0, 1.0, 3.0]), 800.0) == pytest.approx(3.0)


@pytest.mark.parametrize("radius", [1e-7, 0.3, 50.0])
def test_equal_values_are_their_own_best(radius: float) -> None:
    assert within_divergence(np.array([0.1, 0.9]), np.array([2.0, 2.0]), radius) == 2.0


def test_three_hundred_random_rows_have_the_best_values_of_the_dual_problem() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        states, visits = int(rng.integers(2, 7)), int(10 ** rng.uniform(0, 5))
        p = rng.multinomial(visits, rng.dirichlet(np.full(states, 0.5))) / visits
        h, radius = rng.normal(size=states), float(10 ** rng.uniform(-5, 1))
        assert within_divergence(p, h, radius) == pytest.approx(_by_scipy(p, h, radius), abs=1e-8)


def _by_scipy(p: np.ndarray, h: np.ndarray, radius: float) -> float:
    """Return min_ν { ν − exp(Σ p_j log(ν − h_j) − radius) } over ν ≥ max h, which is Lagrange's dual."""
    limit, spread = float(h.max()), float(np.ptp(h))

    def dual(nu: float) -> float:
        with np.errstate(divide="ignore"):
            return nu - math.exp(p[p > 0] @ np.log(nu - h[p > 0]) - radius)

    far = limit + spread * (1 + 1 / math.sqrt(radius))
    found = minimize_scalar(dual, bounds=(limit, far), method="bounded", options={"xatol": 1e-10})
    return min(float(found.fun), dual(limit))
