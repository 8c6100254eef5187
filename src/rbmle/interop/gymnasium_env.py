"""Our environments in Gymnasium: a step is a round, an episode is a run of some rounds."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from rbmle.core.checks import whole_number
from rbmle.core.errors import SettingError
from rbmle.core.types import Encoding
from rbmle.environments.base import Environment, Round
from rbmle.environments.naming import problem


class BanditEnv(gymnasium.Env):
    """An environment of rbmle as one of Gymnasium.

    The observation is what is known of the arms: the vector that they share, or a row for each. The action
    is an arm. `reset(seed=s)` begins the run with seed s, and `reset()` the run with the next seed, the
    first of which is 0. An episode is truncated after `horizon` rounds.

    Args:
        environment: a problem, or its name, such as "digits" or "adult+noise".
        horizon: the rounds of an episode.

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
        """Begin a run; return what is known of the arms of its first round."""
        super().reset(seed=seed)
        self._run = self._run + 1 if seed is None else seed
        self._t = 0
        return _seen(self._round()), {}

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
        return _seen(self._round()), float(played.rewards[arm]), False, is_over, info

    def _round(self) -> Round:
        """Return the round that is being played."""
        return self.environment.round(self._t, self._run)


def _seen(offer: Round) -> np.ndarray:
    """Return a copy of what is known of the arms."""
    return np.array(offer.x, np.float64)
