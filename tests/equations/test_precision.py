"""Z = λI + Σ g gᵀ/m against `numpy.linalg`, exact and diagonal, for widths and for corrections."""

from typing import Any

import numpy as np
import pytest

from rbmle import Diagonal, Exact, Regression
from rbmle.core.encoding import disjoint
from rbmle.core.types import Contexts
from rbmle.engine.layout import Net
from rbmle.models.network import Network
from rbmle.models.precision import Precision
from tests.samples import double, flat, net_of, rng, slow_gradient, value

RIDGES = [0.001, 0.1, 1.0, 10.0]
FEATURES, ARMS = 3, 2


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("start", ["standard", "paired"])
@pytest.mark.parametrize("rounds", [1, 12])
def test_the_exact_width_is_that_of_the_dense_inverse(
    ridge: float, depth: int, start: str, rounds: int
) -> None:
    network, net, Z, state = _played(Exact(), ridge, depth, start, rounds)
    contexts = _contexts(99, network)
    G = _gradients(network, net, contexts)
    f, norms = Exact().estimates(state, net, contexts.rows, network.m)
    expected = np.einsum("ip,pq,iq->i", G, np.linalg.inv(Z), G)
    np.testing.assert_allclose(norms, expected, rtol=1e-5)
    np.testing.assert_allclose(f, network.predict(net, contexts))


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("start", ["standard", "paired"])
def test_the_exact_correction_is_that_of_the_dense_inverse(
    ridge: float, depth: int, start: str
) -> None:
    """f(x; θ̂ + (α/m) Z⁻¹ g) with the p-long vector in full, and by factors alone."""
    network, net, Z, state = _played(Exact(), ridge, depth, start, 12)
    contexts, amount = _contexts(99, network), 0.01 * ridge
    corrected = Exact().corrected(state, net, contexts.rows, amount, network.m)
    for i, g in enumerate(_gradients(network, net, contexts)):
        moved = flat(net.theta) + amount * np.linalg.inv(Z) @ g
        expected = value(network, net, moved, contexts.row(i))
        np.testing.assert_allclose(corrected[i], expected[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_dense_form_takes_over_and_nothing_changes(ridge: float) -> None:
    """With p = 13 parameters the Gram form ends after 17 rounds; both are the inverse."""
    network, net, Z, state = _played(Exact(), ridge, 2, "standard", 40, width=1, features=4, arms=2)
    assert state.is_dense
    contexts = _contexts(99, network, features=4)
    G = _gradients(network, net, contexts)
    _, norms = Exact().estimates(state, net, contexts.rows, 1.0)
    np.testing.assert_allclose(norms, np.einsum("ip,pq,iq->i", G, np.linalg.inv(Z), G), rtol=1e-5)
    corrected = Exact().corrected(state, net, contexts.rows, 0.01 * ridge, 1.0)
    for i, g in enumerate(G):
        moved = flat(net.theta) + 0.01 * ridge * np.linalg.inv(Z) @ g
        np.testing.assert_allclose(
            corrected[i], value(network, net, moved, contexts.row(i))[0], rtol=1e-5, atol=1e-8
        )


@pytest.mark.parametrize("rounds", [5, 40])
def test_the_exact_form_grows_with_a_new_block(rounds: int) -> None:
    network, net, Z, state = _played(
        Exact(), 0.1, 2, "standard", rounds, width=1, features=4, arms=2
    )
    wider = network.grow(net, 3, rng())
    Exact().grow(state, wider, 0.1)
    contexts = disjoint(np.ones(4), np.arange(3), 4)
    G = _gradients(network, wider, contexts)
    padded = 0.1 * np.eye(G.shape[1])
    padded[: len(Z), : len(Z)] = Z
    _, norms = Exact().estimates(state, wider, contexts.rows, 1.0)
    np.testing.assert_allclose(
        norms, np.einsum("ip,pq,iq->i", G, np.linalg.inv(padded), G), rtol=1e-5
    )


@pytest.mark.parametrize("precision", [Exact(), Diagonal()])
@pytest.mark.parametrize("begun", [5, 40])
def test_a_frozen_precision_stays_as_it_is_when_the_original_learns(
    precision: Precision, begun: int
) -> None:
    """The exact one before it becomes dense, while it does, and after."""
    network, net, _, state = _played(
        precision, 0.1, 2, "standard", begun, width=1, features=4, arms=2
    )
    contexts = _contexts(99, network, features=4)
    frozen = precision.frozen(state)
    _, before = precision.estimates(frozen, net, contexts.rows, 1.0)
    for t in range(40):
        played = _contexts(100 + t, network, 4).row(t % 2)
        precision.add(state, net, network.rows(played), 1.0)
        np.testing.assert_array_equal(
            precision.estimates(frozen, net, contexts.rows, 1.0)[1], before
        )
    assert (precision.estimates(state, net, contexts.rows, 1.0)[1] < before).all()


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("start", ["standard", "paired"])
def test_the_diagonal_is_that_of_z(ridge: float, depth: int, start: str) -> None:
    network, net, Z, state = _played(Diagonal(), ridge, depth, start, 12)
    contexts, amount = _contexts(99, network), 0.01 * ridge
    G = _gradients(network, net, contexts)
    _, norms = Diagonal().estimates(state, net, contexts.rows, network.m)
    np.testing.assert_allclose(norms, (G**2 / Z.diagonal()).sum(axis=1), rtol=1e-5)
    corrected = Diagonal().corrected(state, net, contexts.rows, amount, network.m)
    for i, g in enumerate(G):
        moved = flat(net.theta) + amount * g / Z.diagonal()
        expected = value(network, net, moved, contexts.row(i))
        np.testing.assert_allclose(corrected[i], expected[0], rtol=1e-5, atol=1e-7)


def test_a_width_on_numbers_a_hand_can_check() -> None:
    """One unit, W_1 = W_2 = 1, x = 2, no biases: g = (2, 2), λ = 1.

    ‖g‖²_{Z⁻¹} = 8 before any data; after g gᵀ was added, g is an eigenvector of Z with 9: 8/9.
    The diagonal of Z is (5, 5): 4/5 + 4/5.
    """
    net = double(width=1).init(1, 1, rng())
    for part in net.theta:
        part[:] = 0
    net.theta.first[:], net.theta.output[:] = 1.0, 1.0
    net = net._replace(biased=0.0)
    x = disjoint(np.array([2.0]), np.array([0]), 1).rows
    exact, diagonal = Exact().init(net, 1.0), Diagonal().init(net, 1.0)
    assert Exact().estimates(exact, net, x, 1.0)[1][0] == pytest.approx(8)
    Exact().add(exact, net, x, 1.0)
    Diagonal().add(diagonal, net, x, 1.0)
    assert Exact().estimates(exact, net, x, 1.0)[1][0] == pytest.approx(8 / 9)
    assert Diagonal().estimates(diagonal, net, x, 1.0)[1][0] == pytest.approx(8 / 5)


def test_single_precision_stays_near_over_a_long_run() -> None:
    """D is multiplied once a round; after 20,000 rounds it is still 1/diag(Z) to five digits."""
    network = Network(width=8)
    net = network.init(1, 4, rng())
    wide = double(width=8).init(1, 4, rng())
    wide = wide._replace(theta=type(wide.theta)(*(part.astype(np.float64) for part in net.theta)))
    single, exact = Diagonal().init(net, 0.001), Diagonal().init(wide, 0.001)
    X = rng(1).normal(size=(20_000, 4))
    for x in X:
        rows = disjoint(x, np.array([0]), 4).rows
        Diagonal().add(exact, wide, rows, 1.0)
        Diagonal().add(single, net, rows._replace(values=rows.values.astype(np.float32)), 1.0)
    for a, b in zip(single.D, exact.D, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def _played(
    precision: Precision,
    ridge: float,
    depth: int,
    start: str,
    rounds: int,
    width: int = 4,
    features: int = FEATURES,
    arms: int = ARMS,
) -> tuple[Network, Net, np.ndarray, Any]:
    """Return a network, Z by its definition, and the precision after some rounds."""
    if start == "paired":
        features = 4
    network = double(width=width, depth=depth, start=start)
    net = net_of(network, arms, features)
    Z = ridge * np.eye(flat(net.theta).size)
    state = precision.init(net, ridge)
    for t in range(rounds):
        context = _contexts(t, network, features).row(t % arms)
        (g,) = _gradients(network, net, context)
        Z += np.outer(g, g) / network.m
        precision.add(state, net, network.rows(context), network.m)
    return network, net, Z, state


def _contexts(t: int, network: Network, features: int = FEATURES) -> Contexts:
    features = 4 if network.start == "paired" else features
    return disjoint(rng(t).normal(size=features), np.arange(ARMS), features)


def _gradients(network: Network, net: Net, contexts: Contexts) -> np.ndarray:
    """Return g by finite differences; a network without biases has no gradient there."""
    G = slow_gradient(network, net, contexts)
    if network.start == "paired":
        G[:, 0] = 0
        G[:, 1 + network.width : 1 + network.width * network.depth] = 0
    return G


def test_regression_has_the_ridge_of_its_network() -> None:
    """mλ is λ times the square of the output's scale."""
    assert Regression(ridge=0.5, network=Network(width=8, start="paired")).pull == 4.0
    assert Regression(ridge=0.5, network=Network(width=8)).pull == 0.5
