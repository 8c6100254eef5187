"""Statistics of the rewards so far: the units in which models learn them, and the drift alarm."""

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.engine.drift import (
    COUNT,
    DEVIATIONS,
    EXCESS,
    LEAST,
    PLACES,
    PRIOR,
    SQUARES,
    SUM,
    Watch,
    units_of,
)

RAW = (0.0, 1.0)  # the units of rewards that are learned as they are


def fresh_watch(is_standardised: bool = False) -> Watch:
    """Return the statistics before any data.

    If rewards are learned as they are, one reward of 0 with a deviation of 1 is assumed, and a mean absolute
    deviation of ½, the largest that rewards between 0 and 1 can have. If they are standardised, nothing is.
    """
    if is_standardised:
        first = [0.0, 0.0, 0.0, 0.0, 0.0, np.inf, 0.0, 0.0]
    else:
        first = [0.0, 1.0, 1.0, 0.0, 0.5, np.inf, 0.0, 1.0]
    return np.append(first, np.zeros(PLACES - len(first)))


def units(watch: Watch) -> tuple[float, float]:
    """Return the centre c and the gain g of rewards: models learn (r − c) · g.

    >>> from rbmle.engine.drift import notice
    >>> watch = fresh_watch(is_standardised=True)
    >>> for reward in (252.0, 248.0, 254.0, 246.0):
    ...     is_over = notice(watch, reward, expected=250.0, alarm=0.0)
    >>> units(watch) == (250.0, 10**-0.5)
    True
    """
    centre, gain = RAW if watch[PRIOR] else units_of(watch)
    return float(centre), float(gain)


def spread(watch: Watch) -> float:
    """Return the standard deviation of the rewards so far; 0 while they are all equal."""
    mean = watch[SUM] / max(watch[COUNT], 1.0)
    return float(max(watch[SQUARES] / max(watch[COUNT], 1.0) - mean * mean, 0.0) ** 0.5)


def deviation(watch: Watch) -> float:
    """Return the mean of |r − r̄| over the rewards so far, each with the mean r̄ of those before it; ½ at first.

    It is in the units in which rewards are learned.

    >>> from rbmle.engine.drift import notice
    >>> watch = fresh_watch()
    >>> for reward in (1.0, 0.0, 0.0):
    ...     is_over = notice(watch, reward, expected=0.5, alarm=0.0)
    >>> deviation(watch) * 4  # 1/2, then |1 − 0|, |0 − 1/2| and |0 − 1/3|
    2.3333333333333335
    """
    if watch[PRIOR]:
        return float(watch[DEVIATIONS] / watch[COUNT])
    return float((watch[DEVIATIONS] * units(watch)[1] + 0.5) / (watch[COUNT] + 1))


def least_reward(watch: Watch) -> float:
    """Return the smallest reward so far in the units in which rewards are learned; −∞ where it is not known."""
    if not watch[LEAST] < np.inf:
        return -np.inf
    centre, gain = units(watch)
    return float((watch[LEAST] - centre) * gain)


def complete(watch: Watch) -> Watch:
    """Return a watch with all of its numbers; earlier versions saved fewer.

    For rewards of 0 and 1 the sum of deviations is 2σ². A smallest reward that was not saved stays unknown.
    Earlier versions learned rewards as they are.
    """
    if len(watch) == PLACES:
        return watch
    if len(watch) <= DEVIATIONS:
        mean = watch[SUM] / watch[COUNT]
        watch = np.append(watch, 2 * (watch[SQUARES] - watch[COUNT] * mean * mean))
    if len(watch) <= LEAST:
        watch = np.append(watch, -np.inf)
    if len(watch) <= PRIOR:
        watch = np.append(watch, [0.0, 1.0])
    return np.append(watch, np.zeros(PLACES - len(watch)))


def count_observed(watch: Watch) -> int:
    """Return how many rewards were seen since the start, or since all was forgotten."""
    return int(watch[COUNT] - watch[PRIOR])


def check_alarm(alarm: float) -> None:
    """Raise SettingError unless an alarm is a finite number, 0 or more."""
    if not 0 <= alarm < float("inf"):
        raise SettingError(
            f"`alarm` must be a finite number, 0 or more, got {alarm}; with 0 nothing is ever forgotten"
        )


def is_alarmed(watch: Watch, alarm: float) -> bool:
    """Return whether the alarm has gone off."""
    return bool(watch[EXCESS] > alarm > 0)
