"""Section 4.1: the prototypic NeuralRBMLE, Eqs. (11) to (13), and Lemma E.1 for a network."""

import numpy as np
import pytest

from rbmle import Bandit, NeuralRBMLE, Regression, Replay
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Observation
from rbmle.engine.compiled import scalar
from rbmle.engine.layout import Bias
from rbmle.models.regression import settle
from rbmle.policies.neural_rbmle import maximise, objective
from tests.samples import context, double, flat, learned, rng, slow_gradient, value

ARMS, ALPHA, RIDGE = 3, 0.05, 1.0
X, BLOCKS = rng(1).normal(size=(9, 2)), [0, 1, 2] * 3
R: list[float] = rng(2).normal(size=9).tolist()
CONTEXTS = disjoint(np.array([0.5, -1.0]), np.arange(ARMS), 2)
MODEL = Regression(is_standardised=False, network=double(width=4), ridge=RIDGE)


@pytest.mark.parametrize("arm", range(ARMS))
def test_the_maximiser_of_an_arm_has_no_slope_left(arm: int) -> None:
    """∇{Σ (r f − f²/2) − (λ/2)‖θ − θ₀‖² + α f(x_a)} by finite differences of f.

    All features, weights of W_1 and biases are positive, so that no unit is near the kink of σ.
    """
    positive, contexts = np.abs(X), disjoint(np.array([0.5, 1.0]), np.arange(ARMS), 2)
    state = learned(MODEL, positive, R, BLOCKS)
    for point in (state.net.theta, state.net.start):
        for part in (point.first, point.biases):
            part[:] = 1 + np.abs(part)
    net, samples = settle(state.net), state.history.samples
    fit, potential = MODEL.fit._replace(steps=10_000), scalar(MODEL.likelihood.b)
    bias = Bias(MODEL.network.rows(contexts), arm, ALPHA)
    before = objective(net, samples, fit, potential, bias)
    reached = maximise(net, samples, fit, potential, bias)
    theta, start = flat(net.theta), flat(net.start)
    f = [
        value(MODEL.network, net, theta, context(x, b))[0]
        for x, b in zip(positive, BLOCKS, strict=True)
    ]
    slope = ALPHA * slow_gradient(MODEL.network, net, contexts.row(arm))[0] - RIDGE * (
        theta - start
    )
    for x, r, b, z in zip(positive, R, BLOCKS, f, strict=True):
        slope += (r - z) * slow_gradient(MODEL.network, net, context(x, b))[0]
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    by_hand = sum(r * z - z * z / 2 for r, z in zip(R, f, strict=True))
    by_hand -= RIDGE / 2 * ((theta - start) ** 2).sum()
    by_hand += ALPHA * value(MODEL.network, net, theta, contexts.row(arm))[0]
    assert reached == pytest.approx(by_hand)
    assert reached >= before


@pytest.mark.parametrize("seed", range(10))
def test_the_arm_of_the_joint_maximiser_is_that_of_the_largest_index(seed: int) -> None:
    """Lemma E.1, for a network: the joint maximum of Eq. (11), and the index of Eq. (13)."""
    contexts = disjoint(rng(seed + 10).normal(size=2), np.arange(ARMS), 2)
    state = learned(MODEL, X, R, BLOCKS)
    policy = NeuralRBMLE(model=MODEL, bias=ALPHA / 10**0.5, steps=500)  # α = bias · √10
    likelihoods, values = policy.maxima(state, contexts, ALPHA)
    index = likelihoods + ALPHA * values.diagonal()  # Eq. (13)
    joint = likelihoods + ALPHA * values.max(axis=1)  # Eq. (11)
    found = policy.index(state, contexts, rng())
    np.testing.assert_array_equal(found, values[joint.argmax()])
    assert found.argmax() == index.argmax()


def test_a_copy_without_debts_has_the_values_of_the_network() -> None:
    """Rows of W_1 owe the ridge's pull until they are touched."""
    model = Regression(
        is_standardised=False, network=double(width=4), ridge=0.3, training=Replay(average=0)
    )
    state = model.init(ARMS, 2, rng())
    for t, (x, r) in enumerate(zip(X, R, strict=True)):
        seen = Observation(context=context(x, min(t, 2)), reward=r)
        model.update_all(state, Batch.of(seen, rng(t)))
    assert (state.net.clock[0] < state.net.ages).any()
    copy = settle(state.net)
    assert (copy.ages == 0).all()
    np.testing.assert_allclose(
        model.network.predict(copy, CONTEXTS), model.predict(state, CONTEXTS), rtol=1e-3
    )


def test_an_arm_of_which_nothing_is_known_stays_finite() -> None:
    """α f outgrows the pull to θ₀, and there is no maximum: a step adds one unit of reward at most."""
    bandit = Bandit(NeuralRBMLE(bias=100.0, steps=20), arms=2, features=2)
    indices = bandit.decide([3.0, 4.0]).indices
    assert 1 < indices.max() < 100


def test_an_ascent_without_steps_is_refused() -> None:
    with pytest.raises(SettingError, match="`steps` must be at least 1, got 0"):
        NeuralRBMLE(steps=0)
