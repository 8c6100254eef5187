"""FG-TS: the feel-good term and its gradient, the noise of a round, and the posterior they lead to."""

import numpy as np
import pytest

from rbmle import FGTS, FullBatch, Regression, Replay
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Observation
from rbmle.engine.layout import FeelGood
from rbmle.engine.posterior import feel_good, jolt
from tests.samples import context, double, flat, learned, net_of, rng, slow_f, slow_gradient

KEY = np.uint64(7)
TINY = 1e-7


@pytest.mark.parametrize("depth", [2, 3])
def test_a_step_is_along_the_gradient_of_the_best_block(depth: int) -> None:
    """∇ max_a f(x_a; θ) = g(x_a*; θ), by central differences; the amount is small, so that no guard is felt."""
    network = double(width=5, depth=depth)
    state = learned(Regression(network=network), np.array([[0.7, -0.4, 1.1]]), [1.0], blocks=[2])
    net = state.net._replace(theta=net_of(network, 3, 3).theta)
    x = np.array([0.7, -0.4, 1.1])
    values = [slow_f(network, net.theta, x, block) for block in range(3)]
    best = int(np.argmax(values))
    before, gradient = flat(net.theta), slow_gradient(network, net, context(x, best))[0]
    feel_good(net, state.history.rows, 1, FeelGood(1, TINY, 1e9), KEY)
    np.testing.assert_allclose((flat(net.theta) - before) / TINY, gradient, atol=1e-5)


def test_above_the_cap_there_is_nothing_to_gain() -> None:
    network = double()
    state = learned(Regression(network=network), np.ones((1, 3)), [1.0])
    net = state.net
    f = slow_f(network, net.theta, np.ones(3), 0)
    before = flat(net.theta)
    feel_good(net, state.history.rows, 1, FeelGood(5, 0.1, f - 0.01), KEY)
    np.testing.assert_array_equal(flat(net.theta), before)
    feel_good(net, state.history.rows, 1, FeelGood(1, 0.1, f + 0.01), KEY)
    assert slow_f(network, net.theta, np.ones(3), 0) > f


def test_a_step_raises_f_by_at_most_about_one_however_large_the_features_are() -> None:
    network = double()
    state = learned(Regression(network=network), np.full((1, 3), 1e6), [1.0])
    f = slow_f(network, state.net.theta, np.full(3, 1e6), 0)
    feel_good(state.net, state.history.rows, 1, FeelGood(1, 10.0, 1e12), KEY)
    assert slow_f(network, state.net.theta, np.full(3, 1e6), 0) - f == pytest.approx(1, rel=0.1)


def test_the_noise_has_the_deviation_that_is_asked_for_and_no_mean() -> None:
    W = np.zeros((500, 100))
    jolt(W, 0.3, KEY)
    assert set(np.unique(W)) == {-0.3, 0.3}
    assert abs(W.mean()) < 4 * 0.3 / W.size**0.5
    assert abs((W[:, :-1] * W[:, 1:]).mean()) < 4 * 0.09 / W.size**0.5
    assert abs((W[:-1] * W[1:]).mean()) < 4 * 0.09 / W.size**0.5
    again = np.zeros_like(W)
    jolt(again, 0.3, np.uint64(8))
    assert abs((W * again).mean()) < 4 * 0.09 / W.size**0.5


def test_the_noise_of_a_round_on_numbers_a_hand_can_check() -> None:
    """J = 4, η = ½ and n = 2 make h = 4 · ½/2 = 1; with τ = 0.02 the deviation is √(2 · 1 · 0.02) = 0.2."""
    model = Regression(network=double(), training=Replay(steps=4, rate=0.5, average=0.0))
    quiet = FGTS(model=model, bias=0.0, cap=1.0, exploration=0.0)
    loud = FGTS(model=model, bias=0.0, cap=1.0, exploration=0.02**0.5)
    ends = []
    for policy in (quiet, loud):
        state = learned(model, np.ones((1, 3)), [1.0])
        seen = Observation(context=context([0.0, 1.0, 0.0]), reward=0.0)
        policy.update_all(state, Batch.of(seen, rng()))
        ends.append(flat(state.net.theta))
    np.testing.assert_allclose(np.abs(ends[1] - ends[0]), 0.2, rtol=1e-9)


def test_the_shift_of_a_network_without_input_has_the_posterior_that_the_theory_says() -> None:
    """With x = 0 and no hidden unit alive, f = θ alone: ℓ = −½ Σ (r_s − θ)² + c n min(cap, θ), λ → 0.

    Its maximiser is r̄ + c = 0.5 + 0.1, and exp(ℓ/τ) has the variance τ/n. The steps are short, n does not grow.
    """
    n, tau, weight = 20, 0.04, 0.1
    training = FullBatch(steps=10, rate=0.005)
    model = Regression(network=double(width=1), training=training, ridge=1e-9, alarm=0.0)
    policy = FGTS(model=model, bias=weight, cap=10.0, exploration=tau**0.5)
    state = learned(model, np.zeros((n, 1)), [0.0, 1.0] * (n // 2))
    points, stream = [], rng(3)
    for _ in range(6000):
        for part in state.net.theta[:4]:
            part[:] = 0.0  # nothing but the shift moves
        model.training.fit(state, model.fit, KEY)
        policy._move(state, stream)
        points.append(float(state.net.theta.shift[0]))
    late = np.array(points[200:])
    assert late.mean() == pytest.approx(0.5 + weight, abs=0.02)
    assert late.var() == pytest.approx(tau / n, rel=0.25)


def test_an_average_is_refused_as_a_sample() -> None:
    with pytest.raises(SettingError, match=r"`model\.training\.average` must be 0, got 0\.02"):
        FGTS(model=Regression())
    with pytest.raises(SettingError, match="`bias` must be a finite number"):
        FGTS(bias=-1.0)
