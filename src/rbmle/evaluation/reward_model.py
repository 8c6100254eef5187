"""What a reward is expected to be, learned as the log is read: for the direct method and its kin."""

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Contexts
from rbmle.engine.linear_regression import predict_then_learn
from rbmle.evaluation.contexts import Featuriser
from rbmle.evaluation.rounds import Rounds

RATE = 0.5


class RewardModel:
    """q̂(x, a), linear in the features; what it says of a round was learned from the rounds before it.

    So q̂ is independent of the reward that it is compared with, as doubly robust estimates need it.
    """

    def __init__(self, featuriser: Featuriser, low: float, high: float) -> None:
        self._featuriser, self._low, self._high = featuriser, low, high
        self._theta, self._squares, self._scales = (self._zeros(0) for _ in range(3))

    def predict_then_learn(self, rounds: Rounds, contexts: Contexts) -> Float[np.ndarray, " arms"]:
        """Return q̂ of every arm, within what rewards can be, and learn what was paid."""
        if (missing := self._featuriser.blocks - len(self._theta)) > 0:
            more = self._zeros(missing)
            more[:, -1] = (self._low + self._high) / 2
            self._theta = np.concatenate([self._theta, more])
            self._squares = np.concatenate([self._squares, self._zeros(missing)])
            self._scales = np.concatenate([self._scales, self._zeros(missing)])
        found = np.empty(len(contexts))
        past = self._theta, self._squares, self._scales
        predict_then_learn(
            contexts.rows,
            rounds.sizes,
            rounds.played,
            rounds.rewards,
            RATE * (self._high - self._low),
            *past,
            found,
        )
        return np.clip(found, self._low, self._high)

    def _zeros(self, blocks: int) -> np.ndarray:
        return np.zeros((blocks, self._featuriser.features + 1))
