"""Generalised linear models: against ridge regression, by hand, and against a fit to the whole history."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit

from rbmle import GLM, GLMRBMLE, GLMTS, GLMUCB, Bandit, Bernoulli, Gaussian, LinRBMLE, Ridge
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts
from rbmle.models.linear import RidgeState
from rbmle.policies.schedules import Power
from tests.samples import Exponential

RNG = np.random.default_rng(0)
ROOT = Power(exponent=0.5)


def taught(model: Any, X: np.ndarray, rewards: np.ndarray) -> RidgeState:
    """Return the state of one block after some rewards."""
    bandit = Bandit(GLMRBMLE(model=model), features=X.shape[1], encoding="per-arm")
    for x, reward in zip(X, rewards, strict=True):
        bandit.learn(x, reward)
    return bandit.state


def one(x: Any) -> Contexts:
    return disjoint(x, np.zeros(1, np.int64), len(x))


def logged(rounds: int, features: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rounds, features))
    chances = expit(X @ np.array([1.0, -2.0, 0.5]))
    return X, (rng.random(rounds) < chances).astype(float)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_with_the_gaussian_likelihood_it_is_ridge_regression(ridge: float) -> None:
    X, rewards = logged(100)
    ours = taught(GLM(likelihood=Gaussian(), ridge=ridge), X, rewards)
    theirs = Bandit(LinRBMLE(model=Ridge(ridge=ridge)), features=3, encoding="per-arm")
    for x, reward in zip(X, rewards, strict=True):
        theirs.learn(x, reward)
    np.testing.assert_allclose(ours.theta, theirs.state.theta, rtol=1e-9)
    np.testing.assert_allclose(ours.F, theirs.state.F, rtol=1e-9, atol=1e-12)


def test_with_the_gaussian_likelihood_its_index_is_that_of_lin_rbmle() -> None:
    ours = Bandit(GLMRBMLE(model=GLM(likelihood=Gaussian()), bias=0.3), arms=3, features=2)
    theirs = Bandit(LinRBMLE(bias=0.3), arms=3, features=2)
    for t in range(50):
        x = np.random.default_rng(t).normal(size=2)
        for bandit in (ours, theirs):
            bandit.learn(x, arm=t % 3, reward=math.sin(t))
    x = np.array([0.4, -1.0])
    np.testing.assert_allclose(ours.decide(x).indices, theirs.decide(x).indices, rtol=1e-9)


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_one_observation_by_hand(reward: float) -> None:
    # θ̂ = z x/‖x‖² with z = q (r − b′(z)), q = ‖x‖²/λ = 5/2; H = 2 I + b″(z) x xᵀ
    x, model = np.array([1.0, 2.0]), GLM(ridge=2.0)
    state = taught(model, x[None], np.array([reward]))
    z = brentq(lambda z: z - 2.5 * (reward - expit(z)), -10, 10, xtol=1e-14)
    np.testing.assert_allclose(state.theta[0], z * x / 5, rtol=1e-8)
    H = 2 * np.eye(2) + expit(z) * (1 - expit(z)) * np.outer(x, x)
    np.testing.assert_allclose(state.F[0] @ state.F[0].T, np.linalg.inv(H), rtol=1e-7)


@pytest.mark.parametrize("reward", [20.0, 40.0, 300.0])
def test_a_reward_far_above_a_steep_mean_is_learned(reward: float) -> None:
    """With b = exp, λ = 1 and x = 1: θ̂ = z = r − eᶻ, less exact by eᶻ than the search for z is."""
    state = taught(GLM(likelihood=Exponential(), ridge=1.0), np.ones((1, 1)), np.array([reward]))
    (z,) = state.theta[0]
    assert z == pytest.approx(brentq(lambda z: z + math.exp(z) - reward, 0, 10), abs=1e-7)


def test_contexts_without_shared_features_are_fitted_as_if_together() -> None:
    X, rewards = np.diag([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0])
    state = taught(GLM(ridge=0.5), X, rewards)
    np.testing.assert_allclose(state.theta[0], _refit(X, rewards, ridge=0.5), rtol=1e-5)


@pytest.mark.parametrize("rounds", [20, 100, 500])
def test_it_is_close_to_a_fit_to_the_whole_history(rounds: int) -> None:
    X, rewards = logged(rounds)
    state, full = taught(GLM(), X, rewards), _refit(X, rewards, ridge=1.0)
    p = expit(X @ full)
    H = np.eye(3) + (X * (p * (1 - p))[:, None]).T @ X
    away = state.theta[0] - full
    assert away @ H @ away < 1  # within one deviation of the posterior
    np.testing.assert_allclose(state.F[0] @ state.F[0].T, np.linalg.inv(H), rtol=0.5, atol=0.02)


def test_the_index_is_the_largest_biased_likelihood_of_the_quadratic_form() -> None:
    X, rewards = logged(60)
    policy = GLMRBMLE(bias=0.7, growth=ROOT)
    state, x = taught(policy.model, X, rewards), np.array([0.5, 1.0, -0.3])
    alpha, H = 0.7 * 61**0.5, np.linalg.inv(state.F[0] @ state.F[0].T)

    def loss(theta: np.ndarray) -> float:
        away = theta - state.theta[0]
        return float(away @ H @ away / 2 - alpha * theta @ x)

    best = minimize(loss, state.theta[0], tol=1e-12)
    (found,) = policy.index(state, one(x), RNG)
    assert found == pytest.approx(-best.fun / alpha, rel=1e-8)


def test_the_width_of_glm_ucb_is_that_of_the_reward() -> None:
    X, rewards = logged(60)
    policy, x = GLMUCB(exploration=0.4), np.array([0.5, 1.0, -0.3])
    state = taught(policy.model, X, rewards)
    width = math.sqrt(x @ state.F[0] @ state.F[0].T @ x)
    (found,) = policy.index(state, one(x), RNG)
    assert found == pytest.approx(expit(state.theta[0] @ x) + 0.4 * width)


def test_glm_ts_draws_around_the_estimate() -> None:
    X, rewards = logged(60)
    policy, x = GLMTS(exploration=0.4), np.array([0.5, 1.0, -0.3])
    state = taught(policy.model, X, rewards)
    draws = [policy.index(state, one(x), np.random.default_rng(s))[0] for s in range(4000)]
    width = math.sqrt(x @ state.F[0] @ state.F[0].T @ x)
    assert np.mean(draws) == pytest.approx(state.theta[0] @ x, abs=0.03)
    assert np.std(draws) == pytest.approx(0.4 * width, rel=0.05)


def test_its_estimate_converges_to_the_truth() -> None:
    X, rewards = logged(20_000)
    state = taught(GLM(), X, rewards)
    np.testing.assert_allclose(state.theta[0], [1.0, -2.0, 0.5], atol=0.1)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(SettingError, match="`ridge` must be a positive number, got 0"):
        GLM(ridge=0)
    with pytest.raises(SettingError, match="`exploration` must be a finite number"):
        GLMUCB(exploration=-1)
    assert GLM(likelihood=Bernoulli()).rewards == (0, 1)


def _refit(X: np.ndarray, rewards: np.ndarray, ridge: float) -> np.ndarray:
    """Return the θ that maximises Σ (r θᵀx − b(θᵀx)) − ½ λ ‖θ‖²."""

    def loss(theta: np.ndarray) -> float:
        z = X @ theta
        return float(np.sum(np.logaddexp(0, z) - rewards * z) + ridge / 2 * theta @ theta)

    return minimize(loss, np.zeros(X.shape[1]), tol=1e-12).x


def test_it_chooses_as_the_paper_does_in_most_rounds() -> None:
    # The paper fits θ for each arm to the whole history, with the bias, and compares the maxima.
    rng = np.random.default_rng(3)
    truth, policy = np.array([1.0, -2.0, 0.5]), GLMRBMLE(bias=0.5, growth=ROOT)
    bandit = Bandit(policy, features=3, encoding="per-arm")
    X, rewards, alike = np.empty((0, 3)), np.empty(0), []
    for t in range(1, 151):
        offered = rng.normal(size=(5, 3)) / 3**0.5
        arm = int(bandit.decide(offered).arm)
        maxima = [_biased_maximum(X, rewards, x, 0.5 * t**0.5) for x in offered]
        alike.append(arm == int(np.argmax(maxima)))
        reward = float(rng.random() < expit(offered[arm] @ truth))
        bandit.learn(offered[arm], reward)
        X, rewards = np.vstack([X, offered[arm]]), np.append(rewards, reward)
    assert np.mean(alike) > 0.9


def _biased_maximum(X: np.ndarray, rewards: np.ndarray, x: np.ndarray, alpha: float) -> float:
    """Return max_θ { ℓ_λ(θ) + α θᵀx } with λ = 1, by Newton's steps."""
    theta = np.zeros(len(x))
    for _ in range(30):
        p = expit(X @ theta)
        gradient = X.T @ (rewards - p) - theta + alpha * x
        H = np.eye(len(x)) + (X * (p * (1 - p))[:, None]).T @ X
        theta = theta + np.linalg.solve(H, gradient)
    z = X @ theta
    fit = np.sum(rewards * z - np.logaddexp(0, z)) - theta @ theta / 2
    return float(fit + alpha * theta @ x)
