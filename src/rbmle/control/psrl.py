"""PSRL (Osband, Russo, Van Roy 2013, "(More) efficient reinforcement learning via posterior sampling")."""

from dataclasses import dataclass

import numpy as np

from rbmle.control import epochs
from rbmle.control.epochs import EpochLearner, EpochState
from rbmle.core.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class PSRL(EpochLearner):
    """An optimal policy for P(· | s, a) ~ Dirichlet(c + N(s, a, ·)), drawn anew in each epoch.

    The paper has episodes of a fixed length; here they are UCRL2's epochs, for there is no end to come to.
    """

    prior: float = 1.0  # c, of each next state

    def __post_init__(self) -> None:
        """Raise SettingError unless the prior is a finite number above 0."""
        if not 0 < self.prior < float("inf"):
            raise SettingError(f"`prior` must be a finite number above 0, got {self.prior}")

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        drawn = rng.standard_gamma(self.prior + state.counts)
        epochs.plan_known(state, drawn / drawn.sum(axis=2, keepdims=True))
