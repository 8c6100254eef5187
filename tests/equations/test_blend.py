"""A line beside a network: ridge regression in the units of rewards, and weights by what both predicted."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, LinearPart, LinUCB, NeuralRBMLEGA, NeuralUCB, Regression
from rbmle.core.encoding import disjoint, per_arm, stack
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts
from rbmle.engine.blend import COUNT, GAIN, LL, LN, LOSSES, LR, MEAN, MISSED, NN, NR, blend_values
from rbmle.models.blend import COMMON, BlendState
from rbmle.models.linear import Ridge

SAVED = Path(__file__).parents[1] / "saved"
LINE = LinearPart(ridges=(2.0,), common_ridges=())
POLICY = NeuralRBMLEGA(linear=LINE)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rows(X: np.ndarray) -> Contexts:
    return per_arm(X, X.shape[1])


def learned(policy: Any, X: np.ndarray, rewards: np.ndarray) -> Any:
    state = policy.init(1, X.shape[1], rng())
    is_fitted = np.zeros(len(X), np.bool_)
    batch = Batch(contexts=rows(X), rewards=rewards, is_fitted=is_fitted, rng=rng)
    policy.update_all(state, batch)
    return state


def test_a_standardised_ridge_regression_is_that_of_standardised_rewards() -> None:
    X, r = rng(1).normal(size=(30, 3)), 250 + 10 * rng(2).normal(size=30)
    model = Ridge(ridge=0.5)
    state = model.init(1, 3, rng())
    model.update_all(
        state,
        Batch(contexts=rows(X), rewards=r, is_fitted=np.ones(30, np.bool_), rng=rng),
    )
    z = (r - r.mean()) / r.std()
    Z = np.c_[X, np.ones(30)]  # with the constant
    theta = np.linalg.solve(0.5 * np.eye(4) + Z.T @ Z, Z.T @ z)
    x = rows(np.array([[1.0, 2.0, -1.0]]))
    estimate = np.array([[1.0, 2.0, -1.0, 1.0]]) @ theta
    np.testing.assert_allclose(model.estimates(state, x)[0], estimate, rtol=1e-9)
    expected = r.mean() + r.std() * estimate
    np.testing.assert_allclose(model.predict(state, x), expected, rtol=1e-12)


def encoded(X: np.ndarray) -> np.ndarray:
    """Return (z, 1) of each context by the definition, with means and sizes of the contexts up to it."""
    Z, lengths = [], []
    for n in range(1, len(X) + 1):
        past = X[:n]
        p = (past != 0).mean(axis=0)
        m = np.maximum(2 * p - 1, 0) * past.mean(axis=0)
        squares = (past - m) ** 2
        of_values = np.where(past != 0, squares, 0).sum(axis=0) / np.maximum((past != 0).sum(0), 1)
        r = np.sqrt(np.maximum(squares.mean(axis=0), of_values))
        z = (X[n - 1] - m) * np.divide(1, r, out=np.zeros_like(r), where=r > 1e-9)
        lengths.append((z**2).sum())
        Z.append(np.append(z / (np.mean(lengths) ** 0.5 or 1.0), 1.0))
    return np.array(Z)


def test_features_are_centred_and_scaled_on_numbers_a_hand_can_check() -> None:
    """An age is centred, a flag that is mostly 0 is not, and a constant says nothing."""
    X = np.array([[44.0, 0.0, 1.0], [40.0, 1.0, 1.0], [42.0, 0.0, 1.0]])
    state = learned(POLICY, X, rng().normal(size=3))
    np.testing.assert_allclose(state.sizes[:, MEAN], [42.0, 0.0, 1.0])
    np.testing.assert_allclose(state.sizes[:, GAIN], [(8 / 3) ** -0.5, 1.0, 0.0])


def test_the_line_is_a_ridge_regression_on_encoded_contexts() -> None:
    X, r = rng(3).normal(size=(40, 4)), 250 + 10 * rng(4).normal(size=40)
    X[:, 1] = np.round(1980 + 20 * X[:, 1])  # far from 0
    X[:, 2] = X[:, 2] > 0.5  # a flag
    X[:, 3] = np.maximum(X[:, 3] + 0.8, 0.0)  # sometimes 0
    state = learned(POLICY, X, r)
    Z = encoded(X)
    V = 2.0 * np.eye(5) + Z.T @ Z
    theta = np.linalg.solve(V, Z.T @ ((r - r.mean()) / r.std()))
    state.record[[LL, NN, LR]] = 1.0, 1.0, 1e9  # all trust in the line
    (w1, _), means, norms = LINE.values(state, rows(X[-1:]))
    assert w1 > 0
    np.testing.assert_allclose(means, Z[-1:] @ theta, rtol=1e-7)
    np.testing.assert_allclose(norms, Z[-1:] @ np.linalg.solve(V, Z[-1]), rtol=1e-7)


def test_common_ridges_are_the_posterior_of_arms_around_a_common_vector() -> None:
    """θ_a = μ + δ_a with μ ~ N(0, I/(τλ)), δ_a ~ N(0, I/λ) and noise of 1; the third arm was never played."""
    arms, line = np.arange(3), LinearPart(ridges=(1.0,), common_ridges=(3.0,))
    X, r, played = rng(5).normal(size=(30, 2)), rng(6).normal(size=30), rng(7).integers(2, size=30)
    policy = NeuralRBMLEGA(linear=line)
    state = policy.init(len(arms), 2, rng())
    contexts = stack([disjoint(x, arms[[arm]], 2) for x, arm in zip(X, played, strict=True)])
    is_fitted = np.zeros(len(X), np.bool_)
    policy.update_all(state, Batch(contexts=contexts, rewards=r, is_fitted=is_fitted, rng=rng))
    Z, size = encoded(X), 3
    prior = np.kron(np.eye(len(arms)) + 1 / COMMON, np.eye(size)) / 3.0  # of (θ_1, θ_2, θ_3)
    design = np.zeros((30, len(arms) * size))
    for row, arm, z in zip(design, played, Z, strict=True):
        row[arm * size : (arm + 1) * size] = z
    precision = np.linalg.inv(prior) + design.T @ design
    theta = np.linalg.solve(precision, design.T @ ((r - r.mean()) / r.std()))
    state.record[LOSSES:] = 1e9, 0.0  # all trust in the common ridge
    _, means, norms = line.values(state, disjoint(X[-1], arms, 2))
    offers = np.kron(np.eye(len(arms)), Z[-1])
    np.testing.assert_allclose(means, offers @ theta, rtol=1e-7)
    np.testing.assert_allclose(
        norms, np.diag(offers @ np.linalg.inv(precision) @ offers.T), rtol=1e-7
    )


@pytest.mark.parametrize(
    ("sums", "weights"),
    [
        # Nothing was predicted: the blend is the network, with the odds exp(−log(20 + 1)/2).
        ((0.0, 0.0, 0.0, 0.0, 0.0), (21**0.5 / (1 + 21**0.5), 1 / (1 + 21**0.5))),
        (
            (3.0, 0.0, 1.0, 2.0, 1.0),
            (0.4, 1.0),
        ),  # pull 20 · (3 + 1)/(2 · 20) = 2: 2/(3 + 2), (1 + 2)/(1 + 2)
        ((3.0, 0.0, 1.0, -9.0, 1.0), (0.0, 1.0)),  # a line that is wrong is not turned around
        ((1.0, 0.0, 3.0, 3.0, -9.0), (1.0, 0.0)),  # nor a network; 3/(1 + 2)
        ((3.0, 0.0, 1.0, 99.0, 1.0), (1.2, 1.0)),  # no weight is above 1.2
    ],
)
def test_weights_are_least_squares_on_numbers_a_hand_can_check(
    sums: tuple[float, ...], weights: tuple[float, float]
) -> None:
    state = POLICY.init(1, 2, rng())
    state.record[COUNT] = 20.0
    state.record[[LL, LN, NN, LR, NR]] = sums
    context, out = rows(np.ones((1, 2))), (np.empty(1), np.empty(1))
    past = (np.array([2.0]), state.ridges, state.common, state.sizes)
    found = blend_values(context.rows, state.record, 20.0, 0.0, 1.0, *past, *out)
    np.testing.assert_allclose(found, weights, rtol=1e-4)


def test_the_blend_is_trusted_by_how_much_it_reduces_the_squared_error() -> None:
    state = POLICY.init(1, 2, rng())
    state.record[[COUNT, MISSED]] = 20.0, 4.0  # σ² = 1/5
    state.record[[LL, LN, NN, LR, NR]] = 3.0, 0.0, 1.0, 1.0, 1.0
    line = replace(LINE, patience=20.0)
    (w1, w2), *_ = line.values(state, rows(np.ones((1, 2))))
    # The pull is 20 · (3 + 1)/(2 · 20) = 2, so that the blend is (1/5, (1 + 2)/(1 + 2)).
    fall = (3 - 2) - (0.2 * 0.2 * 3 + 1 - 2 * (0.2 + 1))
    share = 1 / (1 + 21**0.5 * np.exp(-fall / (4 / 20) / 2))
    np.testing.assert_allclose((w1, w2), (1 - share + share * 0.2, share), rtol=1e-4)


def test_the_bias_of_the_network_follows_the_explained_share() -> None:
    state = POLICY.init(1, 2, rng())
    assert LINE.explained_share(state) == 1.0
    state.record[[COUNT, MISSED]] = 80.0, 75.0
    assert LINE.explained_share(state) == 0.25  # 1 − 75/(80 + 20)
    state.record[MISSED] = 120.0
    assert LINE.explained_share(state) == 0.0


def test_ridges_are_averaged_by_their_errors() -> None:
    line = LinearPart(ridges=(1.0, 4.0), common_ridges=())
    state = NeuralRBMLEGA(linear=line).init(1, 1, rng())
    state.record[COUNT] = 9.0
    state.record[LOSSES:] = (
        4.0,
        4.0 + np.log(3.0),
    )  # σ² = (4 + 1)/(9 + 1) = ½: weights 1 and exp(−log 3)
    state.record[[LL, LR]] = 1.0, 1.0
    state.sizes[:, GAIN] = 1.0
    _, _, norms = line.values(state, rows(np.ones((1, 1))))
    np.testing.assert_allclose(norms, [0.75 * 2 / 1 + 0.25 * 2 / 4])  # ‖(1, 1)‖² = 2


def test_the_biased_line_is_the_maximiser_of_equation_12() -> None:
    """With no weight on the network: θ̂ᵀx + β ‖x‖² less β² ‖x‖²/2 divided by α ζ, and β = min(α, ρσ/‖x‖)."""
    X, r = rng(5).normal(size=(40, 3)), rng(6).normal(size=40)
    state = learned(POLICY, X, r)
    state.record[[LL, LN, NN, LR, NR]] = 1.0, 0.0, 1.0, 1.0, -1e9
    offer = rows(rng(7).normal(size=(3, 3)))
    (w1, w2), means, norms = LINE.values(state, offer)
    assert w1 > 0 == w2
    sigma, zeta = LINE.deviation(state), POLICY.zeta(41)
    alpha = 0.09 * sigma * 41**0.5
    for radius in (0.1, 1.0, 100.0):
        step = np.minimum(alpha, radius * sigma / np.sqrt(norms))
        policy = NeuralRBMLEGA(linear=replace(LINE, radius=radius))
        index = policy.index(state, offer, rng())
        expected = w1 * (means + step * norms * (1 - step / (2 * alpha * zeta)))
        np.testing.assert_allclose(index, expected)
    assert (step == alpha).all()  # the last radius is no limit
    V, theta = np.linalg.inv(state.ridges.F[0, 0] @ state.ridges.F[0, 0].T), means
    scale = (state.record[-2] / state.record[-3]) ** 0.5  # SEEN/SQUARES
    x = np.r_[(offer.dense()[0] - state.sizes[:, MEAN]) * state.sizes[:, GAIN] * scale, 1.0]
    moved = alpha * np.linalg.solve(V, x)  # from θ̂ to the maximiser of −½‖θ − θ̂‖²_V + α θᵀx
    np.testing.assert_allclose(theta[0] + x @ moved, means[0] + alpha * norms[0])
    np.testing.assert_allclose(moved @ V @ moved / 2, alpha**2 * norms[0] / 2)


def test_with_a_line_the_index_of_the_network_is_its_biased_estimate_alone() -> None:
    policy = NeuralRBMLEGA(linear=replace(LINE, bias_factor=0.0), is_bounded=False)
    X = rng(3).normal(size=(80, 3))
    state = policy.init(1, 3, rng())
    batch = Batch(
        contexts=rows(X),
        rewards=np.sign(X[:, 0] * X[:, 1]),
        is_fitted=np.ones(80, np.bool_),
        rng=rng,
    )
    policy.update_all(state, batch)
    offer, t = rows(X[:4]), 81
    (w1, w2), means, _ = LINE.values(state, offer)
    alpha = policy.bias * t**0.5 * LINE.explained_share(state)
    key, offsets = np.uint64(t), w1 * means / w2
    f, _ = policy.ascent.estimates(
        policy.model, state.regression, offer, alpha, key, 0.0, -np.inf, offsets
    )
    assert w2 > 0.1
    np.testing.assert_allclose(policy.index(state, offer, rng()), w1 * means + w2 * f)


def test_the_line_is_trusted_where_rewards_are_noise_around_a_line_and_the_network_is_not() -> None:
    bandit = Bandit(NeuralRBMLEGA(), arms=2, features=4, seed=0)
    draws = rng(8)
    for _ in range(600):
        decision = bandit.decide(draws.normal(size=4))
        x = decision.context.dense()[0]
        mean = 0.5 * x[0] * (1 if decision.arm else -1)
        bandit.learn(decision, mean + draws.normal())
    assert isinstance(bandit.state, BlendState)
    (w1, w2), *_ = LinearPart().values(bandit.state, rows(np.ones((1, 4))))
    assert w1 > 0.3 > w2


def test_a_line_over_wide_contexts_keeps_a_diagonal() -> None:
    policy = NeuralRBMLEGA()
    state = policy.init(3, 2000, rng())
    assert state.ridges.F.shape == (6, 3, 2001, 1)
    bandit = Bandit(policy, arms=3, features=2000, seed=0)
    for t in range(5):
        bandit.learn(bandit.decide(rng(t).normal(size=2000)), float(t))
    assert all(np.isfinite(list(bandit.predict(np.ones(2000)).values())))


def test_predictions_are_in_the_units_of_rewards() -> None:
    for policy in (NeuralRBMLEGA(), NeuralUCB(), LinUCB()):
        bandit = Bandit(policy, arms=1, features=2, seed=0)
        for t in range(60):
            bandit.learn([1.0, t % 2], arm=0, reward=1000.0 + 5 * (t % 2))
        low, high = (bandit.predict([1.0, x])[0] for x in (0.0, 1.0))
        assert 998 < low < 1002.5 < high < 1007, policy


def test_a_likelihood_with_units_of_its_own_has_no_line() -> None:
    policy = NeuralRBMLEGA(model=Regression(is_standardised=False))
    assert not isinstance(policy.init(1, 2, rng()), BlendState)


@pytest.mark.parametrize(
    "settings",
    [{"ridges": ()}, {"ridges": (0.0,)}, {"patience": 0.0}, {"forgetting": 1.0}, {"radius": 0.0}],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        replace(LinearPart(), **settings)


@pytest.mark.parametrize("name", ["ga", "lin-ucb", "neural-ts"])
def test_a_bandit_saved_before_rewards_were_standardised_behaves_as_before(name: str) -> None:
    bandit, choices = Bandit.load(SAVED / f"{name}.rbmle"), []
    for t in range(40, 80):
        x = rng(t).normal(size=2)
        decision = bandit.decide(x)
        choices.append(decision.arm)
        bandit.learn(decision, float(decision.arm == ("tea" if x[0] > 0 else "juice")) * 3 + 10)
    assert choices == json.loads((SAVED / "choices.json").read_text())[name]
