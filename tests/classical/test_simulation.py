"""Simulations of bandits without contexts."""

import math
from typing import Any

import numpy as np
import pytest

from rbmle.classical import (
    KLUCB,
    RBMLE,
    UCB1,
    BernoulliArms,
    BetaTS,
    GaussianArms,
    GaussianTS,
    lai_robbins,
    simulate,
)
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Observation
from rbmle.likelihoods import Gaussian

RNG = np.random.default_rng(0)
COINS = BernoulliArms(means=(0.2, 0.6, 0.4))


@pytest.mark.parametrize("policy", [RBMLE(), UCB1(), KLUCB()])
def test_a_simulation_plays_by_the_index_of_a_state(policy: Any) -> None:
    means = (0.21, 0.6, 0.43)
    arms = GaussianArms(means=means, deviation=0.1)  # no ties, once every arm was played
    state, contexts, regret = policy.init(3, 1, RNG), disjoint([1.0], np.arange(3), 1), 0.0
    found = simulate(arms, policy, range(101), runs=1)[0]
    for t in range(1, 101):
        index = policy.index(state, contexts, RNG)
        played = int(np.argmin(np.abs(found[t] - found[t - 1] - (0.6 - np.array(means)))))
        assert index[played] == index.max()
        (reward,) = arms.rewards(np.array([played]), generator(0, Purpose.ENVIRONMENT, t))
        seen = Observation(context=contexts.row(played), reward=reward)
        policy.update(state, seen, RNG)
        regret += 0.6 - means[played]
    assert found[-1] == pytest.approx(regret)
    assert state.round == 100


def test_ties_are_broken_at_random() -> None:
    first = simulate(BernoulliArms(means=(0.0, 1.0)), UCB1(), [1], runs=1000)
    assert 0.4 < first.mean() < 0.6


@pytest.mark.parametrize(
    ("instance", "policy"),
    [
        (COINS, RBMLE()),
        (COINS, UCB1()),
        (COINS, KLUCB()),
        (COINS, BetaTS()),
        (GaussianArms(means=(0.0, 1.0)), RBMLE(likelihood=Gaussian(), bias=3.0)),
        (GaussianArms(means=(0.0, 1.0)), GaussianTS()),
    ],
)
def test_regret_becomes_flat(instance: Any, policy: Any) -> None:
    early, late = simulate(instance, policy, [500, 1000], runs=20).mean(axis=0)
    assert late - early < early / 2
    uniform = 1000 * (max(instance.means) - np.mean(instance.means))
    assert late < uniform / 3


def test_a_simulation_is_a_function_of_its_seed() -> None:
    first, again, other = (simulate(COINS, BetaTS(), [50, 200], runs=3, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_bound_of_lai_and_robbins_by_hand() -> None:
    assert lai_robbins(GaussianArms(means=(1.0, 0.5), deviation=2.0)) == pytest.approx(16)
    coins = BernoulliArms(means=(0.5, 0.25, 0.5))
    divergence = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert lai_robbins(coins) == pytest.approx(0.25 / divergence)
    assert lai_robbins(BernoulliArms(means=(0.5, 1.0))) == 0  # a single failure tells
    assert coins.divergence(0.0, 0.5) == pytest.approx(math.log(2))


def test_an_invalid_instance_is_refused() -> None:
    with pytest.raises(SettingError, match=r"probabilities from 0 to 1, .* got \(1.5,\)"):
        BernoulliArms(means=(1.5,))
    with pytest.raises(SettingError, match=r"`means` must be finite numbers"):
        GaussianArms(means=())
    with pytest.raises(SettingError, match="`deviation` must be a finite number above 0, got 0"):
        GaussianArms(means=(1.0,), deviation=0)
    with pytest.raises(ValueError, match="`runs` must be 1 or more, got 0"):
        simulate(COINS, UCB1(), [1], runs=0)
    with pytest.raises(ValueError, match=r"in order, got \[2, 1\]"):
        simulate(COINS, UCB1(), [2, 1], runs=1)
