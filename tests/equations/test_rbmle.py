"""Section 4 and appendix E: the RBMLE index, its equivalence, and the two practical algorithms."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbmle import (
    ArmAscent,
    Exact,
    FullBatch,
    LinRBMLE,
    Logarithm,
    NeuralRBMLEGA,
    NeuralRBMLEPC,
    NeuralTS,
    NeuralUCB,
    Power,
    Regression,
    Replay,
    Ridge,
)
from rbmle.core.encoding import disjoint, per_arm
from rbmle.core.types import Batch, Contexts, Observation
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch, log_likelihood
from rbmle.engine.hashing import below, mix
from rbmle.engine.layout import Bias, Parameters
from rbmle.engine.replay import BEND
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood, Mixture
from rbmle.models.regression import RegressionState
from rbmle.policies.base import TangentState
from tests.samples import context, double, flat, learned, rng, rows, slow_gradient, unflat, value

RIDGE, ALPHA = 0.7, 1.3
STEPS, RATE = 5, 0.1  # of an arm's ascent


# Lemma E.1: the arm of max f(x; θ†_t) is the arm of the largest index, Eqs. (11) to (13).


@pytest.mark.parametrize("seed", range(20))
def test_the_arm_of_the_biased_maximiser_is_the_arm_of_the_largest_index(seed: int) -> None:
    """For f = θᵀx the maximisers are exact: θ†_a = V⁻¹(Σ r x + α x_a).

    θ†_t of Eq. (11) maximises over θ and a at once, so it is the θ†_a of the largest objective; it is
    found here by trying every arm's maximiser in the objective with the max inside.
    """
    X, r = rng(seed).normal(size=(8, 3)), rng(seed + 100).normal(size=8)
    arms = rng(seed + 200).normal(size=(5, 3))
    V = RIDGE * np.eye(3) + X.T @ X

    def likelihood(theta: np.ndarray) -> float:
        f = X @ theta
        return float((r * f - f**2 / 2).sum() - RIDGE / 2 * theta @ theta)

    maximisers = [np.linalg.solve(V, X.T @ r + ALPHA * x) for x in arms]
    indices = [
        likelihood(theta) + ALPHA * x @ theta for theta, x in zip(maximisers, arms, strict=True)
    ]
    joint = max(maximisers, key=lambda theta: likelihood(theta) + ALPHA * (arms @ theta).max())
    assert np.argmax(arms @ joint) == np.argmax(indices)


@pytest.mark.parametrize("seed", range(20))
def test_lin_rbmle_orders_arms_as_the_exact_index_does(seed: int) -> None:
    """With exact maximisers the index is α (θ̂ᵀx + ½ α ‖x‖²_{V⁻¹}) plus what all arms share."""
    X, r = rng(seed).normal(size=(8, 3)), rng(seed + 100).normal(size=8)
    arms = rng(seed + 200).normal(size=(5, 3))
    # α = bias · √9 at the ninth round
    policy = LinRBMLE(
        bias=ALPHA / 3, growth=Power(exponent=0.5), model=Ridge(is_standardised=False, ridge=RIDGE)
    )
    state = policy.init(1, 3, rng())
    for x, reward in zip(X, r, strict=True):
        policy.update(state, Observation(context=context(x), reward=reward), rng())
    V = RIDGE * np.eye(3) + X.T @ X
    theta = np.linalg.solve(V, X.T @ r)
    exact = []
    for x in arms:
        biased = np.linalg.solve(V, X.T @ r + ALPHA * x)
        f, base = X @ biased, X @ theta
        gain = (r * (f - base) - (f**2 - base**2) / 2).sum()
        gain -= RIDGE / 2 * (biased @ biased - theta @ theta)
        exact.append((gain + ALPHA * x @ biased) / ALPHA)
    np.testing.assert_allclose(policy.index(state, rows(arms), rng()), exact, rtol=1e-9, atol=1e-12)


def test_lin_rbmle_on_numbers_a_hand_can_check() -> None:
    """λ = 1, one round with x = (1, 0) and r = 1: V = diag(2, 1), θ̂ = (½, 0), α = 2 √2 at t = 2.

    Index of (1, 0): ½ + √2 · ½. Index of (0, 1): 0 + √2 · 1.
    """
    model = Ridge(is_standardised=False)
    policy = LinRBMLE(bias=2.0, growth=Power(exponent=0.5), model=model)
    state = policy.init(1, 2, rng())
    policy.update(state, Observation(context=context([1.0, 0.0]), reward=1.0), rng())
    index = policy.index(state, rows(np.eye(2)), rng())
    np.testing.assert_allclose(index, [0.5 + 2**0.5 / 2, 2**0.5])


@pytest.mark.parametrize("ridge", [0.001, 0.1, 1.0, 10.0])
def test_the_linear_model_is_the_ridge_regression_it_claims(ridge: float) -> None:
    X, r = rng(1).normal(size=(30, 4)), rng(2).normal(size=30)
    model = Ridge(is_standardised=False, ridge=ridge)
    state = model.init(2, 4, rng())
    for x, reward in zip(X, r, strict=True):
        seen = Observation(context=context(x, block=1), reward=reward)
        model.update_all(state, Batch.of(seen, rng()))
    V = ridge * np.eye(4) + X.T @ X
    mean, norm = model.estimates(state, disjoint(np.ones(4), np.array([0, 1]), 4))
    np.testing.assert_allclose(state.F[1] @ state.F[1].T, np.linalg.inv(V), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(state.theta[1], np.linalg.solve(V, X.T @ r), rtol=1e-7)
    np.testing.assert_allclose(norm, [4 / ridge, np.linalg.inv(V).sum()], rtol=1e-7)
    np.testing.assert_allclose(mean, [0, np.linalg.solve(V, X.T @ r).sum()], rtol=1e-7)


# Lemma E.2: the parameter correction solves the linearised problem.


@pytest.mark.parametrize("depth", [2, 3])
def test_the_correction_solves_the_linearised_problem(depth: int) -> None:
    """θ̄′_a = θ̂′ + (α/m) Z⁻¹ g_a maximises −½ Σ (⟨g_s, θ − θ₀⟩ − r_s)² − (mλ/2)‖θ − θ₀‖² + α ⟨g_a, θ − θ₀⟩.

    Its gradient there is zero, with all gradients of the network at one θ̂ and Z by its definition.
    """
    network = double(width=4, depth=depth, start="paired")
    net = network.init(1, 4, rng())
    for part in (net.theta.first, net.theta.hidden, net.theta.output):
        part += 0.2 * rng(3).normal(size=part.shape)
    X, r, m = rng(4).normal(size=(6, 4)), rng(5).normal(size=6), network.m
    G, g = slow_gradient(network, net, rows(X)), slow_gradient(network, net, context(np.ones(4)))[0]
    Z = RIDGE * np.eye(len(g)) + G.T @ G / m
    estimate = np.linalg.solve(Z, G.T @ r / m)  # θ̂′ − θ₀
    corrected = estimate + ALPHA / m * np.linalg.solve(Z, g)
    slope = G.T @ (r - G @ corrected) - m * RIDGE * corrected + ALPHA * g
    np.testing.assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_index_of_pc_is_f_at_the_corrected_parameters(depth: int) -> None:
    """Algorithm 2: f(x_a; θ̂ + (α(t)/m) Z⁻¹ g(x_a; θ̂)), Z from the rounds before, α = ν √t."""
    policy = NeuralRBMLEPC(
        bias=0.4,
        precision=Exact(),
        model=Regression(
            is_standardised=False,
            network=double(width=4, depth=depth),
            ridge=RIDGE,
            training=Replay(steps=3),
        ),
    )
    state = policy.init(2, 3, rng())
    network = policy.model.network
    Z = RIDGE * np.eye(flat(state.regression.net.theta).size)
    for t in range(5):
        seen = context(rng(t).normal(size=3), t % 2)
        policy.update(state, Observation(context=seen, reward=float(t % 2)), rng(t))
        g = slow_gradient(network, _settled(state), seen)[0]  # after training, as line 10 has it
        Z += np.outer(g, g)
    contexts, net = disjoint(np.ones(3), np.arange(2), 3), _settled(state)
    for arm, index in enumerate(policy.index(state, contexts, rng())):
        g = slow_gradient(network, net, contexts.row(arm))[0]
        theta = flat(net.theta) + 0.4 * 6**0.5 * np.linalg.solve(Z, g)
        assert index == pytest.approx(value(network, net, theta, contexts.row(arm))[0], rel=1e-4)


def test_ucb_and_ts_have_the_width_of_their_papers() -> None:
    """UCB: f + γ √(gᵀZ⁻¹g/m). TS: a normal number with deviation ν √(λ gᵀZ⁻¹g/m)."""
    model = Regression(is_standardised=False, network=double(width=4, start="paired"), ridge=0.25)
    ucb, ts = NeuralUCB(exploration=2.0, model=model), NeuralTS(exploration=2.0, model=model)
    state = ucb.init(1, 2, rng())
    x = context([0.6, 0.8])
    f, width = ucb.estimates(state, x)
    g = slow_gradient(model.network, state.regression.net, x)[0]
    g[0], g[5:9] = 0, 0  # no biases
    assert width[0] == pytest.approx((g @ g / 0.25 / 4) ** 0.5)
    assert ucb.index(state, x, rng())[0] == pytest.approx(f[0] + 2 * width[0])
    draws = np.array([ts.index(state, x, rng(seed))[0] for seed in range(4000)])
    assert draws.mean() == pytest.approx(f[0], abs=0.06 * width[0])
    assert draws.std() == pytest.approx(2 * 0.25**0.5 * width[0], rel=0.05)


# Algorithm 1.


def test_the_index_of_ga_is_line_8_of_algorithm_1() -> None:
    """From θ₀, J steps on ℓ_λ + α f(x_a), then ℓ_λ + α ζ f, less what all arms share and over α ζ."""
    model = Regression(
        is_standardised=False,
        network=double(width=4),
        ridge=RIDGE,
        training=FullBatch(steps=7, rate=0.05, objective="sum", warm=False),
    )
    policy = NeuralRBMLEGA(bias=0.4, is_scaled=False, model=model)
    X, r = rng(1).normal(size=(3, 2)), [1.0, 0.0, 1.0]
    state = learned(model, X, r, [0, 1, 0])
    contexts = disjoint(np.array([0.5, -1.0]), np.arange(2), 2)
    alpha, zeta = 0.4 * 4**0.5, 1 + np.log(4)
    network, net = model.network, state.net

    def likelihood(theta: np.ndarray) -> float:
        f = [
            value(network, net, theta, context(x, b))[0] for x, b in zip(X, [0, 1, 0], strict=True)
        ]
        total = sum(reward * z - z * z / 2 for reward, z in zip(r, f, strict=True))
        return total - RIDGE / 2 * float(((theta - flat(net.start)) ** 2).sum())

    expected = []
    for arm in range(2):
        theta = flat(net.start)
        for _ in range(7):
            at = net._replace(theta=unflat(theta, net.theta))
            gradient = alpha * slow_gradient(network, at, contexts.row(arm))[0]
            gradient -= RIDGE * (theta - flat(net.start))
            for x, reward, b in zip(X, r, [0, 1, 0], strict=True):
                error = reward - value(network, net, theta, context(x, b))[0]
                gradient += error * slow_gradient(network, at, context(x, b))[0]
            theta = theta + 0.05 * gradient
        f = value(network, net, theta, contexts.row(arm))[0]
        expected.append(
            (likelihood(theta) + alpha * zeta * f - likelihood(flat(net.theta))) / (alpha * zeta)
        )
    np.testing.assert_allclose(policy.index(state, contexts, rng()), expected, rtol=1e-5)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture()])
@pytest.mark.parametrize(("depth", "features"), [(2, 2), (3, 2), (2, 30), (3, 30)])
def test_the_replayed_ascent_is_that_of_a_dense_learner(
    likelihood: Likelihood, depth: int, features: int
) -> None:
    """f(x_a; θ̂) + f(x_a; θ̃_a) − f(x_a; θ°), and −(n/J) Σ D_b(f̃, f°) − (mλ/2)‖θ̃_a − θ°‖².

    D_b(f̃, f°) = b(f̃) − b(f°) − b′(f°)(f̃ − f°), over the samples that were replayed. θ° takes the
    steps of θ̃_a without the bias. With many features the engine takes its steps in the span of the contexts.
    """
    key, b, mean = np.uint64(3), likelihood.b, likelihood.mean
    model = Regression(
        is_standardised=False,
        network=double(width=4, depth=depth),
        likelihood=likelihood,
        ridge=2.0,
    )
    X = rng(1).normal(size=(4, features)) * (2 / features) ** 0.5
    r, blocks = [1.0, 0.0, 1.0, 0.0], [0, 1, 0, 0]
    state = learned(model, X, r, blocks)
    for part in state.net.theta:
        part += 0.2 * rng(5).normal(size=part.shape)
    contexts = disjoint(np.resize([0.5, -1.0], features), np.arange(2), features)

    def f(theta: np.ndarray, x: Contexts) -> float:
        return float(value(model.network, state.net, theta, x)[0])

    expected_f, expected_gain = [], []
    for arm, members in enumerate(([0, 2, 3], [1])):
        n, x, bits = len(members), contexts.row(arm), _bits(key, arm)
        picks = [members[below(_bits(bits, j), n)] for j in range(STEPS)]
        samples = [(context(X[i], blocks[i]), r[i]) for i in picks]
        biased, twin = (_dense(model, state, samples, n, x, alpha) for alpha in (ALPHA, 0.0))
        fall = 0.0
        for sample, _ in samples:
            f_biased, f_twin = f(biased, sample), f(twin, sample)
            fall += b(f_biased) - b(f_twin) - mean(f_twin) * (f_biased - f_twin)
        expected_f.append(f(flat(state.net.theta), x) + f(biased, x) - f(twin, x))
        expected_gain.append(-n / STEPS * fall - model.pull / 2 * ((biased - twin) ** 2).sum())
    ascent = ArmAscent(steps=STEPS, rate=RATE, reach=np.inf)
    estimates, gains = ascent.estimates(model, state, contexts, ALPHA, key, True)
    np.testing.assert_allclose(estimates, expected_f, rtol=1e-6)
    np.testing.assert_allclose(gains, expected_gain, rtol=1e-6)
    alone, none = ascent.estimates(model, state, contexts, ALPHA, key, False)
    np.testing.assert_array_equal(alone, estimates)
    np.testing.assert_array_equal(none, 0)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture()])
def test_a_promise_below_the_least_reward_counts_as_that_reward(likelihood: Likelihood) -> None:
    """f(x_a; θ̂) is raised to the z with b′(z) = least where b′(f) is below it, and stays as it is elsewhere."""
    model = Regression(is_standardised=False, network=double(width=4), likelihood=likelihood)
    state = learned(model, rng(1).normal(size=(4, 2)), [1.0, 0.0, 1.0, 0.0], [0, 1, 0, 0])
    contexts, key = disjoint(np.array([0.5, -1.0]), np.arange(2), 2), np.uint64(3)
    ascent = ArmAscent(steps=STEPS, rate=RATE, reach=np.inf)
    f = model.predict(state, contexts)
    free = ascent.estimates(model, state, contexts, ALPHA, key, True)[0]
    below = float(likelihood.mean(float(f.min()) - 1))
    same = ascent.estimates(model, state, contexts, ALPHA, key, True, below)[0]
    np.testing.assert_array_equal(same, free)
    z = float(f.max()) + 0.3
    least = float(likelihood.mean(z))
    raised = ascent.estimates(model, state, contexts, ALPHA, key, True, least)[0]
    np.testing.assert_allclose(raised - free, z - f, rtol=1e-6)


def test_a_bernoulli_likelihood_needs_no_bound_on_its_promises() -> None:
    """Also where all rewards so far are 1, which b′ comes near to only at infinity."""
    policy = NeuralRBMLEGA(
        model=Regression(is_standardised=False, network=double(width=4), likelihood=Bernoulli())
    )
    state = learned(policy.model, rng(1).normal(size=(2, 2)), [1.0, 1.0], [0, 1])
    contexts = disjoint(np.array([0.5, -1.0]), np.arange(2), 2)
    free = replace(policy, is_bounded=False).index(state, contexts, rng())
    np.testing.assert_array_equal(policy.index(state, contexts, rng()), free)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli(), Mixture()])
def test_the_gain_at_a_maximiser_is_the_change_of_the_likelihood(likelihood: Likelihood) -> None:
    """With rewards b′(f(x; θ₀)), θ₀ maximises ℓ_λ: the twin stays there, and f is f(x_a; θ̃_a).

    With one sample in the history, nothing is left to chance, and the gain is ℓ_λ(θ̃_a) − ℓ_λ(θ₀).
    """
    model = Regression(
        is_standardised=False, network=double(width=8), likelihood=likelihood, ridge=2.0
    )
    x, arms = np.array([[1.0, -0.5]]), rows(rng(2).normal(size=(3, 2)))
    reward = float(likelihood.mean(model.predict(model.init(1, 2, rng()), rows(x))[0]))
    state = learned(model, x, [reward])
    net, past = state.net, state.history.samples
    samples = [(context(x[0]), reward)] * STEPS
    f, change = [], []
    for arm in range(3):
        theta = _dense(model, state, samples, 1, arms.row(arm), ALPHA)
        f.append(value(model.network, net, theta, arms.row(arm))[0])
        biased, base = (
            log_likelihood(net._replace(theta=at), past, model.pull, scalar(likelihood.b))
            for at in (unflat(theta, net.theta), net.theta)
        )
        change.append(biased - base)
    ascent = ArmAscent(steps=STEPS, rate=RATE)
    estimates, gains = ascent.estimates(model, state, arms, ALPHA, np.uint64(1), True)
    np.testing.assert_allclose(estimates, f, rtol=1e-6)
    np.testing.assert_allclose(gains, change, rtol=1e-6)


def test_the_replayed_ascent_agrees_with_the_full_ascent() -> None:
    """Both climb ℓ_λ + α f(x_a) from the same base; a pulled network has one maximiser nearby.

    The replayed gain is −½ Σ (f̃ − f̂)² − (mλ/2)‖θ̃_a − θ̂‖² there: the change of ℓ_λ less
    Σ (r − f̂)(f̃ − f̂) − mλ ⟨θ̂ − θ₀, θ̃_a − θ̂⟩, which is nought for an f that is linear in θ.
    """
    X, r = rng(1).normal(size=(6, 3)), [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    arms = rows(rng(2).normal(size=(4, 3)))
    full = Regression(
        is_standardised=False,
        network=double(width=8),
        ridge=3.0,
        training=FullBatch(steps=20_000, rate=0.05),
    )
    state = learned(full, X, r)
    full.training.fit(state, full.fit, np.uint64(0))
    climber = ArmAscent(steps=400_000, rate=0.0005)
    f, change = climber.estimates(full, state, arms, 0.5, np.uint64(1), True)
    gain, rest = [], []
    fit = full.fit._replace(rate=0.05 / 6)
    base, away = full.predict(state, rows(X)), flat(state.net.theta) - flat(state.net.start)
    for arm in range(4):
        net = state.net._replace(theta=Parameters(*(part.copy() for part in state.net.theta)))
        full_batch(net, state.history.samples, fit, Bias(arms.rows, arm, 0.5))
        rise = full.network.predict(net, rows(X)) - base
        way = flat(net.theta) - flat(state.net.theta)
        gain.append(-(rise**2).sum() / 2 - 3.0 / 2 * way @ way)
        rest.append((r - base) @ rise - 3.0 * away @ way)
    np.testing.assert_allclose(np.add(gain, rest), change, rtol=1e-9)
    replayed = replace(full, training=Replay())
    keys = map(np.uint64, range(4))
    estimates = [climber.estimates(replayed, state, arms, 0.5, key, True) for key in keys]
    np.testing.assert_allclose(np.mean([e for e, _ in estimates], axis=0), f, atol=0.02)
    np.testing.assert_allclose(np.mean([g for _, g in estimates], axis=0), gain, rtol=0.05)
    assert (change <= 1e-9).all()  # the base maximises ℓ_λ, so the bias can only lower it


def test_the_bias_is_in_deviations_of_the_rewards() -> None:
    """Rewards 1, 0, 0: |1 − 0|, |0 − ½| and |0 − ⅓| beside the first guess of ½, over four."""
    scaled = NeuralRBMLEGA(bias=0.3, linear=None, model=Regression(is_standardised=False))
    state = scaled.init(2, 2, rng())
    for t, reward in enumerate((1.0, 0.0, 0.0)):
        scaled.update(state, Observation(context=context([1.0, t], t % 2), reward=reward), rng(t))
    contexts = disjoint(np.array([0.5, -1.0]), np.arange(2), 2)
    plain = replace(scaled, bias=0.3 * (1 / 2 + 1 + 1 / 2 + 1 / 3) / 4, is_scaled=False)
    indices = scaled.index(state, contexts, rng())
    np.testing.assert_allclose(indices, plain.index(state, contexts, rng()), rtol=1e-12)


def test_the_index_of_ga_is_a_function_of_state_and_contexts() -> None:
    policy = NeuralRBMLEGA(bias=1.0, linear=None, model=Regression(is_standardised=False))
    state = policy.init(3, 2, rng())
    for t in range(12):
        seen = Observation(context=context(rng(t).normal(size=2), t % 3), reward=float(t % 2))
        policy.update(state, seen, rng(t))
    contexts = disjoint(np.array([0.5, -1.0]), np.arange(3), 2)
    first, second = (policy.index(state, contexts, rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_a_bias_raises_the_estimate_more_where_less_is_known() -> None:
    """After 50 rounds with arm 0 and one with arm 1, of equal rewards."""
    policy = NeuralRBMLEGA(
        bias=0.05,
        rule="estimate",
        ascent=ArmAscent(steps=50, rate=0.1, reach=np.inf),
        linear=None,
        model=Regression(is_standardised=False),
    )
    state = policy.init(2, 1, rng())
    for t in range(51):
        seen = Observation(context=context([1.0], int(t == 50)), reward=0.5)
        policy.update(state, seen, rng(t))
    contexts = disjoint(np.array([1.0]), np.arange(2), 1)
    raised = policy.index(state, contexts, rng()) - policy.model.predict(state, contexts)
    assert 0 < raised[0] < 0.5 * raised[1]


def test_likelihood_by_the_engine_is_that_of_the_formula() -> None:
    model = Regression(is_standardised=False, network=double(width=3), ridge=RIDGE)
    X, r = rng(1).normal(size=(4, 2)), [1.0, 0.0, 0.5, -2.0]
    state = learned(model, X, r)
    state.net.theta.output[:] += 0.5
    f = model.network.predict(state.net, rows(X))
    expected = float((np.array(r) * f - f**2 / 2).sum()) - RIDGE / 2 * 3 * 0.25
    found = log_likelihood(state.net, state.history.samples, model.pull, scalar(Gaussian.b))
    assert found == pytest.approx(expected)


def test_schedules_on_numbers_a_hand_can_check() -> None:
    assert [Power(exponent=n)(16) for n in (0, 0.25, 0.5, 1, 2)] == [1, 2, 4, 16, 256]
    assert Logarithm()(1) == 1
    assert Logarithm()(8) == pytest.approx(1 + 3 * np.log(2))


def test_per_arm_contexts_share_one_block() -> None:
    """The samples of all arms are replayed for each."""
    policy = NeuralRBMLEGA(bias=0.0, rule="estimate")
    state = policy.init(1, 2, rng())
    for t in range(200):
        x = rng(t).normal(size=2)
        policy.update(state, Observation(context=context(x), reward=float(x[0] > 0)), rng(t))
    better, worse = policy.index(state, per_arm(np.array([[2.0, 0.0], [-2.0, 0.0]]), 2), rng())
    assert better > worse + 0.5


def _settled(state: TangentState):  # type: ignore[no-untyped-def]  # a Net
    """Return the network with every pull of the ridge taken."""
    net = state.regression.net
    keep = np.exp(net.clock[0] - net.ages)[:, None]
    first = net.start.first + keep * (net.theta.first - net.start.first)
    theta = net.theta._replace(first=first)
    return net._replace(theta=theta, ages=np.zeros_like(net.ages), clock=np.zeros(1))


def _bits(key: Any, counter: int) -> Any:
    """Return the engine's random bits, in its own type."""
    return np.uint64(mix(key, counter))


def _dense(
    model: Regression,
    state: RegressionState,
    samples: list[tuple[Contexts, float]],
    n: int,
    x: Contexts,
    alpha: float,
) -> np.ndarray:
    """Return θ after a step on each sample, one along the bias α/n and a pull of λ/n.

    The ridge must be so strong that the engine takes each pull at once.
    """
    net, mean = state.net, model.likelihood.mean
    theta, start, bias = flat(net.theta), flat(net.start), RATE * alpha / n
    for sample, reward in samples:
        f = value(model.network, net, theta, sample)[0]
        g = slow_gradient(model.network, net._replace(theta=unflat(theta, net.theta)), sample)[0]
        bend = (mean(f + BEND) - mean(f)) / BEND
        theta = theta + RATE * (reward - mean(f)) * g / (1 + RATE * bend * g @ g)
        g = slow_gradient(model.network, net._replace(theta=unflat(theta, net.theta)), x)[0]
        theta = theta + bias * g / (1 + bias * g @ g)
        theta = start + (theta - start) / (1 + RATE * model.pull / n)
    return theta
