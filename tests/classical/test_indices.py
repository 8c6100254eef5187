"""The indices of policies without contexts, on numbers a hand can check, and against brute force."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import xlogy

from rbmle.classical import KLUCB, RBMLE, UCB1, BetaTS, GaussianTS
from rbmle.classical.policies import UNPLAYED
from rbmle.core.errors import SettingError
from rbmle.likelihoods import Bernoulli, Gaussian, Mixture
from rbmle.policies.schedules import Power
from tests.samples import Exponential

RNG = np.random.default_rng(0)
PLAYS = np.array([1.0, 2.0, 5.0, 40.0, 40.0, 1000.0])
TOTALS = np.array([0.0, 2.0, 2.0, 3.5, 39.0, 400.0])
GRID = np.linspace(-40.0, 40.0, 800_001)


def of_played(policy: Any, t: int = 1) -> np.ndarray:
    return policy.of_played(PLAYS, TOTALS, t, RNG)


def test_the_gaussian_index_is_the_mean_and_half_the_bias_of_a_play() -> None:
    # p + α/(2N), with α(4) = 0.5 · √4 = 1
    found = of_played(RBMLE(likelihood=Gaussian(), bias=0.5, growth=Power()), t=4)
    np.testing.assert_allclose(found, TOTALS / PLAYS + 1 / (2 * PLAYS))


def test_the_bernoulli_index_is_a_difference_of_entropies() -> None:
    alpha = 0.1
    p = np.array([0.2, 0.5, 0.0])
    plays = np.array([10.0, 4.0, 3.0])
    q = p + alpha / plays
    expected = plays / alpha * (_negative_entropy(q) - _negative_entropy(p))
    found = RBMLE(bias=alpha).of_played(plays, plays * p, 1, RNG)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 2.0, -0.3, -2.0])
@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture(), Exponential()])
def test_the_index_is_the_largest_biased_likelihood(likelihood: Any, alpha: float) -> None:
    plays = np.array([10.0, 40.0, 1000.0])
    totals = plays * np.array([0.5, 0.3, 0.7])  # p + α/N is a mean that there can be
    found = RBMLE(likelihood=likelihood, bias=alpha).of_played(plays, totals, 1, RNG)
    b = np.array([likelihood.b(z) for z in GRID])
    for index, n, s in zip(found, plays, totals, strict=True):
        plain = s * GRID - n * b
        expected = ((plain + alpha * GRID).max() - plain.max()) / alpha
        assert index == pytest.approx(expected, abs=1e-5)  # the grid's steps


def test_an_arm_whose_biased_mean_would_exceed_1_comes_first() -> None:
    # The biased likelihood has no maximum there; z ends where b′(z) is 1 in floating point.
    plays, totals = np.array([1.0, 2.0, 50.0]), np.array([0.0, 1.0, 25.0])
    found = RBMLE(bias=1.5).of_played(plays, totals, 1, RNG)
    assert np.isfinite(found).all()
    assert found[:2].min() > found[2]


def test_the_index_falls_with_plays_and_rises_with_the_mean() -> None:
    plays = np.array([50.0, 100.0, 200.0])
    for likelihood in (Bernoulli(), Gaussian()):
        policy = RBMLE(likelihood=likelihood)
        falling = policy.of_played(plays, 0.4 * plays, 1, RNG)
        rising = policy.of_played(np.full(3, 100.0), np.array([30.0, 40.0, 50.0]), 1, RNG)
        assert (np.diff(falling) < 0).all()
        assert (np.diff(rising) > 0).all()


def test_ucb1_is_the_mean_and_its_width() -> None:
    found = of_played(UCB1(exploration=0.5), t=100)
    np.testing.assert_allclose(found, TOTALS / PLAYS + 0.5 * np.sqrt(2 * math.log(100) / PLAYS))


def test_kl_ucb_of_gaussian_rewards_is_ucb1() -> None:
    bounds = of_played(KLUCB(likelihood=Gaussian()), t=50)
    np.testing.assert_allclose(bounds, of_played(UCB1(), t=50), rtol=1e-9)


@pytest.mark.parametrize("t", [1, 2, 100, 10**6])
def test_kl_ucb_solves_for_the_divergence(t: int) -> None:
    for bound, n, s in zip(of_played(KLUCB(), t), PLAYS, TOTALS, strict=True):
        p, level = s / n, math.log(t) / n
        if p == 1 or t == 1:
            assert bound == pytest.approx(p, abs=1e-6)
            continue
        expected = brentq(lambda q: _divergence(p, q) - level, max(p, 1e-9), 1 - 1e-15, xtol=1e-14)
        assert bound == pytest.approx(expected, rel=1e-8)


def test_thompson_draws_have_the_moments_of_the_posterior() -> None:
    plays, totals = np.full((20_000, 1), 8.0), np.full((20_000, 1), 2.0)
    beta = BetaTS().of_played(plays, totals, 1, np.random.default_rng(1))  # Beta(3, 7)
    assert beta.mean() == pytest.approx(0.3, abs=0.005)
    assert beta.var() == pytest.approx(3 * 7 / (10**2 * 11), rel=0.05)
    normal = GaussianTS(exploration=2.0).of_played(plays, totals, 1, np.random.default_rng(1))
    assert normal.mean() == pytest.approx(0.25, abs=0.02)
    assert normal.std() == pytest.approx(2 / 8**0.5, rel=0.03)


@pytest.mark.parametrize("policy", [RBMLE(), UCB1(), KLUCB(), BetaTS(), GaussianTS()])
def test_an_arm_that_was_never_played_comes_first(policy: Any) -> None:
    found = policy.of_arms(np.array([3.0, 0.0]), np.array([3.0, 0.0]), 4, RNG)
    assert found[0] < found[1] == UNPLAYED


def test_a_pessimist_plays_an_unknown_arm_last() -> None:
    found = RBMLE(bias=-1.0).of_arms(np.array([9.0, 0.0]), np.array([1.0, 0.0]), 10, RNG)
    assert found[1] < found[0] < 1 / 9


@pytest.mark.parametrize("bias", [0.0, math.inf, math.nan])
def test_a_bias_must_be_a_finite_number_other_than_0(bias: float) -> None:
    with pytest.raises(SettingError, match="`bias` must be a finite number other than 0"):
        RBMLE(bias=bias)
    with pytest.raises(SettingError, match="`prior` must be a finite number above 0, got -1"):
        BetaTS(prior=-1)


def _negative_entropy(q: np.ndarray) -> np.ndarray:
    return xlogy(q, q) + xlogy(1 - q, 1 - q)


def _divergence(p: float, q: float) -> float:
    return float(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))
