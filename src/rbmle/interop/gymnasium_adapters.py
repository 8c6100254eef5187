"""Adapters to Gymnasium: problems of rbmle as environments, and a bandit that plays environments."""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, flatdim, flatten
from jaxtyping import Float

from rbmle.core.bandit import Bandit
from rbmle.core.checks import probability, whole_number
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.core.types import Decision, Encoding
from rbmle.environments import problem
from rbmle.environments.base import Environment, Round


class BanditEnv(gymnasium.Env):
    """A problem of rbmle as a Gymnasium environment.

    The observation is the context: the vector that arms share, or a row for each. The action
    is an arm. `reset(seed=s)` begins the run with seed s, and `reset()` the run with the next seed, the
    first of which is 0. An episode is truncated after `horizon` rounds.

    Parameters
    ----------
    environment
        A problem, or its name, such as "digits" or "adult+noise".
    horizon
        The rounds of an episode.

    """

    def __init__(self, environment: Environment | str, *, horizon: int = 1000) -> None:
        self.environment = problem(environment) if isinstance(environment, str) else environment
        self.horizon = whole_number("horizon", horizon, least=1)
        arms, features = self.environment.arms, self.environment.features
        is_shared = self.environment.encoding is Encoding.DISJOINT
        shape = (features,) if is_shared else (arms, features)
        self.observation_space = Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = Discrete(arms)
        self._run, self._t = -1, self.horizon

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a run; return the context of its first round."""
        super().reset(seed=seed)
        self._run = self._run + 1 if seed is None else seed
        self._t = 0
        return _observation(self._round()), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm; return the next round, the reward, and the regret in `info`."""
        if self._t >= self.horizon:
            raise SettingError(
                f"the episode of {self.horizon} rounds is over, or was never begun; call reset()"
            )
        if not self.action_space.contains(action):
            raise SettingError(
                f"`action` must be an integer from 0 to {self.environment.arms - 1}, got {action!r}"
            )
        played, arm = self._round(), int(action)
        self._t += 1
        info = {"regret": float(played.means.max() - played.means[arm])}
        is_over = self._t == self.horizon
        return _observation(self._round()), float(played.rewards[arm]), False, is_over, info

    def _round(self) -> Round:
        return self.environment.round(self._t, self._run)


def _observation(offer: Round) -> np.ndarray:
    return np.array(offer.x, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The results of some rounds."""

    rewards: Float[np.ndarray, " rounds"]
    returns: Float[np.ndarray, " episodes"]  # the sum of rewards of each episode that has ended


def gymnasium_bandit(
    env: gymnasium.Env, policy: Policy[Any] | type[Policy[Any]] | str, *, seed: int = 0
) -> Bandit:
    """Return a bandit whose arms are the actions of an environment; its features are the flat observation."""
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
    """Play `rounds` steps and learn; the first episode is reset with the seed.

    With a `discount` of 0, an arm learns the reward of its own step, at once. With γ > 0 it learns the
    return r_t + γ r_{t+1} + γ² r_{t+2} + …, at the end of the episode.
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
            for decision, value in zip(waiting, discount_rewards(paid, gamma), strict=True):
                bandit.learn(decision, float(value))
            waiting = []
    return Played(rewards=rewards, returns=np.array(returns))


def discount_rewards(rewards: Float[np.ndarray, " n"], gamma: float) -> Float[np.ndarray, " n"]:
    """Return Σ_k γ^k r_{t+k} for every t.

    >>> discount_rewards(np.array([1.0, 2.0, 4.0]), 0.5).tolist()
    [3.0, 4.0, 4.0]
    """
    returns = rewards.copy()
    for t in reversed(range(len(rewards) - 1)):
        returns[t] += gamma * returns[t + 1]
    return returns
