"""NeuralLinUCB: the last hidden layer, the ridge regression over it, and its index."""

import numpy as np
import pytest

from rbmle import NeuralLinUCB, Regression, Replay
from rbmle.core.errors import SettingError
from rbmle.core.types import Observation
from rbmle.engine.network import last_hidden
from rbmle.policies.neural_lin_ucb import LastLayerState
from tests.samples import context, double, net_of, rng, rows

RIDGE, GAMMA = 0.7, 0.4


@pytest.mark.parametrize("depth", [2, 3])
def test_the_representation_is_the_last_hidden_layer_and_a_one(depth: int) -> None:
    network = double(width=5, depth=depth)
    net, X = net_of(network, 1, 3), rng(4).normal(size=(6, 3))
    phi = np.empty((6, 6))
    last_hidden(net, network.rows(rows(X)), phi)
    h = np.maximum(X @ net.theta.first + net.theta.biases[0], 0)
    for W, b in zip(net.theta.hidden, net.theta.biases[1:], strict=True):
        h = np.maximum(h @ W + b, 0)
    np.testing.assert_allclose(phi, np.column_stack([h, np.ones(6)]), rtol=1e-12)
    f = phi @ np.append(net.theta.output, net.theta.shift)
    np.testing.assert_allclose(network.predict(net, rows(X)), f, rtol=1e-9)


def test_a_network_without_biases_has_no_one() -> None:
    network = double(width=4, start="paired")
    phi = np.empty((1, 5))
    last_hidden(net_of(network, 1, 2), network.rows(rows(np.ones((1, 2)))), phi)
    assert phi[0, 4] == 0


def test_the_index_on_numbers_a_hand_can_check() -> None:
    """φ(e_1) = (1, 0, 1) and φ(e_2) = (0, 2, 1), λ = 1, one round with e_1 and r = 1, γ = 1.

    V = I + φφᵀ, V⁻¹φ = φ/3, θ̂ = φ(e_1)/3. e_1: mean 2/3 and norm² 2/3. e_2: θ̂ᵀφ = 1/3, and
    norm² = ‖φ‖² − (φ(e_1)ᵀφ(e_2))²/3 = 5 − 1/3.
    """
    training = Replay(steps=0, average=0.0)  # the network stays as it is
    policy = NeuralLinUCB(
        exploration=1.0,
        model=Regression(is_standardised=False, network=double(width=2), training=training),
    )
    state = policy.init(1, 2, rng())
    state.regression.net.theta.first[:] = [[1.0, 0.0], [0.0, 2.0]]
    state.regression.net.theta.biases[:] = 0.0
    policy.update(state, Observation(context=context([1.0, 0.0]), reward=1.0), rng())
    index = policy.index(state, rows(np.eye(2)), rng())
    np.testing.assert_allclose(index, [2 / 3 + (2 / 3) ** 0.5, 1 / 3 + (14 / 3) ** 0.5])


@pytest.mark.parametrize("rounds", [8, 16])
def test_all_rounds_are_represented_again_when_they_have_doubled(rounds: int) -> None:
    """By the textbook: θ̂ = V⁻¹ Σ r φ with V = λI + Σ φφᵀ, all of them with the network as it is."""
    policy, state, X, r = learned(rounds)
    phi = represented(policy, state, X)
    V = RIDGE * np.eye(7) + phi.T @ phi
    theta = np.linalg.solve(V, phi.T @ r)
    x = rng(9).normal(size=(4, 3))
    new = represented(policy, state, x)
    widths = np.sqrt(np.einsum("ij,jk,ik->i", new, np.linalg.inv(V), new))
    index = policy.index(state, rows(x), rng())
    np.testing.assert_allclose(index, new @ theta + GAMMA * widths, rtol=1e-7)


def test_between_doublings_an_observation_keeps_the_representation_of_its_round() -> None:
    policy, state, X, r = learned(8)
    phi = represented(policy, state, X)
    more = [rng(50 + t).normal(size=3) for t in range(3)]
    for t, x in enumerate(more):
        policy.update(state, Observation(context=context(x), reward=0.5), rng(t))
        phi = np.vstack([phi, represented(policy, state, x[None])])
    V = RIDGE * np.eye(7) + phi.T @ phi
    theta = np.linalg.solve(V, phi.T @ np.append(r, [0.5] * 3))
    np.testing.assert_allclose(state.head.theta[0], theta, rtol=1e-7)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="`ridge` must be a positive number"):
        NeuralLinUCB(ridge=0.0)
    with pytest.raises(SettingError, match="`exploration` must be a finite number"):
        NeuralLinUCB(exploration=-1.0)


def learned(rounds: int) -> tuple[NeuralLinUCB, LastLayerState, np.ndarray, np.ndarray]:
    """Return a policy that has learned some rounds, its state, and what it learned."""
    model = Regression(is_standardised=False, network=double(), training=Replay(steps=20))
    policy = NeuralLinUCB(exploration=GAMMA, ridge=RIDGE, model=model)
    state = policy.init(1, 3, rng())
    X, r = rng(1).normal(size=(rounds, 3)), rng(2).random(rounds)
    for t in range(rounds):
        policy.update(state, Observation(context=context(X[t]), reward=float(r[t])), rng(t))
    return policy, state, X, r


def represented(policy: NeuralLinUCB, state: LastLayerState, X: np.ndarray) -> np.ndarray:
    """Return φ of some contexts with the network as it is."""
    phi = np.empty((len(X), 7))
    last_hidden(state.regression.net, policy.model.network.rows(rows(X)), phi)
    return phi
