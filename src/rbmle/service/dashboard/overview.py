"""What the dashboard shows, and what it needs from the application."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from rbmle.service.access.keys import KeyRing
from rbmle.service.access.limits import Throttle
from rbmle.service.dashboard.words import count
from rbmle.service.front.requests import StatusAnswer
from rbmle.service.model.report import Report
from rbmle.service.notices import Notice
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.ranges import DAY, MINUTE, RANGES, Days
from rbmle.service.statistics.summary import ALL, STEPS, Point, Series
from rbmle.service.statistics.tally import Earned

BETWEEN = "/"  # two dates, as in ISO 8601
FIRST = "1970-01-01"
DAY_MILLISECONDS = DAY * 60_000


def parse_dates(first: str, last: str, now: int) -> str | None:
    """Return the range between two dates, where a missing last one is today; None if there is none.

    >>> parse_dates("2026-05-01", "2026-05-31", 0), parse_dates("", "", 0), parse_dates("May", "", 0)
    ('2026-05-01/2026-05-31', None, None)
    """
    if not first and not last:
        return None
    try:
        days = [date.fromisoformat(day) for day in (first or FIRST, last or str(_date(now)))]
    except ValueError:
        return None
    return BETWEEN.join(day.isoformat() for day in sorted(days))


def _date(milliseconds: int) -> date:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date()


def _midnight(day: str) -> int:
    """Return the start of a day in milliseconds."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return (midnight - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of the service at one time."""

    time: int  # now, in milliseconds since the epoch
    uptime_seconds: float
    policy: str
    configuration: ServiceConfiguration
    report: Report  # of the learner; of a period, with the summary of that period
    status: StatusAnswer
    model_age_seconds: float | None = None  # None: nothing is published yet
    log_unavailable_since: int | None = None  # milliseconds; None: it can be written
    log_problem: str = ""  # why it cannot be written
    fsync_p99_seconds: float | None = None  # None: nothing was written yet
    latency_p50_seconds: float | None = None  # of requests; None: there was none yet
    latency_p99_seconds: float | None = None
    requests: dict[str, int] = field(default_factory=dict)  # by kind, at all workers
    errors: dict[str, int] = field(default_factory=dict)  # by kind, at all workers
    workers: int = 1  # front ends; latencies and the uptime are those of one
    notices: list[Notice] = field(default_factory=list)  # the most urgent first
    days: Days = field(default_factory=Days)  # from which ranges of dates are made
    dates: str = ""  # the dates of such a range
    is_begun: bool = False  # there was a decision, at any time
    points: list[Point] = field(default_factory=list)  # of the charts
    bucket_minutes: int = 1  # of each point

    def within(self, range: str) -> "Overview":
        """Return the numbers of a period, of all time if there is no such range; the state stays the same."""
        if range in RANGES:
            start = self.time - RANGES[range].length * RANGES[range].buckets * MINUTE
            earned = self.report.summary.ranges[range]
            return self._part(earned, range, start, self.time + MINUTE)
        if BETWEEN not in range:
            return self._part(self.report.summary, ALL)
        first, last = (_midnight(day) for day in range.split(BETWEEN))
        days = self.days.within(first, last + DAY_MILLISECONDS)
        length = self.days.minutes // DAY
        note = "" if length == 1 else f" A log as long as this has {count(length)} days in one."
        part = self._part(days.tally.summarise(), self._finest(days.start), days.start, days.end)
        return replace(
            part,
            dates=f"From {_date(days.start)} to {_date(days.end - DAY_MILLISECONDS)}, both included, in UTC."
            f"{note}",
        )

    def _finest(self, start: int) -> str:
        """Return the series with the shortest buckets that goes back to a time."""
        for name, (minutes, buckets) in STEPS.items():
            if start >= self.time - minutes * buckets * MINUTE:
                return name
        return ALL

    def _part(
        self, earned: Earned, series: str, start: int | None = None, end: int | None = None
    ) -> "Overview":
        summary = self.report.summary
        series_drawn = summary.series.get(series, Series())
        return replace(
            self,
            report=msgspec.structs.replace(self.report, summary=summary.of(earned)),
            is_begun=bool(summary.decisions),
            points=series_drawn.points(start, end),
            bucket_minutes=series_drawn.minutes,
        )


class DashboardSource(Protocol):
    """What the application provides for the dashboard; all of it is called in the thread of the event loop."""

    @property
    def keys(self) -> KeyRing | None:
        """The keys; None: everybody may look."""

    @property
    def throttle(self) -> Throttle:
        """Counts failed sign-ins, together with wrong keys of the API."""

    @property
    def is_stopping(self) -> bool:
        """Whether the server waits for open responses to end."""

    @property
    def sessions_path(self) -> Path | None:
        """The file of sessions that were signed out; None: only this process knows them."""

    def now(self) -> float:
        """Return the seconds of the throttle's monotonic clock."""

    def wall_clock(self) -> float:
        """Return the seconds since the epoch, by which sessions expire at all front ends."""

    def overview(self) -> Overview:
        """Return the state of the service; called about once a second while somebody looks."""
