"""A bandit plays an environment of Gymnasium whose actions are discrete: they are its arms."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, flatdim, flatten
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.checks import probability, whole_number
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.core.types import Decision, Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened in some rounds."""

    rewards: Float[np.ndarray, " rounds"]
    returns: Float[np.ndarray, " episodes"]  # the sum of rewards of each episode that has ended


def gymnasium_bandit(
    env: gymnasium.Env, policy: Policy[Any] | type[Policy[Any]] | str, *, seed: int = 0
) -> Bandit:
    """Return a bandit whose arms are the actions of an environment, and its features the flat observation."""
    space = env.action_space
    if not isinstance(space, Discrete):
        raise SettingError(
            f"the action space is {space}, but a bandit needs one that is Discrete; discretise the actions "
            "with a gymnasium.ActionWrapper"
        )
    arms = range(int(space.start), int(space.start + space.n))
    return Bandit(policy, arms=arms, features=flatdim(env.observation_space), seed=seed)


def play_gymnasium(
    env: gymnasium.Env, bandit: Bandit, rounds: int, *, seed: int = 0, discount: float = 0.0
) -> Played:
    """Play so many rounds, one step each, and learn; the first episode is reset with the seed.

    With a `discount` of 0, an arm learns the reward of its own step, at once. With γ > 0 it learns the
    return r_t + γ r_{t+1} + γ² r_{t+2} + … of its episode, when that has ended.
    """
    gamma = probability("discount", discount)
    rewards, returns = np.zeros(whole_number("rounds", rounds, least=0)), []
    waiting: list[Decision] = []
    begun, is_over, observation = 0, False, env.reset(seed=seed)[0]
    for t in range(len(rewards)):
        if is_over:
            observation, begun = env.reset()[0], t
        is_shared = bandit.encoding is Encoding.DISJOINT
        x = flatten(env.observation_space, observation) if is_shared else observation
        waiting.append(bandit.decide(x))
        observation, reward, terminated, truncated, _ = env.step(waiting[-1].arm)
        rewards[t], is_over = float(reward), terminated or truncated
        if is_over:
            returns.append(rewards[begun : t + 1].sum())
        if is_over or gamma == 0:
            paid = rewards[t + 1 - len(waiting) : t + 1]
            for decision, value in zip(waiting, discounted(paid, gamma), strict=True):
                bandit.learn(decision, float(value))
            waiting = []
    return Played(rewards=rewards, returns=np.array(returns))


def discounted(rewards: Float[np.ndarray, " n"], gamma: float) -> Float[np.ndarray, " n"]:
    """Return Σ_k γ^k r_{t+k} for every t.

    >>> discounted(np.array([1.0, 2.0, 4.0]), 0.5).tolist()
    [3.0, 4.0, 4.0]
    """
    returns = rewards.copy()
    for t in reversed(range(len(rewards) - 1)):
        returns[t] += gamma * returns[t + 1]
    return returns
