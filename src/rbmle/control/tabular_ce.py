"""Certainty equivalence for unknown transitions: the control that the others must beat."""

from dataclasses import dataclass

import numpy as np

from rbmle.control import epochs
from rbmle.control.epochs import EpochLearner, EpochState


@dataclass(frozen=True, slots=True, kw_only=True)
class TabularCE(EpochLearner):
    """An optimal policy for p̂(s′ | s, a) = N(s, a, s′)/N(s, a), uniform where nothing was seen."""

    def replan(self, state: EpochState, rng: np.random.Generator) -> None:
        """Write the policy of the next epoch."""
        epochs.plan_known(state, epochs.estimated(state))
