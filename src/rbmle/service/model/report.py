"""The learner's report: front ends show it, and do not need it to decide."""

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.service.notices import Notice
from rbmle.service.statistics.guarding import GuardReport
from rbmle.service.statistics.lift_intervals import LAST, HoldoutLift, WindowLift, find_loss
from rbmle.service.statistics.summary import StatisticsSummary

DAYS_SECONDS = 60.0  # between two of them
RESETS_SHOWN = 20  # on the chart
RESET_SHOWN = 7 * 86_400_000  # milliseconds for which the dashboard shows a drift alarm


class LiftAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How much more the service earns than it would without the model, with intervals valid at any time."""

    holdout: HoldoutLift | None  # None: there is no holdout, or too little of it is settled
    baseline: list[
        WindowLift
    ]  # over the baseline action, estimated from probabilities; no holdout needed
    losing: str | None  # the shortest window with a significant loss; None: there is none


class Counts(msgspec.Struct, kw_only=True):
    """Counts of events and rewards by their outcome."""

    decided: int = 0
    joined: int = 0  # slots with a reward
    defaulted: int = 0  # slots without one
    unactivated: int = 0  # events that were never shown
    duplicate: int = 0  # rewards of a slot that had one
    late: int = 0  # rewards of an event that was closed
    orphan: int = 0  # rewards for an unknown event


class ShadowReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a shadow policy would have earned since the deciding model started."""

    policy: str
    plays: int  # that it was judged on
    since: int  # milliseconds
    reward: float | None  # mean reward that it would have earned; None: too few plays
    played: float | None  # mean reward of the same plays
    low: float | None  # of the difference; those of all shadows at all times are valid together
    high: float | None
    is_behind: bool  # it still reads the log

    @property
    def lift(self) -> float | None:
        return None if self.reward is None or self.played is None else self.reward - self.played


class ShadowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The shadow policies."""

    shadows: list[ShadowReport]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the learner, and its counts."""

    time: int  # when it was written, in milliseconds since the epoch
    origin: str = ""  # of the log
    seq: int = 0  # the last record that was learned
    counted: int = 0  # the last record in the counts and the summary, which never goes back
    records: int = 0  # in the log, at that time
    observations: int = 0  # that the model has learned
    is_catching_up: bool = False  # it still reads records from before its start
    seconds_left: float | None = None  # of that, roughly; None: unknown
    pending: int = 0  # events that are not settled
    counts: Counts = msgspec.field(default_factory=Counts)
    summary: StatisticsSummary = msgspec.field(default_factory=StatisticsSummary)
    lifts: list[WindowLift] = []  # over the baseline action, in the last hour and so on
    holdout: HoldoutLift | None = None  # None: there is none, or too little is settled
    guard: GuardReport | None = None  # None: conservative mode was never on
    shadows: list[ShadowReport] = []
    log_bytes: int = 0
    deleted: int = 0  # records up to this one are deleted, by retention
    erasures: int = 0  # how often records of events were erased
    oldest: int | None = None  # the time of the first record after those
    unavailable_since: int | None = None  # milliseconds; None: the log can be read
    unavailable_why: str = ""
    broken: str = ""  # why it has failed for good
    has_slots: bool = False  # an event that it has read since its start has slots
    resets: int = 0  # how often the drift alarm made the model forget what it knew
    reset_times: list[int] = []  # of the newest ones, in milliseconds
    log_clock_ahead_seconds: float = 0.0  # 0: by no more than it may be
    clock_corrections: int = 0  # by this learner
    notices: list[Notice] = []  # what the operator should know
    learner: str = ""  # the machine, the folder and the process that wrote it


def reset_notices(bandit: Bandit, now: int) -> list[Notice]:
    """Return a notice of the newest drift alarm, at a time in milliseconds, for a week.

    The metric `rbmle_model_resets_total` counts all alarms.
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
            text=f"Rewards stayed below what the model expected, so it forgot the {event.forgotten:,} "
            f"observations that it knew, and learns from newer ones.{how_often}",
            since=event.time,
        )
    ]


def reset_times(bandit: Bandit) -> list[int]:
    return [event.time for event in bandit.events[-RESETS_SHOWN:] if event.time is not None]


def lift_answer(report: Report) -> LiftAnswer:
    loss = find_loss(report.lifts)
    return LiftAnswer(
        holdout=report.holdout, baseline=report.lifts, losing=None if loss is None else loss.window
    )


def losing_notices(lifts: list[WindowLift]) -> list[Notice]:
    """Return an alarm if the policy earns significantly less than the baseline action now."""
    lift = find_loss(lifts)
    if lift is None:
        return []
    return [
        Notice(
            code="now-losing",
            level="alarm",
            title="The service earns less than the baseline action now.",
            text=f"In {LAST[lift.window]} a decision earned {lift.played:.3f}, and the baseline action would "
            f"have earned {lift.baseline:.3f}. Look for what has changed: the actions, their features, or "
            "rewards that no longer arrive. The service goes on learning; until you know why, the mode "
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
