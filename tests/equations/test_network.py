"""Section 2.2: the network, its gradient, and its start."""

import numpy as np
import pytest

from rbmle import Network
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.engine.layout import Parameters
from rbmle.engine.precision import flatten_gradient
from rbmle.models.precision import differentiate_rows
from tests.samples import context, double, flat, net_of, rng, rows, slow_f, slow_gradient

SHAPES = [("standard", 2), ("standard", 3), ("standard", 4), ("paired", 2), ("paired", 3)]


def test_f_on_numbers_a_hand_can_check() -> None:
    """f = √2 (3 · max(2·1 − 1·2, 0) − 1 · max(0.5·1 + 1·2, 0)) = √2 (0 − 2.5)."""
    network = double(width=2, start="paired")
    net = network.init(1, 2, rng())
    theta = Parameters(
        np.array([[2.0, 0.5], [-1.0, 1.0]]),
        np.zeros((0, 2, 2)),
        np.array([3.0, -1.0]),
        np.zeros((1, 2)),
        np.zeros(1),
    )
    f = network.predict(net._replace(theta=theta), context([1.0, 2.0]))
    np.testing.assert_allclose(f, [-2.5 * 2**0.5])


@pytest.mark.parametrize(("start", "depth"), SHAPES)
def test_blocks_are_equivalent_to_the_long_context(start: str, depth: int) -> None:
    network = double(depth=depth, start=start)
    net = net_of(network, blocks=3, features=4)
    x = np.array([0.5, 0.0, -1.0, 2.0])
    f = network.predict(net, disjoint(x, np.arange(3), 4))
    np.testing.assert_allclose(f, [slow_f(network, net.theta, x, a) for a in range(3)], rtol=1e-12)


@pytest.mark.parametrize(("start", "depth"), SHAPES)
def test_the_gradient_is_that_of_finite_differences(start: str, depth: int) -> None:
    network = double(width=4, depth=depth, start=start)
    net = net_of(network, blocks=2, features=4)
    contexts = disjoint(np.array([0.5, 0.0, -1.0, 2.0]), np.array([1, 0]), 4)
    _, g = differentiate_rows(net, contexts.rows)
    slow = slow_gradient(network, net, contexts)
    if start == "paired":  # it has no biases, so their gradient is not taken
        slow[:, 0] = 0
        slow[:, 1 + 4 : 1 + 4 + net.theta.biases.size] = 0
    fast = np.empty_like(slow)
    for i in range(len(contexts)):
        flatten_gradient(net, g, i, fast[i])
    np.testing.assert_allclose(fast, slow, atol=1e-7)


def test_single_precision_is_double_precision_within_rounding() -> None:
    single, net = Network(width=32, depth=3), net_of(Network(width=32, depth=3), 2, 8)
    exact = double(width=32, depth=3)
    wide = exact.init(2, 8, rng())
    wide = wide._replace(theta=Parameters(*(part.astype(np.float64) for part in net.theta)))
    X = rows(rng(3).normal(size=(20, 8)))
    np.testing.assert_allclose(single.predict(net, X), exact.predict(wide, X), atol=1e-4)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_paired_start_gives_zero_on_duplicated_contexts(depth: int) -> None:
    network = double(width=8, depth=depth, start="paired")
    net = network.init(2, 6, rng())
    x = rng(1).normal(size=3)
    f = network.predict(net, disjoint(np.concatenate([x, x]), np.arange(2), 6))
    np.testing.assert_allclose(f, 0, atol=1e-12)


@pytest.mark.parametrize("width", [7, 8])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_zero_start_gives_zero_everywhere_and_a_gradient(depth: int, width: int) -> None:
    network = double(width=width, depth=depth, start="zero")
    net = network.grow(network.init(2, 6, rng()), 3, rng(2))
    contexts = disjoint(rng(1).normal(size=6), np.arange(3), 6)
    np.testing.assert_allclose(network.predict(net, contexts), 0, atol=1e-12)
    factors = differentiate_rows(net, network.rows(contexts))[1]
    assert (np.abs(factors.deltas).sum(axis=(1, 2)) > 0).all()


def test_the_paired_start_has_the_variances_of_the_paper() -> None:
    m = 200
    theta = double(width=m, depth=3, start="paired").init(1, 400, rng()).theta
    half = m // 2
    np.testing.assert_allclose(theta.first[:200, :half].var(), 2 / m, rtol=0.05)
    np.testing.assert_array_equal(theta.first[:200, :half], theta.first[200:, half:])
    assert not theta.first[:200, half:].any()
    assert not theta.first[200:, :half].any()
    np.testing.assert_allclose(theta.hidden[0, :half, :half].var(), 2 / m, rtol=0.05)
    np.testing.assert_array_equal(theta.output[:half], -theta.output[half:])
    np.testing.assert_allclose(theta.output.var(), 1 / m, rtol=0.2)


def test_the_standard_start_is_uniform_by_the_number_of_inputs() -> None:
    theta = double(width=100, depth=3).init(2, 25, rng()).theta
    assert 0.19 < np.abs(theta.first).max() <= 0.2  # 1/√25
    assert 0.09 < np.abs(theta.hidden).max() <= 0.1  # 1/√100
    assert 0.09 < np.abs(theta.output).max() <= 0.1


def test_invalid_network_settings_are_refused() -> None:
    with pytest.raises(SettingError, match="`width` must be at least 1, got 0"):
        Network(width=0)
    with pytest.raises(SettingError, match="`depth` must be at least 2, got 1"):
        Network(depth=1)
    with pytest.raises(SettingError, match="`width` must be even for a paired start, got 7; use 8"):
        Network(width=7, start="paired")
    with pytest.raises(SettingError, match="'standard', 'zero' or 'paired', got 'random'"):
        Network(start="random")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(SettingError, match="must be even for a paired start, got 3"):
        Network(start="paired").init(1, 3, rng())


def test_flat_and_flatten_gradient_have_one_order() -> None:
    """θ ↦ f is linear in W_L: its gradient there is h, at the places where `flat` has W_L."""
    network = double(width=3)
    net = net_of(network, 1, 2)
    _, g = differentiate_rows(net, context([1.0, 2.0]).rows)
    vector = np.empty(flat(net.theta).size)
    flatten_gradient(net, g, 0, vector)
    np.testing.assert_allclose(vector[1:4], g.hiddens[0, 0])
