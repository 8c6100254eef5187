"""What a model knows of the rewards so far, and whether the world has changed."""

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.engine.watching import EXCESS, Watch


def fresh_watch() -> Watch:
    """Return what is known before any data: as if there had been one reward, 0 with a deviation of 1."""
    return np.array([0.0, 1.0, 1.0, 0.0])


def check_alarm(alarm: float) -> None:
    """Raise SettingError unless an alarm is a finite number, 0 or more."""
    if not 0 <= alarm < float("inf"):
        raise SettingError(
            f"`alarm` must be a finite number, 0 or more, got {alarm}; with 0 nothing is ever forgotten"
        )


def is_alarmed(watch: Watch, alarm: float) -> bool:
    """Return whether the alarm has gone off."""
    return bool(watch[EXCESS] > alarm > 0)
