"""The optimistic values of a next state, against every distribution of a fine grid."""

import math

import numpy as np
import pytest

from rbmle.engine.optimism import within_distance, within_likelihood

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


def test_a_state_that_was_never_seen_is_hoped_for_while_the_loss_is_small() -> None:
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
