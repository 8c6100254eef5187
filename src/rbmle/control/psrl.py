"""PSRL (Osband, Russo, Van Roy 2013, "(More) efficient reinforcement learning via posterior sampling")."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.control import epochs
from rbmle.control.base import Transition
from rbmle.control.epochs import EpochState
from rbmle.control.walk import Walk
from rbmle.core.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class PSRL:
    """An optimal policy for P(· | s, a) ~ Dirichlet(c + N(s, a, ·)), drawn anew in each epoch.

    The paper has episodes of a fixed length; here they are UCRL2's epochs, for there is no end to come to.
    """

    prior: float = 1.0  # c, of each next state

    def __post_init__(self) -> None:
        """Raise SettingError unless the prior is a finite number above 0."""
        if not 0 < self.prior < float("inf"):
            raise SettingError(f"`prior` must be a finite number above 0, got {self.prior}")

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
        """Count a transition; draw and plan anew at the end of an epoch."""
        epochs.update(self.replan, state, seen, rng)

    def advance(self, state: EpochState, walk: Walk, end: int) -> None:
        """Act and learn until the walk has taken `end` steps."""
        epochs.advance(self.replan, state, walk, end)

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        drawn = rng.standard_gamma(self.prior + state.counts)
        epochs.plan_known(state, drawn / drawn.sum(axis=2, keepdims=True))
