"""The likelihood of transitions, on numbers that a hand can check."""

import math

import numpy as np
import pytest

from rbmle.control import frequencies, log_likelihood, random_mdp

COUNTS = np.array([[[3, 1], [0, 0]], [[0, 2], [5, 5]]])


def test_the_log_likelihood_sums_over_observed_transitions() -> None:
    P = np.array([[[0.75, 0.25], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    by_hand = 3 * math.log(0.75) + math.log(0.25) + 2 * math.log(0.5) + 10 * math.log(0.5)
    assert log_likelihood(P, COUNTS) == pytest.approx(by_hand, rel=1e-14)


def test_an_observed_transition_that_is_impossible_has_likelihood_zero() -> None:
    P = np.zeros((2, 2, 2))
    P[:, :, 0] = 1.0
    assert log_likelihood(P, COUNTS) == -math.inf


def test_frequencies_are_likelier_than_anything_else() -> None:
    best = log_likelihood(frequencies(COUNTS), COUNTS)
    assert frequencies(COUNTS)[0].tolist() == [[0.75, 0.25], [0.5, 0.5]]
    for seed in range(50):
        assert log_likelihood(random_mdp(2, 2, seed).transitions, COUNTS) < best
