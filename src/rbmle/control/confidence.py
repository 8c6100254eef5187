"""Plans for the best MDP of a confidence set: what UCRL2 and KL-UCRL share."""

import numpy as np
from jaxtyping import Float

from rbmle.control import epochs
from rbmle.control.epochs import EpochState
from rbmle.core.errors import SettingError
from rbmle.core.numbers import check_positive


def check_confidence(failure: float, width: float) -> None:
    """Raise SettingError unless 0 < failure < 1 and the width is a finite number above 0."""
    if not 0 < failure < 1:
        raise SettingError(f"`failure` must be a probability between 0 and 1, got {failure}")
    check_positive("width", width)


def plan_within(state: EpochState, kind: int, radius: Float[np.ndarray, "states actions"]) -> None:
    """Plan to 1/√t for the best MDP within a radius of p̂; the epoch ends by visits alone."""
    t = state.round + 1
    epochs.plan(state, kind, epochs.estimated(state), radius, precision=1 / t**0.5)
    state.deadline = epochs.NEVER
