"""NPR: which rewards the network is fitted to, and that it follows them."""

import numpy as np
import pytest

from rbmle import NPR, FullBatch, Memory, Regression, Replay
from rbmle.core.errors import SettingError
from rbmle.core.types import Observation
from rbmle.engine.posterior import redraw
from rbmle.policies.npr import HeldNoiseState
from tests.samples import context, double, rng

SMALL = Regression(is_standardised=False, network=double(), training=Replay(steps=5))


def test_a_redrawn_reward_is_the_reward_and_normal_noise() -> None:
    """100,000 draws over 1,000 rewards of 3 with ν = 2: the mean is 3 and the deviation 2."""
    rewards, perturbed = np.full(1200, 3.0), np.zeros(1200)
    redraw(rewards, 1000, 100_000, 2.0, np.uint64(5), perturbed)
    drawn = perturbed[:1000]
    assert (drawn != 0).all()
    assert (perturbed[1000:] == 0).all()
    assert drawn.mean() == pytest.approx(3, abs=4 * 2 / 1000**0.5)
    assert drawn.std() == pytest.approx(2, abs=4 * 2 / 2000**0.5)
    assert abs(np.mean(((drawn - 3) / 2) ** 3)) < 4 * 15**0.5 / 1000**0.5


def test_a_fixed_number_of_noises_is_redrawn_in_a_round() -> None:
    policy = NPR(exploration=0.5, redraws=3, model=SMALL)
    state = played(policy, 100)
    before = state.regression.history.rewards[:100].copy()
    play(policy, state, 100)
    changed = np.flatnonzero(state.regression.history.rewards[:100] != before)
    assert 1 <= len(changed) <= 3


def test_rewards_are_remembered_as_they_came() -> None:
    policy = NPR(exploration=0.5, redraws=3, model=SMALL)
    state = played(policy, 150)
    np.testing.assert_array_equal(state.rewards[:150], np.arange(150) % 2)
    noise = state.regression.history.rewards[:150] - state.rewards[:150]
    assert noise.std() == pytest.approx(0.5, rel=0.25)


@pytest.mark.parametrize("keep", ["window", "reservoir"])
def test_a_bounded_memory_keeps_each_reward_with_its_perturbation(keep: str) -> None:
    memory = Memory(keep=keep, size=20)  # type: ignore[arg-type]  # one of the two
    policy = NPR(
        exploration=1e-6, model=Regression(is_standardised=False, network=double(), memory=memory)
    )
    state = played(policy, 90)
    history = state.regression.history
    np.testing.assert_allclose(history.rewards[:20], state.rewards[:20], atol=1e-5)
    np.testing.assert_array_equal(state.rewards[:20], history.serials[:20] % 2)


def test_the_network_follows_perturbations_that_are_held() -> None:
    """One context: f is the mean of the perturbed rewards, which is off that of the rewards by ν/√n."""
    training = FullBatch(steps=200, rate=0.1)
    policy = NPR(
        exploration=2.0,
        redraws=0,
        model=Regression(is_standardised=False, network=double(), training=training, alarm=0.0),
    )
    state = policy.init(1, 2, rng())
    for t in range(12):
        seen = Observation(context=context([1.0, 0.5]), reward=float(t % 2))
        policy.update(state, seen, rng(t))
    mean = state.regression.history.rewards[:12].mean()
    assert abs(mean - 0.5) > 0.1
    found = policy.index(state, context([1.0, 0.5]), rng())
    assert found[0] == pytest.approx(mean, abs=0.01)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="`redraws` must be 0 or more, got -1"):
        NPR(redraws=-1)
    with pytest.raises(SettingError, match="`exploration` must be a finite number"):
        NPR(exploration=-1.0)


def play(policy: NPR, state: HeldNoiseState, t: int) -> None:
    """Learn the observation of a round."""
    seen = Observation(context=context(rng(t).normal(size=3)), reward=float(t % 2))
    policy.update(state, seen, rng([7, t]))  # type: ignore[arg-type]  # NumPy takes lists of seeds


def played(policy: NPR, rounds: int) -> HeldNoiseState:
    """Return a state that has learned some rounds."""
    state = policy.init(1, 3, rng())
    for t in range(rounds):
        play(policy, state, t)
    return state
