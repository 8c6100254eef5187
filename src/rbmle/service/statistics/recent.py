"""Whether the policy earns more or less than the baseline action now: in the last hour, day and week.

A window that moves is another one each time it is looked at. Each window begins at the start of a bucket, and
its confidence sequence holds from there on at all times at once. Between them, the windows begin 2,198 times
in a week, so with α/2198 for each of them all intervals of a week hold together with probability 1 − α: the
alarm goes off for nothing in at most one week of twenty, however often anyone looks.
"""

import math

import msgspec

from rbmle.service.statistics.days import DAY
from rbmle.service.statistics.estimates import FEWEST, NORMAL_95
from rbmle.service.statistics.lift import LEAST, MOST, LiftSums
from rbmle.service.statistics.ranges import RANGES
from rbmle.service.statistics.tally import Earned

FALSE_ALARMS = 0.05  # weeks in which the alarm may go off for nothing
LAST = {"hour": "the last hour", "day": "the last 24 hours", "week": "the last 7 days"}
WINDOWS = tuple(LAST)  # the shortest first
STARTS = sum(7 * DAY // RANGES[name].length for name in WINDOWS)  # of windows in a week
ALL = "all"
ALL_TIME_ALPHA = 0.025  # on each side


class WindowLift(msgspec.Struct, frozen=True, kw_only=True):
    """How much more a decision of the policy earned than the baseline action, in a window of time."""

    window: str  # one of WINDOWS, or ALL
    plays: int
    played: float  # mean reward of what was shown
    baseline: float  # of the baseline action, estimated from the same plays
    low: float  # of the difference; for windows, valid in all of a week at once
    high: float
    error: float  # standard error of the difference

    @property
    def value(self) -> float:
        """Return the difference."""
        return self.played - self.baseline

    @property
    def is_below(self) -> bool:
        """Return whether less was earned, for sure."""
        return self.high < 0


def window_lifts(all_time: Earned, ranges: dict[str, Earned]) -> list[WindowLift]:
    """Return the lift of each window, and that of all time, where enough is settled to tell."""
    parts = [(name, ranges[name], FALSE_ALARMS / STARTS) for name in WINDOWS]
    return [
        _lift(name, earned.over_baseline, alpha)
        for name, earned, alpha in [*parts, (ALL, all_time, ALL_TIME_ALPHA)]
        if _is_known(earned)
    ]


def losing(lifts: list[WindowLift]) -> WindowLift | None:
    """Return the shortest window in which surely less was earned; None if there is none.

    A longer one does not count if a shorter one shows that the loss is over.
    """
    windows = [lift for lift in lifts if lift.window != ALL]
    for at, lift in enumerate(windows):
        if lift.is_below and not any(_has_recovered(shorter, lift) for shorter in windows[:at]):
            return lift
    return None


def _is_known(earned: Earned) -> bool:
    sums = earned.over_baseline
    return sums.plays >= FEWEST <= earned.policy_baseline.effective and not sums.beyond


def _lift(window: str, sums: LiftSums, alpha: float) -> WindowLift:
    from rbmle.service.statistics.lift_intervals import bound  # it takes a second to import

    most = MOST - LEAST
    return WindowLift(
        window=window,
        plays=sums.plays,
        played=sums.reward / sums.plays,
        baseline=sums.other / sums.plays,
        low=max(bound(sums, 1.0, -1.0, alpha), -most),
        high=min(-bound(sums, -1.0, 1.0, alpha), most),
        error=math.sqrt(max(sums.rr - 2 * sums.rb + sums.bb, 0.0)) / sums.plays,
    )


def _has_recovered(shorter: WindowLift, lift: WindowLift) -> bool:
    """Return whether a shorter window shows no loss, and that this is hardly luck."""
    return shorter.value >= 0 and shorter.value - NORMAL_95 * shorter.error > lift.value
