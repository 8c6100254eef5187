"""Section 4.1 and 6: the likelihoods, on numbers a hand can check and by the promises of all."""

import itertools
import math

import numpy as np
import pytest

from rbmle import Bandit, Bernoulli, Gaussian, Mixture, NeuralUCB, Regression
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import log_likelihood
from rbmle.likelihoods import LIKELIHOODS, Likelihood
from tests.samples import Poisson, context, double, learned

ZS = np.concatenate([np.linspace(-8, 8, 33), [-800.0, 800.0]])


def test_values_a_hand_can_check() -> None:
    assert Gaussian.b(3.0) == 4.5
    assert Gaussian.mean(3.0) == 3.0
    assert Bernoulli.b(0.0) == pytest.approx(math.log(2))
    assert Bernoulli.mean(0.0) == 0.5
    assert Bernoulli.mean(math.log(3)) == pytest.approx(0.75)
    assert Mixture.b(0.0) == pytest.approx(math.log(2) / 2)
    assert Mixture.mean(0.0) == 0.25


def test_the_mixture_is_half_the_sum_of_the_papers_two_likelihoods() -> None:
    """(iii) is −½(f − r)² + r f − log(1 + eᶠ): twice r f − b(f), up to −r²/2."""
    for f in (-1.0, 0.3, 2.0):
        for r in (0.0, 1.0):
            paper = -((f - r) ** 2) / 2 + r * f - math.log(1 + math.exp(f))
            assert 2 * (r * f - Mixture.b(f)) - r * r / 2 == pytest.approx(paper)


@pytest.mark.parametrize("likelihood", [*(make() for make in LIKELIHOODS), Poisson()])
def test_the_mean_is_the_slope_and_grows(likelihood: Likelihood) -> None:
    for z in ZS[:33]:
        slope = (likelihood.b(z + 1e-5) - likelihood.b(z - 1e-5)) / 2e-5
        assert likelihood.mean(z) == pytest.approx(slope, abs=1e-6, rel=1e-6)
    means = [likelihood.mean(z) for z in ZS[:33]]
    assert all(a < b for a, b in itertools.pairwise(means))


@pytest.mark.parametrize("likelihood", [make() for make in LIKELIHOODS])
def test_nothing_overflows(likelihood: Likelihood) -> None:
    assert all(math.isfinite(likelihood.b(z)) and math.isfinite(likelihood.mean(z)) for z in ZS)


@pytest.mark.parametrize("likelihood", [*(make() for make in LIKELIHOODS), Poisson()])
def test_the_compiled_likelihood_is_the_one_that_was_written(likelihood: Likelihood) -> None:
    """ℓ_λ(F_t; θ₀) = Σ r f − b(f), by the engine and by hand."""
    model = Regression(network=double(), likelihood=likelihood, ridge=0.1)
    X, r = np.array([[1.0, 0.5], [-1.0, 2.0]]), [1.0, 0.0]
    state = learned(model, X, r)
    f = [model.network.predict(state.net, c)[0] for c in map(context, X)]
    by_hand = sum(reward * z - likelihood.b(z) for reward, z in zip(r, f, strict=True))
    engine = log_likelihood(state.net, state.history.samples, 0.1, scalar(likelihood.b))
    assert engine == pytest.approx(by_hand, rel=1e-12)


def test_the_pull_to_the_start_is_part_of_the_likelihood() -> None:
    """With W_L moved by 2 in one place and no data, ℓ_λ = −(mλ/2) · 4."""
    model = Regression(network=double(width=4, start="paired"), ridge=0.5)
    state = model.init(1, 2, np.random.default_rng(0))
    state.net.theta.output[1] += 2
    value = log_likelihood(state.net, state.history.samples, model.pull, scalar(Gaussian.b))
    assert value == pytest.approx(-4 * 0.5 / 2 * 4)


def test_a_users_own_likelihood_runs_in_a_bandit() -> None:
    """Counts with mean 1 and e² ≈ 7.4: b′(f) finds both."""
    model = Regression(likelihood=Poisson())
    bandit = Bandit(NeuralUCB(model=model), arms=2, features=1, seed=0)
    for t in range(400):
        bandit.learn([1.0], arm=t % 2, reward=float((0, 2, 1)[t % 3]) if t % 2 else 7.4)
    indices = bandit.decide([1.0]).indices
    assert math.exp(indices[0]) == pytest.approx(7.4, rel=0.2)
    assert math.exp(indices[1]) == pytest.approx(1.0, rel=0.4)
