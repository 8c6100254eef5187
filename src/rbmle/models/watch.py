"""What a model knows of the rewards so far, and whether the world has changed."""

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.engine.watching import COUNT, DEVIATIONS, EXCESS, LEAST, SQUARES, SUM, Watch


def fresh_watch() -> Watch:
    """Return what is known before any data: as if there had been one reward, 0 with a deviation of 1.

    The mean absolute deviation is ½, as large as that of rewards between 0 and 1 can be.
    """
    return np.array([0.0, 1.0, 1.0, 0.0, 0.5, np.inf])


def deviation(watch: Watch) -> float:
    """Return the mean of |r − r̄| over the rewards so far, each with the mean r̄ of those before it; ½ at first.

    >>> from rbmle.engine.watching import notice
    >>> watch = fresh_watch()
    >>> for reward in (1.0, 0.0, 0.0):
    ...     is_over = notice(watch, reward, expected=0.5, alarm=0.0)
    >>> deviation(watch) * 4  # 1/2, then |1 − 0|, |0 − 1/2| and |0 − 1/3|
    2.3333333333333335
    """
    return float(watch[DEVIATIONS] / watch[COUNT])


def least_reward(watch: Watch) -> float:
    """Return the smallest reward so far; −∞ before any, and where it is not known."""
    return float(watch[LEAST]) if watch[LEAST] < np.inf else -np.inf


def complete(watch: Watch) -> Watch:
    """Return what is known, also if it was saved without deviations, or without the smallest reward.

    The deviations of rewards of 0 and 1 are 2σ²; a smallest reward that was not kept stays unknown.
    """
    if len(watch) > LEAST:
        return watch
    if len(watch) <= DEVIATIONS:
        mean = watch[SUM] / watch[COUNT]
        watch = np.append(watch, 2 * (watch[SQUARES] - watch[COUNT] * mean * mean))
    return np.append(watch, -np.inf)


def observed(watch: Watch) -> int:
    """Return how many rewards were seen since the start, or since all was forgotten."""
    return int(watch[COUNT]) - 1


def check_alarm(alarm: float) -> None:
    """Raise SettingError unless an alarm is a finite number, 0 or more."""
    if not 0 <= alarm < float("inf"):
        raise SettingError(
            f"`alarm` must be a finite number, 0 or more, got {alarm}; with 0 nothing is ever forgotten"
        )


def is_alarmed(watch: Watch, alarm: float) -> bool:
    """Return whether the alarm has gone off."""
    return bool(watch[EXCESS] > alarm > 0)
