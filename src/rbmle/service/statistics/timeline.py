"""Reward and traffic over time, minute by minute for the last hour, and in longer steps for longer times."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rbmle.service.statistics.buckets import MINUTE, fitted, up_to

MOST_BUCKETS = 240  # of all time
WINDOW = 10  # buckets in a mean: few plays of the baseline fall into one
ALL = "all"  # the series of all time
RATE_SECONDS = 60  # in which decisions are counted second by second


class Steps(NamedTuple):
    """How a range of time is drawn."""

    minutes: int  # of a bucket
    buckets: int


STEPS = {
    "hour": Steps(1, 60),
    "day": Steps(10, 144),
    "week": Steps(60, 168),
    "month": Steps(240, 180),
}


class Bucket(msgspec.Struct, array_like=True):
    """What happened in one stretch of time."""

    decided: int = 0  # plays
    settled: int = 0  # plays whose reward is final
    reward: float = 0.0  # Σ r
    baseline_w: float = 0.0  # Σ w, of the baseline action
    baseline_wr: float = 0.0
    uniform_w: float = 0.0
    uniform_wr: float = 0.0

    @property
    def sums(self) -> tuple[float, ...]:
        """Return what means are made of."""
        return (
            self.settled,
            self.reward,
            self.baseline_w,
            self.baseline_wr,
            self.uniform_w,
            self.uniform_wr,
        )

    def merged(self, other: "Bucket") -> "Bucket":
        """Return both together."""
        return Bucket(
            *(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__)
        )


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one bucket, and means over it and the nine before; None where nothing tells of them."""

    time: int  # when it starts, in milliseconds
    decided: int
    settled: int
    played: float | None
    baseline: float | None  # SNIPS
    uniform: float | None  # SNIPS


class Series(msgspec.Struct, frozen=True, array_like=True):
    """What happened over some time, by the number of a bucket: its start over its length."""

    minutes: int = 1  # the length of a bucket
    buckets: dict[int, Bucket] = {}

    def points(self, start: int | None = None, end: int | None = None) -> list[Point]:
        """Return what happened between two times in milliseconds, the oldest first; None: without an end.

        Means take in the buckets just before the first one too.
        """
        length, points = self.minutes * MINUTE, []
        window: deque[tuple[int, Bucket]] = deque()
        for number, bucket in sorted(self.buckets.items()):
            window.append((number, bucket))
            while window[0][0] <= number - WINDOW:
                window.popleft()
            if (start is None or number >= start // length) and (
                end is None or number * length < end
            ):
                points.append(_point(number * length, bucket, window))
        return points


class Timeline(msgspec.Struct):
    """Buckets of each range, and those of all time, which get longer so that they are never too many.

    What happens is added to one bucket, and that one, when its minute is over, to all that it is a part of.
    Buckets of all time have one minute, and 2, 4, 8, … when the whole time does not fit otherwise; two that
    become one are those of an even number and the next.
    """

    minutes: int = 1  # the length of a bucket of all time
    buckets: dict[int, Bucket] = msgspec.field(default_factory=dict)  # of all time
    recent: dict[str, dict[int, Bucket]] = msgspec.field(
        default_factory=lambda: {name: {} for name in STEPS}
    )
    minute: int = 0  # that is not over
    current: Bucket = msgspec.field(default_factory=Bucket)
    seconds: dict[int, int] = msgspec.field(default_factory=dict)  # decisions in each of the last

    def at(self, time: int) -> Bucket:
        """Return the bucket to add to; what comes late is added to the newest."""
        minute = time // MINUTE
        if minute > self.minute:
            self._close(minute)
        return self.current

    def decide(self, time: int, plays: int) -> None:
        """Count a decision, and its plays."""
        self.at(time).decided += plays
        second = time // 1000
        if second not in self.seconds:
            first = second - RATE_SECONDS
            self.seconds = {at: count for at, count in self.seconds.items() if at >= first}
        self.seconds[second] = self.seconds.get(second, 0) + 1

    def per_minute(self, now: int) -> int:
        """Return how many decisions there were in the 60 seconds before the one that is not over."""
        second = now // 1000
        return sum(n for at, n in self.seconds.items() if second - RATE_SECONDS <= at < second)

    def series(self) -> dict[str, Series]:
        """Return what happened, by range for other threads too."""
        found = {ALL: Series(self.minutes, dict(self.buckets))}
        for name, buckets in self.recent.items():
            found[name] = Series(STEPS[name].minutes, dict(buckets))
        if self.current != Bucket():
            for minutes, buckets in ((one.minutes, one.buckets) for one in found.values()):
                _add(buckets, self.minute // minutes, Bucket().merged(self.current))
        return {name: series for name, series in found.items() if series.buckets}

    def correct_clock(self, time: int) -> None:
        """Move what was counted after a time to that time."""
        if time // MINUTE >= self.minute:
            return
        self._close(time // MINUTE)
        self.buckets = up_to(self.buckets, self.minute // self.minutes)
        for name, found in self.recent.items():
            self.recent[name] = up_to(found, self.minute // STEPS[name].minutes)
        self.seconds = {at: count for at, count in self.seconds.items() if at <= time // 1000}

    def _close(self, minute: int) -> None:
        """Add the current bucket to all that it is a part of, and begin another."""
        if self.current != Bucket():
            _add(self.buckets, self.minute // self.minutes, self.current)
            for name, found in self.recent.items():
                _add(found, self.minute // STEPS[name].minutes, self.current)
        self.buckets, self.minutes = fitted(
            self.buckets, self.minutes, minute * MINUTE, MOST_BUCKETS
        )
        for name, found in self.recent.items():
            first = minute // STEPS[name].minutes - STEPS[name].buckets - WINDOW
            self.recent[name] = {at: one for at, one in found.items() if at >= first}
        self.minute, self.current = minute, Bucket()


def _add(buckets: dict[int, Bucket], number: int, more: Bucket) -> None:
    buckets[number] = buckets[number].merged(more) if number in buckets else more


def _point(time: int, bucket: Bucket, window: Iterable[tuple[int, Bucket]]) -> Point:
    settled, reward, baseline_w, baseline_wr, uniform_w, uniform_wr = map(
        sum, zip(*(one.sums for _, one in window), strict=True)
    )
    return Point(
        time=time,
        decided=bucket.decided,
        settled=bucket.settled,
        played=_ratio(reward, settled),
        baseline=_ratio(baseline_wr, baseline_w),
        uniform=_ratio(uniform_wr, uniform_w),
    )


def _ratio(total: float, weight: float) -> float | None:
    return total / weight if weight else None
