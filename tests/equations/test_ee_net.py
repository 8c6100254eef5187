"""EE-Net: what the exploration network sees, what it is fitted to, and the index."""

import numpy as np
import pytest

from rbmle import Bernoulli, EENet, Regression, Replay
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.types import Observation
from rbmle.policies.ee_net import ExplorerState
from tests.samples import context, double, net_of, rng, rows, slow_f

STEP = 1e-6
PLACES = 2.0**-17 + 1e-8  # half of the last place that z has, and what differences are off by


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("start", ["standard", "paired"])
def test_the_gradient_by_the_features_is_that_of_differences(depth: int, start: str) -> None:
    network = double(width=6, depth=depth, start=start)
    policy = EENet(model=Regression(is_standardised=False, network=network))
    state = policy.init(3, 4, rng())
    state.exploit.net = net_of(network, 3, 4)
    x = rng(5).normal(size=4)
    _, z = policy.gradients(state, disjoint(x, np.arange(3), 4))
    for block, found in enumerate(z.dense()):
        slope = np.array(
            [
                slow_f(network, state.exploit.net.theta, x + STEP * e, block)
                - slow_f(network, state.exploit.net.theta, x - STEP * e, block)
                for e in np.eye(4)
            ]
        ) / (2 * STEP)
        np.testing.assert_allclose(found[:4], 2 * slope / np.linalg.norm(slope), atol=PLACES)
        np.testing.assert_allclose(found[4:], 2 * x / np.linalg.norm(x), atol=PLACES)
        assert (found * 2**16 == np.round(found * 2**16)).all()


def test_rows_that_owe_a_pull_are_read_with_the_pull_applied() -> None:
    network = double(width=4)
    policy = EENet(model=Regression(is_standardised=False, network=network))
    state = policy.init(1, 2, rng())
    state.exploit.net = net = net_of(network, 1, 2)
    net.clock[0] = np.log(0.5)  # half of θ − θ₀ is left
    pulled = net.start.first + 0.5 * (net.theta.first - net.start.first)
    _, owing = policy.gradients(state, rows(np.array([[1.0, -2.0]])))
    state.exploit.net = net._replace(
        theta=net.theta._replace(first=pulled), ages=np.full(2, net.clock[0])
    )
    _, settled = policy.gradients(state, rows(np.array([[1.0, -2.0]])))
    np.testing.assert_allclose(owing.dense(), settled.dense(), atol=2 * PLACES)


def test_features_that_a_context_does_not_have_are_left_out() -> None:
    """Of x = (0, 3, 0, 0), n = 1: both halves have one entry, ±1 and 1."""
    policy = EENet(model=Regression(is_standardised=False, network=double()))
    state = policy.init(1, 4, rng())
    _, z = policy.gradients(state, context([0.0, 3.0, 0.0, 0.0]))
    (found,) = z.dense()
    np.testing.assert_allclose(np.abs(found), [0, 1, 0, 0, 0, 1, 0, 0])
    assert found[5] == pytest.approx(1)


@pytest.mark.parametrize("likelihood", [None, Bernoulli()])
def test_the_second_network_is_fitted_to_the_residuals_before_the_first_learned(
    likelihood: Bernoulli | None,
) -> None:
    model = Regression(is_standardised=False, network=double(), training=Replay(steps=10))
    if likelihood is not None:
        model = Regression(
            is_standardised=False,
            network=double(),
            training=Replay(steps=10),
            likelihood=likelihood,
        )
    policy = EENet(model=model)
    state = policy.init(1, 2, rng())
    for t in range(5):
        x = rng(t).normal(size=2)
        expected, z = policy.gradients(state, context(x))
        policy.update(state, Observation(context=context(x), reward=1.0), rng(t))
        assert state.explore.history.rewards[t] == pytest.approx(1 - expected[0], rel=1e-12)
        start = state.explore.history.starts[t]
        kept = state.explore.history.values[start : start + z.rows.lengths[0]]
        np.testing.assert_allclose(kept, z.rows.values, rtol=1e-12)


def test_the_index_is_the_sum_of_both_networks() -> None:
    policy = EENet(exploration=2.0, model=Regression(is_standardised=False, network=double()))
    state = trained(policy)
    X = rng(8).normal(size=(4, 2))
    first, z = policy.gradients(state, rows(X))
    second = policy.explorer.predict(state.explore, z)
    network = policy.model.network
    np.testing.assert_allclose(first, network.predict(state.exploit.net, rows(X)), rtol=1e-12)
    np.testing.assert_allclose(second, network.predict(state.explore.net, z), rtol=1e-12)
    np.testing.assert_allclose(policy.index(state, rows(X), rng()), first + 2 * second)


def test_an_exploration_below_0_is_refused() -> None:
    with pytest.raises(SettingError, match="`exploration` must be a finite number"):
        EENet(exploration=-1.0)


def trained(policy: EENet) -> ExplorerState:
    """Return a state that has learned a little."""
    state = policy.init(1, 2, rng())
    for t in range(10):
        seen = Observation(context=context(rng(t).normal(size=2)), reward=float(t % 2))
        policy.update(state, seen, rng(t))
    return state
