"""UCRL2 (Jaksch, Ortner, Auer 2010, "Near-optimal regret bounds for reinforcement learning")."""

import math
from dataclasses import dataclass

import numpy as np

from rbmle.control.confidence import check_confidence, plan_within
from rbmle.control.epochs import EpochLearner, EpochState
from rbmle.engine.relative_values import DISTANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class UCRL2(EpochLearner):
    """An optimal policy for the best MDP with ‖p(· | s, a) − p̂(· | s, a)‖₁ ≤ √(14 S log(2 A t/δ) / N(s, a)).

    Rewards are known, so only transitions have a confidence set. `width` multiplies its radius; it is 1 in the
    paper.
    """

    failure: float = 0.05  # δ
    width: float = 1.0  # of the confidence set; below 1 no bound is claimed

    def __post_init__(self) -> None:
        """Raise SettingError unless 0 < δ < 1 and the width is a finite number above 0."""
        check_confidence(self.failure, self.width)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        (states, actions), t = state.rewards.shape, state.round + 1
        logarithm = math.log(2 * actions * t / self.failure)
        radius = np.sqrt(14 * states * logarithm / np.maximum(state.visits, 1))  # Eq. (4) there
        plan_within(state, DISTANCE, self.width * radius)
