"""All that the dashboard shows, and the promise of who gives it."""

from pathlib import Path
from typing import Protocol

import msgspec

from rbmle.service.access.keys import Scope
from rbmle.service.access.throttle import Throttle
from rbmle.service.dashboard.dates import counted, told
from rbmle.service.learning.events import Counts
from rbmle.service.notices import Notice
from rbmle.service.statistics import StatisticsSummary
from rbmle.service.statistics.buckets import MINUTE
from rbmle.service.statistics.days import Days
from rbmle.service.statistics.ranges import RANGES
from rbmle.service.statistics.recent import WindowLift
from rbmle.service.statistics.tally import Earned
from rbmle.service.statistics.timeline import ALL, STEPS, Point, Series


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How the service is at one time; it does not change any more."""

    time: int  # now, in milliseconds since the epoch
    version: str
    uptime_seconds: float
    policy: str
    learning_mode: str  # Online, Apprentice or LoggingOnly
    settle: str = "deadline"  # when an event is settled, as configured
    exploration: float  # the part of all decisions that is to explore, as configured
    summary: StatisticsSummary
    lifts: list[WindowLift] = []  # over the baseline action, in the last hour and so on
    resets: int = 0  # how often the drift alarm made the model start again
    reset_times: list[int] = []  # of the newest ones, in milliseconds
    counts: Counts
    pending: int  # events that are not settled yet
    records: int  # in the log
    learned: int  # records that the deciding model knows
    observations: int  # that it has learned from
    model_age_seconds: float | None = None  # since it was published; None: nothing is learned yet
    log_bytes: int = 0
    log_unavailable_since: int | None = None  # milliseconds; None: it can be written
    log_problem: str = ""  # what it said, when it could not be written
    fsync_p99_seconds: float | None = None  # None: nothing was written yet
    latency_p50_seconds: float | None = None  # of requests; None: there was none yet
    latency_p99_seconds: float | None = None
    requests: dict[str, int] = {}  # by kind, at all workers
    errors: dict[str, int] = {}  # by kind, at all workers
    workers: int = 1  # processes that answer; times of requests and of the start are those of one
    notices: list[Notice] = []  # what the operator should know, the most urgent first
    days: Days = msgspec.field(default_factory=Days)  # what ranges of dates are made of
    dates: str = ""  # of which dates this is; empty: it is of no such range
    is_begun: bool = False  # there was a decision, in whatever range
    points: list[Point] = []  # of the charts
    bucket_minutes: int = 1  # of each point

    @property
    def backlog(self) -> int:
        """Return how many records wait to be learned."""
        return max(self.records - self.learned, 0)

    def within(self, range: str) -> "Overview":
        """Return the same of a range of time; of all time if there is no such. How the service is stays."""
        dates = counted(range, self.days)
        if range in RANGES:
            start = self.time - RANGES[range].length * RANGES[range].buckets * MINUTE
            return self._part(self.summary.ranges[range], range, start, self.time + MINUTE)
        if dates is not None:
            part = self._part(
                dates.tally.earned(), self._finest(dates.start), dates.start, dates.end
            )
            return msgspec.structs.replace(part, dates=told(dates, self.days))
        return self._part(self.summary, ALL)

    def _finest(self, start: int) -> str:
        """Return the series of the shortest buckets that reach back to a time."""
        for name, (minutes, buckets) in STEPS.items():
            if start >= self.time - minutes * buckets * MINUTE:
                return name
        return ALL

    def _part(
        self, earned: Earned, series: str, start: int | None = None, end: int | None = None
    ) -> "Overview":
        drawn = self.summary.series.get(series, Series())
        return msgspec.structs.replace(
            self,
            summary=self.summary.of(earned),
            days=Days(),
            is_begun=bool(self.summary.decisions),
            points=drawn.points(start, end),
            bucket_minutes=drawn.minutes,
        )


class Guard(Protocol):
    """Who knows the keys, as a KeyRing does."""

    @property
    def path(self) -> Path:
        """Return the file of the keys."""

    def scope_of(self, presented: str) -> Scope | None:
        """Return what a key allows now; None for nothing."""

    def digests(self, needed: Scope) -> list[bytes]:
        """Return the SHA-256 digests of all keys that allow something now."""


def may_look(guard: Guard, key: str) -> bool:
    """Return whether a key opens the dashboard."""
    scope = guard.scope_of(key)
    return scope is not None and scope.covers(Scope.READ)


class Backend(Protocol):
    """What the application gives to the dashboard; all of it is asked in the event loop's thread."""

    @property
    def keys(self) -> Guard | None:
        """Return who knows the keys; None lets everybody look."""

    @property
    def throttle(self) -> Throttle:
        """Return who counts failed attempts, those of other routes too."""

    @property
    def is_stopping(self) -> bool:
        """Return whether the server waits for open answers to end."""

    def now(self) -> float:
        """Return the seconds of a clock that never goes back, the one of the throttle."""

    def wall_clock(self) -> float:
        """Return the seconds since the epoch: sessions end by a clock that all front ends share."""

    @property
    def sessions_path(self) -> Path | None:
        """Return the file of sessions that were signed out; None: they are known to this process only."""

    def overview(self) -> Overview:
        """Return how the service is, at once; it is asked about once a second if anyone looks."""
