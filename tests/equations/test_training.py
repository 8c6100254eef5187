"""Algorithms 1 and 2: steps by hand, the pull to the start, the average, and two ways to train compared."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rbmle import FullBatch, Memory, Regression, Replay
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Observation
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch
from rbmle.engine.layout import Bias
from rbmle.engine.replay import select_share
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood, Mixture
from rbmle.models.regression import RegressionState, no_bias
from tests.samples import context, double, flat, learned, rng, rows, slow_gradient, unflat, value

X = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 0.3]])
R = [1.0, 0.0, 0.5]
FIT = Regression(is_standardised=False, training=FullBatch(steps=1)).fit


def test_a_full_step_on_numbers_a_hand_can_check() -> None:
    """One unit, x = 2, r = 1, W_1 = 1, W_2 = 0.5: f = 1, so r − f = 0 and only the pull moves θ.

    With θ₀ = 0 in both weights, λ = 0.1, η = 0.5 and no biases, θ ← θ − η λ θ, that is 0.95 θ.
    """
    net = double(width=1).init(1, 1, rng())
    for part, start in zip(net.theta, net.start, strict=True):
        part[:] = start[:] = 0
    net.theta.first[:], net.theta.output[:] = 1.0, 0.5
    net = net._replace(biased=0.0)
    model = Regression(is_standardised=False, network=double(width=1), ridge=0.1)
    history = learned(model, np.array([[2.0]]), [1.0]).history
    mean = scalar(Gaussian.mean)
    full_batch(net, history.samples, FIT._replace(rate=0.5, ridge=0.1, mean=mean), no_bias(net))
    np.testing.assert_allclose(net.theta.first, [[0.95]])
    np.testing.assert_allclose(net.theta.output, [0.475])


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture()])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("depth", [2, 3])
def test_a_full_step_follows_the_gradient_of_the_biased_likelihood(
    likelihood: Likelihood, alpha: float, depth: int
) -> None:
    """θ ← θ + η ∇{ℓ_λ + α f(x_a)}, with the gradient by finite differences of f."""
    model = Regression(
        is_standardised=False,
        network=double(width=4, depth=depth),
        likelihood=likelihood,
        ridge=0.2,
    )
    state = learned(model, X, R)
    net, history, network = state.net, state.history, model.network
    for part in net.theta:
        part += 0.1 * rng(4).normal(size=part.shape)
    theta, start = flat(net.theta), flat(net.start)
    f, g = network.predict(net, rows(X)), slow_gradient(network, net, rows(X))
    bias = slow_gradient(network, net, context([2.0, 1.0]))[0]
    errors = np.array(R) - [likelihood.mean(z) for z in f]
    gradient = errors @ g - 0.2 * (theta - start) + alpha * bias
    arm = context([2.0, 1.0]).rows
    fit = FIT._replace(rate=0.01, ridge=0.2, mean=scalar(likelihood.mean))
    full_batch(net, history.samples, fit, Bias(arm, 0, alpha))
    np.testing.assert_allclose(flat(net.theta), theta + 0.01 * gradient, atol=1e-8)


def test_a_replay_step_is_a_step_on_the_newest_sample() -> None:
    """J = 1: θ ← θ₀ + η (r − f) g/(1 + η b″ ‖g‖²) with b″ = 1, and then the pull: the step/(1 + ηλ/n)."""
    model = Regression(
        is_standardised=False,
        network=double(width=4),
        training=Replay(steps=1, rate=0.3),
        ridge=0.2,
    )
    state = model.init(1, 2, rng())
    g = slow_gradient(model.network, state.net, context(X[0]))[0]
    f, theta = model.predict(state, context(X[0]))[0], flat(state.net.theta)
    seen = Observation(context=context(X[0]), reward=1.0)
    model.update_all(state, Batch.of(seen, rng()))
    step = 0.3 * (1.0 - f) * g / (1 + 0.3 * g @ g) / (1 + 0.3 * 0.2)
    settled = unflat(theta + step, state.net.theta)
    np.testing.assert_allclose(state.net.theta.output, settled.output, atol=1e-8)
    np.testing.assert_allclose(state.net.theta.biases, settled.biases, atol=1e-8)
    everywhere = rows(rng(2).normal(size=(9, 2)))
    np.testing.assert_allclose(
        model.predict(state, everywhere),
        value(model.network, state.net, theta + step, everywhere),
        atol=1e-7,
    )


def test_the_pull_of_a_round_shrinks_the_way_to_the_start() -> None:
    """With a rate for the pull alone (reward = f), θ − θ₀ ← (1 + ηλ/n)⁻ᴶ (θ − θ₀); rows of W_1 follow
    when a context touches them, and are read as if they had."""
    model = Regression(
        is_standardised=False,
        network=double(width=4),
        training=Replay(steps=10, rate=0.3),
        ridge=0.5,
    )
    state = learned(model, X, R)
    net = state.net
    away = 0.2 * rng(4).normal(size=flat(net.theta).size)
    for part, moved in zip(net.theta, unflat(flat(net.theta) + away, net.theta), strict=True):
        part[:] = moved
    keep = (1 + 0.3 * 0.5 / 3) ** -10
    expected = unflat(flat(net.start) + keep * away, net.theta)
    from rbmle.engine.replay import pull

    pull(net, 10 * math.log(1 / (1 + 0.3 * 0.5 / 3)))
    contexts = rows(X)
    exact = model.network.predict(
        net._replace(theta=expected, clock=np.zeros(1), ages=np.zeros_like(net.ages)), contexts
    )
    np.testing.assert_allclose(model.network.predict(net, contexts), exact, rtol=1e-12)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture()])
def test_replay_and_full_batch_agree_where_both_have_converged(likelihood: Likelihood) -> None:
    """A strongly pulled network has one maximiser nearby; replay with small steps hovers around it."""
    data = rng(7).normal(size=(12, 3))
    rewards = (data[:, 0] > 0).astype(float)
    full = Regression(
        is_standardised=False,
        network=double(width=8),
        likelihood=likelihood,
        ridge=2.0,
        training=FullBatch(steps=10_000, rate=0.05),
    )
    state = learned(full, data, rewards.tolist())
    full.training.fit(state, full.fit, np.uint64(0))
    replayed = Regression(
        is_standardised=False,
        network=double(width=8),
        likelihood=likelihood,
        ridge=2.0,
        training=Replay(steps=10_000, rate=0.0002),
    )
    other = learned(replayed, data, rewards.tolist())
    averages = []
    for t in range(200):
        replayed.training.fit(other, replayed.fit, np.uint64(t))
        if t >= 50:
            averages.append(replayed.predict(other, rows(data)))
    np.testing.assert_allclose(
        np.mean(averages, axis=0), full.predict(state, rows(data)), atol=0.01
    )


# The average of the walk.


def test_the_estimate_is_the_walk_in_the_first_twenty_rounds_and_then_follows_it() -> None:
    """A window of 5 % has one round in round 20, and 1.05 in round 21: a weight of 1/1.05."""
    model = averaged(0.05)
    state = model.init(3, 2, rng())
    for t in range(20):
        play(model, state, t)
        np.testing.assert_allclose(flat(state.net.theta), flat(state.walk.theta), rtol=1e-12)
    before = flat(state.net.theta)
    play(model, state, 20)
    expected = before + (flat(state.walk.theta) - before) / 1.05
    np.testing.assert_allclose(flat(state.net.theta), expected, rtol=1e-12)


def test_an_average_over_all_rounds_is_their_mean() -> None:
    """Weights 1, 1/2, 1/3, …"""
    model = averaged(1.0)
    state = model.init(3, 2, rng())
    points = []
    for t in range(10):
        play(model, state, t)
        points.append(flat(state.walk.theta))
    np.testing.assert_allclose(flat(state.net.theta), np.mean(points, axis=0), atol=1e-14)


def test_the_average_is_made_of_sixteen_points_of_a_window() -> None:
    """A window of 32 rounds has a point in each second round, of weight 2/32; one of 31, in each."""
    model = averaged(1.0)
    state = model.init(3, 2, rng())
    for t in range(36):
        before = flat(state.net.theta)
        play(model, state, t)
        weight = 1 / (t + 1) if t + 1 < 32 else 2 / (t + 1) if t % 2 else 0.0
        expected = before + weight * (flat(state.walk.theta) - before)
        np.testing.assert_allclose(flat(state.net.theta), expected, atol=1e-14)


def test_no_average_is_the_walk_to_the_bit() -> None:
    """Round 33 of an average over all rounds has no point: the walk goes on, θ̂ stays."""
    X, r = rng(1).normal(size=(33, 2)), rng(2).random(33).tolist()
    walks, last = averaged(1.0), averaged(0.0)
    state, other = (learned(model, X, r, [t % 3 for t in range(33)]) for model in (walks, last))
    for model, at in ((walks, state), (last, other)):
        for k in range(3):
            model.training.fit(at, model.fit, np.uint64(k))
    np.testing.assert_array_equal(flat(state.walk.theta), flat(other.net.theta))
    np.testing.assert_array_equal(flat(state.net.theta), flat(state.net.start))
    assert flat(other.walk.theta).size == 0


def test_the_average_is_that_of_a_dense_learner() -> None:
    """J = 1, and pulls large enough to be taken in every step: no row of W_1 may be left behind.

    Each round plays one of three blocks, so that the rows of the others owe a pull until a point
    of the average is taken.
    """
    model = averaged(1.0, steps=1)
    state = model.init(3, 2, rng())
    network, start = model.network, flat(state.net.start)
    walk, mean = start.copy(), start.copy()
    for t in range(40):
        x, reward = play(model, state, t)
        f = value(network, state.net, walk, x)[0]
        at = state.net._replace(theta=unflat(walk, state.net.theta))
        g = slow_gradient(network, at, x)[0]
        walk = walk + 0.05 * (reward - f) * g / (1 + 0.05 * g @ g)
        walk = start + (walk - start) / (1 + 0.05 * model.pull / (t + 1))
        if t + 1 < 32 or t % 2:
            mean = mean + (1 + (t + 1 >= 32)) / (t + 1) * (walk - mean)
            np.testing.assert_allclose(flat(state.walk.theta), walk, atol=1e-8)
            np.testing.assert_allclose(state.net.ages, state.net.clock[0])
        np.testing.assert_allclose(flat(state.net.theta), mean, atol=1e-8)


def test_the_estimate_owes_no_pull_between_two_points() -> None:
    """Only the walk does: what θ̂ says of any block stays as it is until θ̂ moves."""
    model = averaged(1.0)
    state = model.init(3, 2, rng())
    for t in range(40):
        play(model, state, t)
    everywhere = [context([0.5, -1.0], block) for block in range(3)]
    before = [model.predict(state, x)[0] for x in everywhere]
    play(model, state, 40)
    after = [model.predict(state, x)[0] for x in everywhere]
    np.testing.assert_allclose(after, before, rtol=1e-12)


def test_an_average_is_over_the_rounds_that_are_remembered() -> None:
    """Of a window of 20 rounds, 5 % is one: θ̂ is the walk, however many rounds there were before."""
    model = replace(averaged(0.05), ridge=0.001, memory=Memory(keep="window", size=20))
    state = model.init(1, 1, rng())
    for t in range(1000):
        seen = Observation(context=context([1.0]), reward=float(t >= 980))
        model.update_all(state, Batch.of(seen, rng(t)))
    np.testing.assert_allclose(flat(state.net.theta), flat(state.walk.theta), rtol=1e-6)


def test_more_blocks_leave_the_walk_and_its_average_as_they_are() -> None:
    model = averaged(1.0)
    state = model.init(3, 2, rng())
    for t in range(33):
        play(model, state, t)
    theta, walk = state.net.theta, state.walk.theta
    model.grow(state, 5, rng(9))
    for old, new in ((theta, state.net.theta), (walk, state.walk.theta)):
        np.testing.assert_array_equal(new.first[:6], old.first)
        np.testing.assert_array_equal(new.first[6:], state.net.start.first[6:])
        for part, same in zip(old[1:], new[1:], strict=True):
            np.testing.assert_array_equal(part, same)
    play(model, state, 33)
    kept = state.net.start.first[6:]
    np.testing.assert_allclose(state.net.theta.first[6:], kept, rtol=1e-12)
    np.testing.assert_allclose(state.walk.theta.first[6:], kept, rtol=1e-12)


@pytest.mark.parametrize("average", [-0.1, 1.1, float("nan")])
def test_an_average_is_a_share_of_the_rounds(average: float) -> None:
    with pytest.raises(SettingError, match=f"`average` must be between 0 and 1, got {average}"):
        Replay(average=average)


def test_full_batch_from_the_start_forgets_where_it_was() -> None:
    cold = Regression(
        is_standardised=False, network=double(), training=FullBatch(steps=5, rate=0.1, warm=False)
    )
    state = learned(cold, X, R)
    for _ in range(3):
        cold.training.fit(state, cold.fit, np.uint64(0))
    once = learned(cold, X, R)
    cold.training.fit(once, cold.fit, np.uint64(0))
    np.testing.assert_array_equal(flat(state.net.theta), flat(once.net.theta))


@pytest.mark.parametrize(
    "training", [Replay(steps=20_000, rate=0.1), FullBatch(steps=20_000, rate=0.1)]
)
def test_perturbed_rewards_have_one_draw_for_a_sample_and_a_round(
    training: Replay | FullBatch,
) -> None:
    """Trained to the end, the network gives r + ε, the same ε however often a sample is visited."""
    model = Regression(
        is_standardised=False, network=double(width=30), ridge=1e-6, training=training
    )
    fits = []
    for key in (1, 1, 2):
        state = learned(model, X, R)
        training.fit(state, model.fit._replace(noise=0.5), np.uint64(key))
        fits.append(model.predict(state, rows(X)))
    np.testing.assert_array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - R).max() > 0.1
    assert np.abs(fits[0] - fits[2]).max() > 0.1
    if isinstance(training, FullBatch):
        return
    other = FullBatch(steps=20_000, rate=0.1)
    state = learned(model, X, R)
    other.fit(state, model.fit._replace(noise=0.5), np.uint64(1))
    np.testing.assert_allclose(model.predict(state, rows(X)), fits[0], atol=0.02)


@pytest.mark.parametrize("training", [Replay(steps=300, rate=0.2), FullBatch(steps=300, rate=0.2)])
def test_a_share_of_the_history_is_all_that_a_network_sees(training: Replay | FullBatch) -> None:
    """With a key that leaves the second sample out, its reward changes nothing."""
    model = Regression(is_standardised=False, network=double(), training=training)
    seen = np.zeros(3, bool)
    key = next(k for k in range(100) if select(k, seen) == [True, False, True])
    fits = []
    for reward in (0.0, 9.0):
        state = learned(model, X, [1.0, reward, 0.5])
        fit = model.fit._replace(share=0.8, share_key=np.uint64(key))
        training.fit(state, fit, np.uint64(3))
        fits.append(flat(state.net.theta))
    np.testing.assert_array_equal(fits[0], fits[1])


def select(key: int, out: np.ndarray) -> list[bool]:
    select_share(np.arange(3), 3, FIT._replace(share=0.8, share_key=np.uint64(key)), out)
    return out.tolist()


def averaged(average: float, steps: int = 3) -> Regression:
    """Return a model with a ridge so strong that each step is worth a pull."""
    training = Replay(steps=steps, rate=0.05, average=average)
    return Regression(is_standardised=False, network=double(width=4), ridge=2.0, training=training)


def play(model: Regression, state: RegressionState, t: int) -> tuple[Contexts, float]:
    """Learn from round t, in block t mod 3, and return what was seen."""
    x, reward = context(rng(t).normal(size=2), t % 3), float(t % 2)
    model.update_all(state, Batch.of(Observation(context=x, reward=reward), rng(t)))
    return x, reward
