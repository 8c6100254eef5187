"""Certainty equivalence for unknown transitions: the control that the others must beat."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.control import epochs
from rbmle.control.base import Transition
from rbmle.control.epochs import EpochState
from rbmle.control.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularCE:
    """An optimal policy for p̂(s′ | s, a) = N(s, a, s′)/N(s, a), uniform where nothing was seen."""

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
        epochs.plan_known(state, epochs.estimated(state))
