"""Linear models of which V⁻¹ has its diagonal alone: by hand, and where nothing but the diagonal is there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from rbmle import GLMRBMLE, GLMTS, GLMUCB, Bandit, Hashing, LinRBMLE, LinTS, LinUCB, Ridge
from rbmle.core.errors import SettingError
from rbmle.models import linear

POLICIES: list[Any] = [LinUCB(), LinTS(), LinRBMLE(), GLMUCB(), GLMTS(), GLMRBMLE()]
NAMES = [type(policy).__name__ for policy in POLICIES]


def diagonal(policy: Any) -> Any:
    return replace(policy, model=replace(policy.model, precision="diagonal"))


def test_two_observations_by_hand() -> None:
    model = Ridge(is_standardised=False)
    bandit = Bandit(diagonal(LinUCB(exploration=2.0, model=model)), arms=1, features=2)
    bandit.learn([1.0, 2.0], arm=0, reward=3.0)
    # V = I: q = 5, so θ̂ = 3/6 (1, 2); V⁻¹ = I − xxᵀ/6, of which the diagonal is kept
    np.testing.assert_allclose(bandit.state.theta[0], [0.5, 1.0], rtol=1e-12)
    np.testing.assert_allclose(bandit.state.F[0] ** 2, [5 / 6, 1 / 3], rtol=1e-12)
    decision = bandit.decide([1.0, 1.0])
    assert decision.indices[0] == pytest.approx(1.5 + 2 * (5 / 6 + 1 / 3) ** 0.5)
    bandit.learn([1.0, 0.0], arm=0, reward=0.0)  # q = 5/6
    np.testing.assert_allclose(bandit.state.theta[0], [0.5 - 5 / 6 * 0.5 / (11 / 6), 1.0])
    np.testing.assert_allclose(bandit.state.F[0] ** 2, [5 / 11, 1 / 3])


def test_one_logistic_observation_by_hand() -> None:
    bandit = Bandit(diagonal(GLMRBMLE()), arms=1, features=2)
    bandit.learn([1.0, 2.0], arm=0, reward=1.0)
    z = bandit.state.theta[0] @ [1.0, 2.0]
    assert z == pytest.approx(5 * (1 - expit(z)), rel=1e-8)
    weight = expit(z) * (1 - expit(z))
    kept = 1 - weight / (1 + 5 * weight) * np.array([1.0, 4.0])
    np.testing.assert_allclose(bandit.state.F[0] ** 2, kept, rtol=1e-6)


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_it_is_exact_where_each_context_has_one_feature(policy: Any) -> None:
    policy = replace(policy, model=replace(policy.model, is_standardised=False))  # no constant
    full, ours = Bandit(policy, arms=2, features=3), Bandit(diagonal(policy), arms=2, features=3)
    rng = np.random.default_rng(0)
    for _ in range(60):
        x, arm, reward = np.eye(3)[rng.integers(3)], int(rng.integers(2)), float(rng.integers(2))
        for bandit in (full, ours):
            bandit.learn(x, arm=arm, reward=reward)
    np.testing.assert_allclose(ours.state.theta, full.state.theta, rtol=1e-9, atol=1e-12)
    variances = np.einsum("bij,bij->bi", full.state.F, full.state.F)
    np.testing.assert_allclose(ours.state.F**2, variances, rtol=1e-9)
    if not isinstance(policy, LinTS | GLMTS):
        for x in np.eye(3):
            expected = full.decide(x).indices
            np.testing.assert_allclose(ours.decide(x).indices, expected, rtol=1e-9)


def test_draws_have_the_variance_of_the_model_and_share_theta_in_a_block() -> None:
    policy = LinTS(model=Ridge(is_standardised=False, precision="diagonal"), exploration=0.5)
    bandit = Bandit(policy, features=4, encoding="per-arm")
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(20, 4)):
        bandit.learn(x, x.sum())
    X = np.array([[1.0, 0, 2, 0], [2.0, 0, 4, 0], [0, 1.0, 0, 0]])
    draws = np.array([bandit.decide(X, id=str(i)).indices for i in range(4000)])
    D = bandit.state.F[0] ** 2
    np.testing.assert_allclose(draws.mean(axis=0), X @ bandit.state.theta[0], atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), 0.25 * (X * D) @ X.T, atol=0.01)
    np.testing.assert_allclose(draws[:, 1], 2 * draws[:, 0])


def test_it_learns_from_hashed_features() -> None:
    rates = np.random.default_rng(3).uniform(size=(5, 4))

    def regret(policy: Any) -> float:
        bandit = Bandit(policy, arms=list("abcd"), features=Hashing(bits=8), seed=0)
        rng, total = np.random.default_rng(4), 0.0
        for _ in range(1500):
            user, hour = int(rng.integers(5)), int(rng.integers(24))
            decision = bandit.decide({"user": f"u{user}", "hour": str(hour)})
            rewards = (rng.random(4) < rates[user]).astype(float)
            arm = "abcd".index(str(decision.arm))
            bandit.learn(decision, float(rewards[arm]))
            total += rates[user].max() - rates[user][arm]
        return total

    uniform = float((rates.max(axis=1) - rates.mean(axis=1)).mean()) * 1500
    assert regret(LinUCB()) < regret(diagonal(LinUCB())) < 0.2 * uniform


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_matrix_that_fits_in_no_memory_is_refused_when_the_bandit_is_made(policy: Any) -> None:
    with pytest.raises(SettingError, match=r"for each of 20 arms \(2.5 GiB\).*precision=diagonal"):
        Bandit(policy, arms=20, features=Hashing())
    with pytest.raises(SettingError, match=r"65,536 × 65,536 numbers \(32.0 GiB\)"):
        Bandit(policy, features=Hashing(bits=16), encoding="per-arm")


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_an_arm_that_fits_in_no_memory_is_refused(
    policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "MOST_NUMBERS", 40)
    bandit = Bandit(policy, arms=2, features=4)
    with pytest.raises(SettingError, match="for each of 3 arms"):
        bandit.add_arm("another")
    assert bandit.decide(np.ones(4)).arms == (0, 1)


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_hashed_features_are_learned_saved_and_loaded(policy: Any, tmp_path: Path) -> None:
    bandit = Bandit(diagonal(policy), arms=20, features=Hashing(bits=16), draws=8)
    rng = np.random.default_rng(0)
    users = [{"user": f"u{i}", "age": float(i)} for i in range(7)]
    for t in range(40):
        decision = bandit.decide(users[t % 7])
        bandit.learn(decision, float(rng.integers(2)))
    bandit.add_arm(20)
    bandit.save(tmp_path / "saved")
    other = Bandit.load(tmp_path / "saved")
    for x in users:
        np.testing.assert_array_equal(bandit.decide(x).indices, other.decide(x).indices)
    assert sum(array.nbytes for array in (bandit.state.F, bandit.state.theta)) < 25e6


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(SettingError, match="full or diagonal, got sparse"):
        Bandit("lin-ucb:model.precision=sparse", arms=2, features=2)
