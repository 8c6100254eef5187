"""Both ways between bandits and Gymnasium."""

import numpy as np
import pytest

from rbmle import Bandit, LinUCB
from rbmle.core.errors import SettingError
from rbmle.environments import Environment, problem
from rbmle.experiments.trial import Trial, play

gymnasium = pytest.importorskip(
    "gymnasium", reason="gymnasium is not installed: pip install 'rbmle[gymnasium]'"
)
from gymnasium.utils.env_checker import check_env  # noqa: E402

from rbmle.interop import BanditEnv, gymnasium_bandit, play_gymnasium  # noqa: E402


@pytest.mark.parametrize("name", ["digits", "quadratic"])
def test_it_passes_the_check_of_gymnasium(name: str) -> None:
    with pytest.warns(UserWarning, match="infinity"):  # so are the bounds of features
        check_env(BanditEnv(name, horizon=20), skip_render_check=True)


@pytest.mark.parametrize("name", ["digits", "quadratic"])
def test_an_episode_is_the_run_of_its_seed(name: str) -> None:
    """The regret of a bandit that plays it is that of a trial."""
    world = problem(name)
    env, bandit = BanditEnv(world, horizon=60), bandit_of(world, seed=3)
    x, _ = env.reset(seed=3)
    regrets, is_over = [], False
    while not is_over:
        decision = bandit.decide(x)
        x, reward, terminated, is_over, info = env.step(decision.arm)
        bandit.learn(decision, reward)
        regrets.append(info["regret"])
        assert not terminated
    trial = Trial(policy=LinUCB(), name="lin-ucb", environment=world, horizon=60, seed=3)
    np.testing.assert_array_equal(np.array(regrets, np.float32), play(trial).regrets)


def test_without_a_seed_the_next_run_begins() -> None:
    env, world = BanditEnv("coins", horizon=5), problem("coins")
    for run, seed in enumerate((None, None, 7, None)):
        x, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(x, world.round(0, (0, 1, 7, 8)[run]).x)


@pytest.mark.parametrize("name", ["digits", "quadratic"])
def test_a_bandit_that_plays_our_own_environment_is_a_trial(name: str) -> None:
    world = problem(name)
    played = play_gymnasium(BanditEnv(world, horizon=50), bandit_of(world, seed=0), 50)
    bandit = bandit_of(world, seed=0)
    for t in range(50):
        offer = world.round(t, 0)
        decision = bandit.decide(offer.x)
        assert played.rewards[t] == offer.rewards[int(decision.arm)]
        bandit.learn(decision, offer.rewards[int(decision.arm)])
    np.testing.assert_array_equal(played.returns, [played.rewards.sum()])


@pytest.mark.parametrize("policy", ["lin-ts", "lin-ucb:model.is_standardised=False"])
def test_frozen_lake_is_learned_from_returns(policy: str) -> None:
    """A reward comes at the end of an episode only: its own step's reward teaches nearly nothing.

    LinUCB's bonus is no random number, and with its default model it walks in circles here.
    """
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, map_name="4x4")
    bandit = gymnasium_bandit(env, policy)
    assert (bandit.features, bandit.arms.ids) == (16, (0, 1, 2, 3))
    played = play_gymnasium(env, bandit, 4000, discount=0.9)
    assert played.returns[-50:].mean() > 0.9


def test_actions_that_are_not_discrete_are_refused() -> None:
    with pytest.raises(SettingError, match=r"action space is Box.*Discrete"):
        gymnasium_bandit(gymnasium.make("Pendulum-v1"), "lin-ucb")


def test_a_step_out_of_place_is_refused() -> None:
    env = BanditEnv("coins", horizon=1)
    with pytest.raises(SettingError, match="call reset"):
        env.step(0)
    env.reset()
    with pytest.raises(SettingError, match="integer from 0 to 1, got 2"):
        env.step(2)
    env.step(1)
    with pytest.raises(SettingError, match="episode of 1 rounds is over"):
        env.step(0)


def bandit_of(world: Environment, seed: int) -> Bandit:
    """Return a bandit for a problem."""
    return Bandit(
        LinUCB(), arms=world.arms, features=world.features, seed=seed, encoding=world.encoding
    )
