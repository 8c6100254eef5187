"""Estimators, intervals and confidence sequences, on numbers that a hand can check."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from rbmle.core.encoding import per_arm
from rbmle.engine.betting import bet_with_control
from rbmle.engine.linear import predict_then_learn
from rbmle.evaluation.estimators import ESTIMATORS, Bounds, Judged, OfferedArms
from rbmle.evaluation.intervals import bernstein, bootstrap, normal
from rbmle.evaluation.sequences import (
    BETS,
    SEQUENCES,
    Bettors,
    ValueSequence,
    boundary,
    log_mixture,
)
from rbmle.evaluation.sums import MOST, RatioSums, WeightSums

BOUNDS = Bounds(low=0.0, high=1.0, weight=20.0, clip=10.0)
JUDGED = Judged(
    rewards=np.array([1.0, 0.0, 1.0, 0.5]),
    weights=np.array([2.0, 0.0, 20.0, 1.0]),
    predicted=np.array([0.5, 0.5, 1.0, 0.0]),
    expected=np.array([0.25, 0.5, 0.75, 0.5]),
    accepted=np.array([True, False, True, True]),
)
VALUES = {
    "replay": (1 + 1 + 0.5) / 3,
    "dm": (0.25 + 0.5 + 0.75 + 0.5) / 4,
    "ips": (2 + 0 + 20 + 0.5) / 4,
    "clipped": (2 + 0 + 10 + 0.5) / 4,
    "snips": (2 + 0 + 20 + 0.5) / (2 + 0 + 20 + 1),
    "dr": ((0.25 + 2 * 0.5) + 0.5 + (0.75 + 20 * 0) + (0.5 + 0.5)) / 4,
    "switch": ((0.25 + 2 * 0.5) + 0.5 + 0.75 + (0.5 + 0.5)) / 4,
}


def sums_of(n: np.ndarray, d: np.ndarray | None = None) -> RatioSums:
    sums = RatioSums()
    sums.add(np.asarray(n, float), np.ones(len(n)) if d is None else np.asarray(d, float))
    return sums


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimate_is_its_formula(name: str) -> None:
    sums = RatioSums()
    sums.add(*ESTIMATORS[name].terms(JUDGED, BOUNDS))
    assert sums.value == pytest.approx(VALUES[name], rel=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_term_ranges_further_than_an_estimator_says(name: str) -> None:
    rng = np.random.default_rng(0)
    bounds = Bounds(low=-1.0, high=0.5, weight=8.0, clip=3.0)
    rewards, predicted, expected = rng.uniform(-1, 0.5, size=(3, 20_000))
    corners = rng.choice([-1.0, 0.5], size=(3, 20_000))
    is_corner = rng.random(20_000) < 0.5
    rewards, predicted, expected = np.where(is_corner, corners, (rewards, predicted, expected))
    weights = rng.choice([0.0, 1.0, 3.0, 8.0], size=20_000)
    judged = Judged(rewards, weights, predicted, expected, rng.random(20_000) < 0.5)
    for value in (-1.0, -0.2, 0.5):
        n, d = ESTIMATORS[name].terms(judged, bounds)
        z = n - value * d
        assert z.max() - z.min() <= ESTIMATORS[name].spread(bounds) + 1e-12


def test_blocks_hold_all_sums_however_rounds_come() -> None:
    rng = np.random.default_rng(0)
    n = rng.random(10 * MOST + 77)
    whole, parts = sums_of(n), RatioSums()
    for part in np.array_split(n, 33):
        parts.add(part, np.ones(len(part)))
    np.testing.assert_allclose(whole.blocks, parts.blocks)
    assert MOST <= len(whole.blocks) <= 2 * MOST
    np.testing.assert_allclose(whole.blocks.sum(axis=0), [n.sum(), len(n)])
    few = sums_of(n[:100])
    np.testing.assert_array_equal(few.blocks[:, 0], n[:100])


def test_the_normal_interval_is_that_of_the_mean() -> None:
    x = np.random.default_rng(0).random(50)
    low, high = normal(sums_of(x), 0.9) or (0, 0)
    width = norm.ppf(0.95) * x.std(ddof=1) / 50**0.5
    assert (low, high) == pytest.approx((x.mean() - width, x.mean() + width))


def test_the_interval_of_bernstein_is_its_formula() -> None:
    """With D = 1 it is the mean and the bound of Maurer and Pontil, within what can be."""
    x = np.random.default_rng(0).random(2_000)
    bound = math.log(4 / 0.05)
    width = math.sqrt(2 * x.var(ddof=1) * bound / 2_000) + 7 * bound / (3 * 1_999)
    found = bernstein(sums_of(x), 0.95, spread=1.0, low=0.0, high=1.0)
    assert found == pytest.approx((x.mean() - width, x.mean() + width))
    assert bernstein(sums_of(x[:3]), 0.95, spread=1.0, low=0.0, high=1.0) == (0.0, 1.0)


def test_the_bootstrap_agrees_with_the_normal_interval_where_both_are_right() -> None:
    x = np.random.default_rng(0).normal(size=1_500)
    found = bootstrap(sums_of(x), 0.95, seed=0)
    assert found == pytest.approx(normal(sums_of(x), 0.95), abs=0.01)
    assert found == bootstrap(sums_of(x), 0.95, seed=0)


def test_a_value_without_rounds_has_no_interval() -> None:
    nothing = sums_of(np.zeros(5), np.zeros(5))
    assert nothing.value is None
    assert normal(nothing, 0.95) is None
    assert bootstrap(nothing, 0.95, 0) is None


def test_the_effective_sample_size_is_that_of_kish() -> None:
    sums = WeightSums()
    sums.add_all(np.array([2.0, 0.0, 1.0]), np.zeros(3))
    assert sums.effective == pytest.approx(9 / 5)


def test_the_sums_of_ips_and_snips_are_those_of_any_estimate() -> None:
    rng = np.random.default_rng(0)
    w, r = rng.random(50) * 3, rng.random(50)
    whole, one_by_one = WeightSums(), WeightSums()
    whole.add_all(w, r)
    for weight, reward in zip(w.tolist(), r.tolist(), strict=True):
        one_by_one.add(weight, reward)
    for found in (whole, one_by_one):
        np.testing.assert_allclose(found.ips, sums_of(w * r).ratio)
        np.testing.assert_allclose(found.snips, sums_of(w * r, w).ratio)


def test_the_boundary_is_where_the_mixture_is_large() -> None:
    for v, c in ((10.0, 1.0), (1e4, 1.0), (1e6, 20.0)):
        u = boundary(v, 0.05, c, optimal=100.0)
        rho = 100.0 / (2 * math.log(10) + math.log(1 + 2 * math.log(10)))
        assert log_mixture(u, v, rho, c) == pytest.approx(math.log(20), abs=1e-6)
        assert u > math.sqrt(2 * v * math.log(20))  # nothing that holds at all times is lower


def test_the_mixture_is_an_integral_over_gamma() -> None:
    """∫ exp(λ s − ψ(λ) v) dF(λ), where F is a gamma distribution of 1 − c λ cut at 1, by quadrature."""
    s, v, rho, c = 3.0, 4.0, 2.0, 1.5
    u = np.linspace(1e-6, 1 - 1e-6, 2_000_001)  # 1 − c λ, from 0 to 1
    r = rho / c**2
    density = u ** (r - 1) * np.exp(-r * u)
    psi = (-np.log(u) - (1 - u)) / c**2
    values = density * np.exp((1 - u) / c * s - psi * v)
    integral = np.trapezoid(values, u) / np.trapezoid(density, u)
    assert log_mixture(s, v, rho, c) == pytest.approx(math.log(integral), abs=1e-4)


def test_wealth_is_the_product_of_the_payoffs_of_rounds() -> None:
    """Π (1 + κ ξ), with the part of the wealth that g gives to each κ; the bound is where it is 1/α."""
    xi = np.array([0.0, 2.0, 0.0, 3.0] * 5)
    whole, parts = Bettors(), Bettors()
    whole.add(xi)
    parts.add(xi[:3])
    parts.add(xi[3:])
    low = whole.lower_bound(0.05)
    assert low == pytest.approx(parts.lower_bound(0.05), rel=1e-9)
    g = 1 / (1 + ((np.log2(BETS) + 4) / 1.5) ** 2)
    paid = np.prod((1 + BETS[:, None] * xi) / (1 + BETS[:, None] * low), axis=1)
    assert float(g @ paid / g.sum()) == pytest.approx(1 / 0.05, rel=1e-6)


def test_a_control_is_lowered_where_a_bet_could_lose_more_than_half() -> None:
    """Two arms: w is 2 or 0; with κ = 1 and q = 0.9, q (w − π) is at most 1/2 for q = 1/2."""
    chances, falls = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    arguments = np.array([1.0]), np.array([2.0]), np.array([2]), np.array([0]), chances, falls
    for kappa, q in ((1.0, 0.5), (0.125, 0.9)):
        log_wealth = np.zeros(1)
        bet_with_control(*arguments, np.full(2, 0.9), 0.5, np.array([kappa]), log_wealth)
        assert log_wealth[0] == pytest.approx(math.log(1 + kappa * (q + 2 * (1 - q))))


def test_no_round_costs_a_bet_more_than_half_whatever_is_played() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        p, chances = rng.dirichlet(np.full(3, 0.1)), rng.dirichlet(np.full(3, 0.3))
        a, kappa = int(rng.choice(3, p=p)), float(rng.choice(BETS))
        log_wealth, falls = np.zeros(1), chances / p - chances
        bet_with_control(
            np.zeros(1),
            chances[[a]] / p[a],
            np.array([3]),
            np.array([a]),
            chances,
            falls,
            rng.random(3),
            0.5,
            np.array([kappa]),
            log_wealth,
        )
        assert log_wealth[0] >= math.log(0.5) - 1e-9


def test_arms_without_a_chance_make_an_interval_wide_and_not_wrong() -> None:
    """π plays arm 1 half of the time, and the log never; arm 0 pays 1, so the value is from 1/2 to 1."""
    n = 20_000
    chances = np.tile([0.5, 0.5], n)
    falls = np.tile([0.0, np.inf], n)
    offered = OfferedArms(np.full(n, 2), 2 * np.arange(n), chances, falls, np.full(2 * n, 0.9))
    ones, nothing = np.ones(n), np.zeros(n)
    judged = Judged(ones, ones / 2, nothing, nothing, nothing > 0, offered)
    for name in ("ips", "snips", "dr"):
        sequence = ValueSequence(name, 0.0, 1.0)
        sequence.add(judged)
        low, high = sequence.interval(0.95) or (0, 0)
        assert 0.45 < low <= 0.5
        assert high == 1.0


def test_without_all_weights_only_ips_has_a_sequence() -> None:
    for name in SEQUENCES:
        sequence = ValueSequence(name, 0.0, 1.0)
        sequence.add(JUDGED)
        assert (sequence.interval(0.95) is None) == (name in ("snips", "dr"))


@pytest.mark.parametrize("estimator", SEQUENCES)
def test_a_sequence_is_narrow_around_the_value_at_last(estimator: str) -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    weights = rng.choice([0.0, 2.0], size=n)
    rewards = (rng.random(n) < 0.3) * 4.0 - 1.0  # −1 or 3
    sequence = ValueSequence(estimator, -1.0, 3.0)
    model, accepted = np.full(n, 0.2), weights > 0
    ones = np.ones(n)
    offered = OfferedArms(np.full(n, 1), np.arange(n), ones, ones, model)
    sequence.add(Judged(rewards, weights, model, model, accepted, offered))
    low, high = sequence.interval(0.95) or (0, 0)
    assert low < 0.2 < high
    assert high - low < 0.12


def test_the_reward_model_is_adagrad_on_scaled_features() -> None:
    """Against the same steps in NumPy, arms in two blocks; a round is predicted before it is learned."""
    rng = np.random.default_rng(0)
    X, blocks = rng.normal(size=(60, 3)) * [1, 100, 0.01], np.tile([0, 1], 30)
    X[rng.random(X.shape) < 0.2] = 0
    played, rewards = rng.integers(2, size=30), rng.random(30)
    rows = per_arm(X, 3).rows._replace(blocks=blocks)
    theta, squares, scales = (np.zeros((2, 4)) for _ in range(3))
    found = np.empty(60)
    sizes = np.full(30, 2)
    predict_then_learn(rows, sizes, played, rewards, 0.5, theta, squares, scales, found)

    slow, sums, most = (np.zeros((2, 4)) for _ in range(3))
    for t in range(30):
        for arm in (0, 1):
            x = np.append(X[2 * t + arm], 0.0)
            z = np.divide(x, most[arm], out=np.zeros(4), where=most[arm] > 0)
            z /= math.sqrt(max(1, int(np.count_nonzero(x))))
            z[3] = 1.0
            assert found[2 * t + arm] == pytest.approx(slow[arm] @ z, abs=1e-12)
        arm = played[t]
        x = np.append(X[2 * t + arm], 0.0)
        most[arm] = np.maximum(most[arm], np.abs(x))
        z = np.divide(x, most[arm], out=np.zeros(4), where=most[arm] > 0)
        z /= math.sqrt(max(1, int(np.count_nonzero(x))))
        z[3] = 1.0
        g = (found[2 * t + arm] - rewards[t]) * z
        sums[arm] += g * g
        slow[arm] -= 0.5 * np.divide(g, np.sqrt(sums[arm]), out=np.zeros(4), where=sums[arm] > 0)
    np.testing.assert_allclose(theta, slow, atol=1e-12)


def test_the_reward_model_learns_a_linear_reward_of_any_scale() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3)) * [1, 1000, 0.001] + [0, 5000, 0]
    rewards = 0.5 + 0.1 * X[:, 0] + 1e-4 * (X[:, 1] - 5000)
    theta, squares, scales = (np.zeros((1, 4)) for _ in range(3))
    found = np.empty(20_000)
    ones, nobody = np.ones(20_000, np.int64), np.zeros(20_000, np.int64)
    rows = per_arm(X, 3).rows
    predict_then_learn(rows, ones, nobody, rewards, 0.5, theta, squares, scales, found)
    late = slice(15_000, None)
    assert np.mean((found - rewards)[late] ** 2) < 0.1 * np.var(rewards)
