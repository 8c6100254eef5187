"""Algorithms 1 and 2 to the letter, against NumPy in double precision that knows no engine."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, FullBatch, Gaussian, NeuralRBMLEGA, NeuralRBMLEPC
from rbmle.core.errors import SettingError
from rbmle.likelihoods import Mixture
from rbmle.models.regression import printed_model
from rbmle.studies.paper import with_likelihood
from tests.samples import rng

ARMS, FEATURES, WIDTH, ROUNDS = 3, 4, 6, 12
ETA, J, LAMBDA = 0.001, 100, 0.001
Theta = tuple[np.ndarray, np.ndarray]  # W_1 and W_2


def test_the_preset_has_the_constants_of_the_appendix() -> None:
    model = printed_model()
    assert (model.network.width, model.network.depth, model.network.start) == (100, 2, "paired")
    assert model.training == FullBatch(steps=100, rate=0.001, objective="sum", warm=False)
    assert (model.ridge, model.likelihood, model.alarm) == (0.001, Gaussian(), 0.0)
    ga, pc = NeuralRBMLEGA.as_printed(), NeuralRBMLEPC.as_printed(bias=1e-5)
    assert not ga.is_scaled
    assert (ga.growth(9), pc.growth(9), pc.bias) == (3.0, 3.0, 1e-5)


def test_f_is_0_at_the_start() -> None:
    bandit = Bandit(NeuralRBMLEGA.as_printed(), arms=ARMS, features=2 * FEATURES, seed=1)
    np.testing.assert_allclose(list(bandit.predict(paired(0)).values()), 0.0, atol=1e-6)
    with pytest.raises(SettingError, match=r"must be even for a paired start, got 3"):
        Bandit(NeuralRBMLEGA.as_printed(), arms=ARMS, features=3)


def test_ga_as_printed_is_algorithm_1() -> None:
    bias = 0.1
    bandit = played(small(NeuralRBMLEGA.as_printed(bias=bias)))
    start, X, r = history(bandit)
    x = paired(ROUNDS)
    alpha, zeta = bias * (ROUNDS + 1) ** 0.5, 1 + np.log(ROUNDS + 1)
    line_8 = []
    for arm in range(ARMS):
        theta = ascended(start, X, r, placed(x, arm), alpha)
        f = value(theta, placed(x, arm))
        line_8.append(likelihood(theta, start, X, r) + alpha * zeta * f)
    shared = likelihood(ascended(start, X, r), start, X, r)
    expected = (np.array(line_8) - shared) / (alpha * zeta)
    np.testing.assert_allclose(bandit.decide(x).indices, expected, rtol=1e-10)


def test_pc_as_printed_is_algorithm_2_with_the_diagonal_of_Z() -> None:
    bias = 0.001
    bandit = played(small(NeuralRBMLEPC.as_printed(bias=bias)))
    start, X, r = history(bandit)
    Z = [np.full_like(part, LAMBDA) for part in start]
    for t in range(ROUNDS):  # lines 9 and 10
        g = gradient(ascended(start, X[: t + 1], r[: t + 1]), X[t])
        Z = [z + d * d / WIDTH for z, d in zip(Z, g, strict=True)]
    hat, alpha = ascended(start, X, r), bias * (ROUNDS + 1) ** 0.5
    x = paired(ROUNDS)
    expected = []
    for arm in range(ARMS):
        g = gradient(hat, placed(x, arm))
        bar = tuple(h + alpha / WIDTH * d / z for h, d, z in zip(hat, g, Z, strict=True))
        expected.append(value((bar[0], bar[1]), placed(x, arm)))
    np.testing.assert_allclose(bandit.decide(x).indices, expected, rtol=1e-9)


def test_on_the_mean_and_warm_a_round_ascends_from_the_last_estimate() -> None:
    """J steps of η on ℓ_λ/t from θ̂ of the round before; an arm's ascent starts from θ̂ too."""
    bias = 0.1
    bandit = played(small(NeuralRBMLEGA.as_printed(bias=bias, objective="mean", warm=True)))
    start, X, r = history(bandit)
    hat = start
    for t in range(1, ROUNDS + 1):
        hat = ascended(start, X[:t], r[:t], origin=hat, rate=ETA / t)
    x = paired(ROUNDS)
    alpha, zeta = bias * (ROUNDS + 1) ** 0.5, 1 + np.log(ROUNDS + 1)
    expected = []
    for arm in range(ARMS):
        arm_x = placed(x, arm)
        theta = ascended(start, X, r, arm_x, alpha, origin=hat, rate=ETA / ROUNDS)
        gain = likelihood(theta, start, X, r) - likelihood(hat, start, X, r)
        expected.append(value(theta, arm_x) + gain / (alpha * zeta))
    np.testing.assert_allclose(bandit.decide(x).indices, expected, rtol=1e-9)
    pc = NeuralRBMLEPC.as_printed(objective="mean", warm=True)
    assert pc.model == NeuralRBMLEGA.as_printed(objective="mean", warm=True).model
    assert pc.model.training == FullBatch(steps=100, rate=0.001, objective="mean", warm=True)


def test_the_mixture_of_figure_2_is_the_papers_sum_of_two_likelihoods() -> None:
    """−½(f − r)² + r f − log(1 + eᶠ), whose slope in f is 2r − f − σ(f)."""
    policy = with_likelihood(small(NeuralRBMLEGA.as_printed(bias=0.1)), Mixture())
    bandit = played(policy)
    start, X, r = history(bandit)
    x, alpha = paired(ROUNDS), 0.1 * (ROUNDS + 1) ** 0.5

    def slope(f: float, reward: float) -> float:
        return 2 * reward - f - 1 / (1 + np.exp(-f))

    def log_sum(theta: Theta) -> float:
        f = np.array([value(theta, z) for z in X])
        total = (-((f - r) ** 2) / 2 + r**2 / 2 + r * f - np.log1p(np.exp(f))).sum()
        return float(total - pull(theta, start))

    zeta = 1 + np.log(ROUNDS + 1)
    line_8 = []
    for arm in range(ARMS):
        theta = ascended(start, X, r, placed(x, arm), alpha, slope)
        line_8.append(log_sum(theta) + alpha * zeta * value(theta, placed(x, arm)))
    base = log_sum(ascended(start, X, r, slope=slope))
    expected = (np.array(line_8) - base) / (alpha * zeta)
    np.testing.assert_allclose(bandit.decide(x).indices, expected, rtol=1e-9)


def small(policy: Any) -> Any:
    """Return a policy with a narrow network in double precision."""
    network = replace(policy.model.network, width=WIDTH, dtype="float64")
    return replace(policy, model=replace(policy.model, network=network))


def played(policy: Any) -> Bandit:
    bandit = Bandit(policy, arms=ARMS, features=2 * FEATURES, seed=1)
    for t in range(ROUNDS):
        bandit.learn(paired(t), arm=t % ARMS, reward=float(t % 4 == 0))
    return bandit


def paired(t: int) -> np.ndarray:
    x = rng(t).normal(size=FEATURES)
    x /= np.linalg.norm(x)
    return np.concatenate([x, x]) / 2**0.5


def placed(x: np.ndarray, arm: int) -> np.ndarray:
    """Return (0, …, x, …, 0)."""
    return np.concatenate([x * (place == arm) for place in range(ARMS)])


def history(bandit: Bandit) -> tuple[Theta, np.ndarray, np.ndarray]:
    state = bandit.state
    net = getattr(state, "regression", state).net
    X = np.array([placed(paired(t), t % ARMS) for t in range(ROUNDS)])
    r = np.array([float(t % 4 == 0) for t in range(ROUNDS)])
    return (net.start.first.copy(), net.start.output.copy()), X, r


def value(theta: Theta, x: np.ndarray) -> float:
    """Return √m W_2 σ(W_1 x)."""
    first, output = theta
    return float(WIDTH**0.5 * output @ np.maximum(x @ first, 0))


def gradient(theta: Theta, x: np.ndarray) -> Theta:
    first, output = theta
    is_on = x @ first > 0
    return WIDTH**0.5 * np.outer(x, output * is_on), WIDTH**0.5 * np.maximum(x @ first, 0)


def pull(theta: Theta, start: Theta) -> float:
    """Return (mλ/2) ‖θ − θ₀‖²."""
    apart = sum(float(((p - s) ** 2).sum()) for p, s in zip(theta, start, strict=True))
    return WIDTH * LAMBDA / 2 * apart


def likelihood(theta: Theta, start: Theta, X: np.ndarray, r: np.ndarray) -> float:
    f = np.array([value(theta, x) for x in X])
    return float((r * f - f**2 / 2).sum()) - pull(theta, start)


def ascended(
    start: Theta,
    X: np.ndarray,
    r: np.ndarray,
    towards: np.ndarray | None = None,
    alpha: float = 0.0,
    slope: Any = lambda f, reward: reward - f,
    origin: Theta | None = None,
    rate: float = ETA,
) -> Theta:
    """Return θ after J steps of η on ℓ_λ + α f(x), from θ₀ or another origin."""
    first, output = start if origin is None else origin
    for _ in range(J):
        at = (first, output)
        steps = [(x, slope(value(at, x), reward)) for x, reward in zip(X, r, strict=True)]
        steps += [] if towards is None else [(towards, alpha)]
        parts = [(weight * d, weight * e) for x, weight in steps for d, e in [gradient(at, x)]]
        ups = [sum(both) for both in zip(*parts, strict=True)]
        first = first + rate * (ups[0] - WIDTH * LAMBDA * (first - start[0]))
        output = output + rate * (ups[1] - WIDTH * LAMBDA * (output - start[1]))
    return first, output
