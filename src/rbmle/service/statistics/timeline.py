"""Reward and traffic over time, in a bounded number of buckets."""

from collections import deque
from collections.abc import Iterable

import msgspec

from rbmle.service.statistics.buckets import MINUTE, fitted, up_to

MOST_BUCKETS = 240
WINDOW = 10  # buckets in a mean: few plays of the baseline fall into one


class Bucket(msgspec.Struct):
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


class Timeline(msgspec.Struct):
    """Buckets of one minute each, and of 2, 4, 8, … when the whole time does not fit otherwise.

    Two that become one are those of an even number and the next.
    """

    minutes: int = 1  # the length of a bucket
    buckets: dict[int, Bucket] = msgspec.field(default_factory=dict)

    def at(self, time: int) -> Bucket:
        """Return the bucket of a time, to add to; times may go back."""
        if time // (self.minutes * MINUTE) not in self.buckets:
            self.buckets, self.minutes = fitted(self.buckets, self.minutes, time, MOST_BUCKETS)
        return self.buckets.setdefault(time // (self.minutes * MINUTE), Bucket())

    def correct_clock(self, time: int) -> None:
        """Move what was counted after a time to that time."""
        self.buckets = up_to(self.buckets, time // (self.minutes * MINUTE))

    def points(self) -> list[Point]:
        """Return what happened over time, the oldest first."""
        points = []
        window: deque[tuple[int, Bucket]] = deque()
        for number, bucket in sorted(self.buckets.items()):
            window.append((number, bucket))
            while window[0][0] <= number - WINDOW:
                window.popleft()
            points.append(_point(number * self.minutes * MINUTE, bucket, window))
        return points


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
