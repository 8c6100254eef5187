"""UCRL2 (Jaksch, Ortner, Auer 2010, "Near-optimal regret bounds for reinforcement learning")."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.control import epochs
from rbmle.control.base import Transition
from rbmle.control.epochs import EpochState
from rbmle.control.walk import Walk
from rbmle.core.errors import SettingError
from rbmle.engine.relative_values import DISTANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class UCRL2:
    """An optimal policy for the best MDP with ‖p(· | s, a) − p̂(· | s, a)‖₁ ≤ √(14 S log(2 A t/δ) / N(s, a)).

    Rewards are known, so only transitions have a confidence set.
    """

    failure: float = 0.05  # δ

    def __post_init__(self) -> None:
        """Raise SettingError unless the probability of failure is above 0 and below 1."""
        if not 0 < self.failure < 1:
            raise SettingError(
                f"`failure` must be a probability between 0 and 1, got {self.failure}"
            )

    def init(
        self, rewards: Float[np.ndarray, "states actions"], rng: np.random.Generator
    ) -> EpochState:
        """Return the state before any transition."""
        state = EpochState.before(rewards)
        self.replan(state, rng)
        return state

    def act(self, state: EpochState, place: int, rng: np.random.Generator) -> int:
        """Return what the policy of this epoch does."""
        return int(state.policy[place])

    def update(self, state: EpochState, seen: Transition, rng: np.random.Generator) -> None:
        """Count a transition; plan anew at the end of an epoch."""
        epochs.update(self.replan, state, seen, rng)

    def advance(self, state: EpochState, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        epochs.advance(self.replan, state, walk, end)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        (states, actions), t = state.rewards.shape, state.round + 1
        logarithm = math.log(2 * actions * t / self.failure)
        radius = np.sqrt(14 * states * logarithm / np.maximum(state.visits, 1))  # Eq. (4) there
        epochs.plan(state, DISTANCE, epochs.estimated(state), radius, precision=1 / t**0.5)
        state.deadline = epochs.NEVER  # its epochs end by visits alone
