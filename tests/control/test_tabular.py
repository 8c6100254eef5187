"""Learners of unknown transitions: their plans, and how near RBMLE's is to the likelihood's own."""

import math
import time
from itertools import product
from typing import Any

import numpy as np
import pytest

from rbmle.control import (
    KLUCRL,
    MDP,
    PSRL,
    UCRL2,
    TabularCE,
    TabularRBMLE,
    Transition,
    random_mdp,
    river_swim,
    simulate,
)
from rbmle.control.tabular import EpochState
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.policies.schedules import Power

RNG = generator(0, Purpose.UPDATE, 0)


def test_an_epoch_ends_when_visits_double_or_it_is_longer_than_the_one_before() -> None:
    learner = TabularCE()
    state = learner.init(np.zeros((2, 1)), RNG)
    begun = []
    for _ in range(40):
        learner.update(state, Transition(state=0, action=0, successor=0), RNG)
        begun.append(state.begun)
    # One step, then two, three, … until visits would have doubled: at 1, 2, 4, and then by length.
    assert sorted(set(begun)) == [1, 2, 4, 7, 11, 16, 22, 29, 37]


@pytest.mark.parametrize("learner", [UCRL2(), KLUCRL()])
def test_learners_with_confidence_sets_end_epochs_by_visits_alone(learner: UCRL2 | KLUCRL) -> None:
    state = learner.init(np.zeros((2, 1)), RNG)
    begun = []
    for _ in range(40):
        learner.update(state, Transition(state=0, action=0, successor=0), RNG)
        begun.append(state.begun)
    assert sorted(set(begun)) == [1, 2, 4, 8, 16, 32]


def test_with_many_observations_all_plans_are_those_of_the_truth() -> None:
    mdp = river_swim(4)
    counts = np.round(mdp.transitions * 10_000_000).astype(np.int64)
    for learner in (TabularCE(), TabularRBMLE(), PSRL(), UCRL2(), KLUCRL()):
        state = _with(learner, mdp.rewards, counts)
        learner.replan(state, RNG)  # RBMLE's first plan has no values before it, and no scale
        assert state.policy.tolist() == [1, 1, 1, 1]


def test_without_observations_optimists_hope_for_the_largest_reward() -> None:
    mdp = river_swim(6)
    assert TabularRBMLE().init(mdp.rewards, RNG).gain == pytest.approx(1.0, abs=1e-6)
    for learner in (TabularRBMLE(), UCRL2(), KLUCRL()):
        assert learner.init(mdp.rewards, RNG).policy[5] == 1


def test_the_gain_of_one_state_is_by_hand() -> None:
    """Two states, of which 1 pays 1 and both actions lead as p̂ = (½, ½): max_q by the formula of KL."""
    counts = np.full((2, 1, 2), 8)
    learner = TabularRBMLE(bias=4.0, growth=Power(exponent=0.0), is_scaled=False)
    state = _with(learner, np.array([[0.0], [1.0]]), counts, gain=0.5)
    # The weight is N J₀/α = 16 · ½/4 = 2, and the values differ by 1 since both rows are alike:
    # ½ · 2/ν + ½ · 2/(ν − 1) = 1 at ν = (3 + √5)/2, so q_1 = 1/(ν − 1) = 0.618.
    q = 2 / (1 + math.sqrt(5))
    by_hand = q - 2 * (0.5 * math.log(0.5 / (1 - q)) + 0.5 * math.log(0.5 / q))
    assert state.gain == pytest.approx(by_hand, abs=1e-6)


def test_rbmle_mostly_plans_as_the_biased_likelihood_itself_would() -> None:
    """Two states and two actions: max_π max_P { α log J(π, P) − Σ N KL } over a fine grid of P."""
    same = [_is_same_plan(seed) for seed in range(60)]
    assert np.mean(same) >= 0.95


def test_the_gain_of_kl_ucrl_is_by_hand() -> None:
    """As above: both rows are (½, ½) with N = 16, the values differ by 1, and −½ log(4 q (1 − q)) = C/16."""
    state = EpochState.before(np.array([[0.0], [1.0]]))
    state.counts, state.visits = np.full((2, 1, 2), 8), np.full((2, 1), 16)
    state.round = 10**9  # so that the plan is exact to 1/√t
    learner = KLUCRL()
    learner.replan(state, RNG)
    rest = math.exp(-2 * learner.constant(2, 1, 10**9 + 1) / 16)  # 4 q (1 − q)
    assert state.gain == pytest.approx((1 + math.sqrt(1 - rest)) / 2, abs=1e-4)


def test_the_constant_of_kl_ucrl_is_by_hand() -> None:
    """log 1000 = 6.9078; with δ = 36e · 6.9078/e¹⁰, B = 10: 3 {10 + log 10.1448 (1 + 1/10.1448)} = 37.636."""
    learner = KLUCRL(failure=36 * 6.9078 / math.exp(9))
    assert learner.constant(states=3, actions=2, t=1000) == pytest.approx(37.636, abs=1e-3)


def test_a_hundred_thousand_steps_of_rbmle_take_less_than_two_cpu_seconds() -> None:
    simulate(river_swim(6), TabularRBMLE(), [10], seed=0)  # kernels are compiled
    begun = time.process_time()
    simulate(river_swim(6), TabularRBMLE(), [100_000], seed=0)
    assert time.process_time() - begun < 2  # 0.05 where we measured


def test_kl_ucrl_beats_ucrl2_on_river_swim() -> None:
    kl, ucrl2 = (
        np.mean([simulate(river_swim(6), learner, [50_000], seed).regrets[-1] for seed in range(3)])
        for learner in (KLUCRL(), UCRL2())
    )
    assert kl < 0.5 * ucrl2


@pytest.mark.parametrize(("scale", "shift"), [(100.0, 0.0), (0.01, -3.0)])
def test_the_unit_of_rewards_does_not_matter(scale: float, shift: float) -> None:
    mdp = random_mdp(5, 3, 0)
    other = MDP(transitions=mdp.transitions, rewards=scale * mdp.rewards + shift)
    first, second = (simulate(each, TabularRBMLE(), [300], seed=0) for each in (mdp, other))
    np.testing.assert_array_equal(first.state.counts, second.state.counts)


def test_rbmle_beats_certainty_equivalence_and_ucrl2_on_river_swim() -> None:
    ours, plain, ucrl2 = (
        np.mean([simulate(river_swim(6), learner, [20_000], seed).regrets[-1] for seed in range(5)])
        for learner in (TabularRBMLE(), TabularCE(), UCRL2())
    )
    assert ours < 0.1 * plain
    assert ours < 0.1 * ucrl2


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="`bias` must be a finite number above 0, got 0"):
        TabularRBMLE(bias=0.0)
    with pytest.raises(SettingError, match="`prior` must be"):
        PSRL(prior=0.0)
    for learner in (UCRL2, KLUCRL):
        with pytest.raises(SettingError, match="`failure` must be"):
            learner(failure=1.0)
    with pytest.raises(ValueError, match="got rewards from -1 to 0; add a constant"):
        TabularRBMLE(is_scaled=False).init(np.array([[0.0], [-1.0]]), RNG)


def _with(
    learner: Any, rewards: np.ndarray, counts: np.ndarray, gain: float | None = None
) -> EpochState:
    """Return the state of a learner that has planned with these counts."""
    state = EpochState.before(rewards)
    state.counts, state.visits = counts, counts.sum(axis=2)
    state.round = int(counts.sum())
    state.gain = state.gain if gain is None else gain
    learner.replan(state, RNG)
    return state


def _is_same_plan(seed: int) -> bool:
    """Say whether RBMLE's plan is that of the exact objective; its α is larger by 1/μ ≈ 2 states."""
    rng = generator(seed, Purpose.ENVIRONMENT, 0)
    rewards = rng.random((2, 2))
    counts = rng.multinomial(rng.integers(1, 60, (2, 2)), rng.dirichlet([1, 1], (2, 2)))
    alpha = 5.0
    learner = TabularRBMLE(bias=alpha / 2, growth=Power(exponent=0.0), is_scaled=False)
    state = _with(learner, rewards, counts)
    for _ in range(5):  # until J₀ is its own
        learner.replan(state, RNG)
    values = {
        policy: _exact(policy, rewards, counts, alpha) for policy in product((0, 1), repeat=2)
    }
    return tuple(state.policy.tolist()) == max(values, key=lambda policy: values[policy])


def _exact(policy: tuple[int, ...], rewards: np.ndarray, counts: np.ndarray, alpha: float) -> float:
    """Return max_P { α log J(π, P) − Σ_s N(s, π(s)) KL }; other rows of P are p̂, and lose nothing."""
    x = np.linspace(1e-3, 1 - 1e-3, 150)  # the probability of changing the state
    p, q = np.meshgrid(x, x, indexing="ij")
    J = (q * rewards[0, policy[0]] + p * rewards[1, policy[1]]) / (p + q)
    leave, stay = counts[0, policy[0], 1], counts[0, policy[0], 0]
    back, remain = counts[1, policy[1], 0], counts[1, policy[1], 1]
    likelihood = leave * np.log(p) + stay * np.log1p(-p) + back * np.log(q) + remain * np.log1p(-q)
    most = _entropy(leave, stay) + _entropy(back, remain)
    return float((alpha * np.log(J) + likelihood - most).max())


def _entropy(a: int, b: int) -> float:
    """Return the log-likelihood of frequencies."""
    return float(sum(n * math.log(n / (a + b)) for n in (a, b) if n))
