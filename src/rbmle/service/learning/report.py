"""What the learner tells of itself: front ends show it, and decide without it."""

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.service.learning.events import Counts
from rbmle.service.notices import Notice
from rbmle.service.statistics import StatisticsSummary
from rbmle.service.statistics.recent import LAST, WindowLift, losing

DAYS = "days"  # the name of the publication of what was counted day by day
DAYS_SECONDS = 60.0  # between two of them
RESETS_SHOWN = 20  # on the chart
RESET_SHOWN = 7 * 86_400_000  # milliseconds for which the dashboard tells of a drift alarm


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How the learner is, and what it has counted."""

    time: int  # when it was written, in milliseconds since the epoch
    origin: str = ""  # of the log
    seq: int = 0  # the last record that was learned
    counted: int = 0  # the last record that the counts and the summary know, which never goes back
    records: int = 0  # in the log, at that time
    observations: int = 0  # that the model has learned
    is_catching_up: bool = False  # it reads what was in the log when it started
    seconds_left: float | None = None  # of that, roughly; None: not known
    pending: int = 0  # events that are not settled
    counts: Counts = msgspec.field(default_factory=Counts)
    summary: StatisticsSummary = msgspec.field(default_factory=StatisticsSummary)
    lifts: list[WindowLift] = []  # over the baseline action, in the last hour and so on
    log_bytes: int = 0
    unavailable_since: int | None = None  # milliseconds; None: the log can be read
    unavailable_why: str = ""
    broken: str = ""  # why it has stopped, and will not go on
    has_slots: bool = False  # an event that it has read since its start has slots
    resets: int = 0  # how often the drift alarm made the model forget what it knew
    reset_times: list[int] = []  # of the newest ones, in milliseconds
    log_clock_ahead_seconds: float = 0.0  # 0: by no more than it may be
    clock_corrections: int = 0  # by this learner
    notices: list[Notice] = []  # what the operator should know
    learner: str = ""  # the machine, the folder and the process that wrote it


def reset_notices(bandit: Bandit, now: int) -> list[Notice]:
    """Return what the operator should know of drift alarms, at a time in milliseconds: the newest one.

    It is told for a week; the metric `rbmle_model_resets_total` counts all of them.
    """
    if not bandit.events:
        return []
    event = bandit.events[-1]
    if event.time is not None and now - event.time > RESET_SHOWN:
        return []
    how_often = "" if bandit.resets == 1 else f" It was the {_ordinal(bandit.resets)} time."
    return [
        Notice(
            code="model-reset",
            level="info",
            title="Rewards fell, and the model started again.",
            text=f"Rewards stayed below what the model expected of them, so it forgot the {event.forgotten:,} "
            f"observations that it knew, and learns from those that came since.{how_often}",
            since=event.time,
        )
    ]


def reset_times(bandit: Bandit) -> list[int]:
    """Return when the newest drift alarms went off, in milliseconds."""
    return [event.time for event in bandit.events[-RESETS_SHOWN:] if event.time is not None]


def losing_notices(lifts: list[WindowLift]) -> list[Notice]:
    """Return the alarm that the policy earns less than the baseline action now; empty if that is not sure."""
    lift = losing(lifts)
    if lift is None:
        return []
    return [
        Notice(
            code="now-losing",
            level="alarm",
            title="The service earns less than the baseline action now.",
            text=f"In {LAST[lift.window]} a decision earned {lift.played:.3f}, and the baseline action would "
            f"have earned {lift.baseline:.3f}. Look for what has changed: the actions, their features, or "
            "rewards that do not arrive any more. The service goes on learning; until you know why, the mode "
            "Apprentice shows the baseline action.",
        )
    ]


def _ordinal(n: int) -> str:
    """Return a number as in 1st, 2nd, 3rd, 4th.

    >>> [_ordinal(n) for n in (2, 3, 11, 21, 112)]
    ['2nd', '3rd', '11th', '21st', '112th']
    """
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"
