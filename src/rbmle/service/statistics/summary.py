"""What the service has earned, and what other policies would have: a fold over decisions and rewards.

The same calls in the same order give the same statistics, to the bit. Their size is bounded, and a checkpoint
holds them as JSON without loss.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rbmle.service.log.records import Decided, Play
from rbmle.service.statistics.estimates import weigh_play
from rbmle.service.statistics.guarding import GuardBook
from rbmle.service.statistics.lift import HoldoutSums, Sums
from rbmle.service.statistics.ranges import MINUTE, RANGES, Ranges, lengthen, truncate
from rbmle.service.statistics.tally import Earned, References, Traffic, name_actions

MOST_BUCKETS = 240  # of all time
WINDOW = 10  # buckets in a mean: one bucket has few plays of the baseline
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


class Bucket(Sums, array_like=True):
    """Sums over some time."""

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


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one bucket, and means over it and the nine before; None where they are unknown."""

    time: int  # when it starts, in milliseconds
    decided: int
    settled: int
    played: float | None
    baseline: float | None  # SNIPS
    uniform: float | None  # SNIPS


class Series(msgspec.Struct, frozen=True, array_like=True):
    """Buckets by their number, which is their start divided by their length."""

    minutes: int = 1  # the length of a bucket
    buckets: dict[int, Bucket] = {}

    def points(self, start: int | None = None, end: int | None = None) -> list[Point]:
        """Return the buckets between two times in milliseconds, the oldest first; None: without a limit.

        Means include the buckets just before the first one.
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
    """Buckets of each range, and of all time, whose length grows so that there are never too many.

    A play is added to the current bucket, which is added to a bucket of each range when its minute is over.
    Buckets of all time have one minute, or 2, 4, 8, … if that is too short; a bucket with an even number is
    then merged with the next one.
    """

    minutes: int = 1  # the length of a bucket of all time
    buckets: dict[int, Bucket] = msgspec.field(default_factory=dict)  # of all time
    recent: dict[str, dict[int, Bucket]] = msgspec.field(
        default_factory=lambda: {name: {} for name in STEPS}
    )
    minute: int = 0  # the current one
    current: Bucket = msgspec.field(default_factory=Bucket)
    seconds: dict[int, int] = msgspec.field(default_factory=dict)  # decisions in each of the last

    def at(self, time: int) -> Bucket:
        """Return the current bucket; a play with an earlier time is added to it as well."""
        minute = time // MINUTE
        if minute > self.minute:
            self._close(minute)
        return self.current

    def decide(self, time: int, plays: int) -> None:
        self.at(time).decided += plays
        second = time // 1000
        if second not in self.seconds:
            first = second - RATE_SECONDS
            self.seconds = {at: count for at, count in self.seconds.items() if at >= first}
        self.seconds[second] = self.seconds.get(second, 0) + 1

    def per_minute(self, now: int) -> int:
        """Return how many decisions there were in the 60 seconds before the current one."""
        second = now // 1000
        return sum(n for at, n in self.seconds.items() if second - RATE_SECONDS <= at < second)

    def series(self) -> dict[str, Series]:
        """Return a copy of the buckets of each range."""
        copies = {ALL: Series(self.minutes, dict(self.buckets))}
        for name, buckets in self.recent.items():
            copies[name] = Series(STEPS[name].minutes, dict(buckets))
        if self.current != Bucket():
            for series in copies.values():
                number = self.minute // series.minutes
                _add(series.buckets, number, Bucket().merged(self.current))
        return {name: series for name, series in copies.items() if series.buckets}

    def correct_clock(self, time: int) -> None:
        """Set the clock back; later plays are moved to this time."""
        if time // MINUTE >= self.minute:
            return
        self._close(time // MINUTE)
        self.buckets = truncate(self.buckets, self.minute // self.minutes)
        for name, buckets in self.recent.items():
            self.recent[name] = truncate(buckets, self.minute // STEPS[name].minutes)
        self.seconds = {at: count for at, count in self.seconds.items() if at <= time // 1000}

    def _close(self, minute: int) -> None:
        if self.current != Bucket():
            _add(self.buckets, self.minute // self.minutes, self.current)
            for name, buckets in self.recent.items():
                _add(buckets, self.minute // STEPS[name].minutes, self.current)
        self.buckets, self.minutes = lengthen(
            self.buckets, self.minutes, minute * MINUTE, MOST_BUCKETS
        )
        for name, buckets in self.recent.items():
            first = minute // STEPS[name].minutes - STEPS[name].buckets - WINDOW
            self.recent[name] = {at: bucket for at, bucket in buckets.items() if at >= first}
        self.minute, self.current = minute, Bucket()


def _add(buckets: dict[int, Bucket], number: int, more: Bucket) -> None:
    buckets[number] = buckets[number].merged(more) if number in buckets else more


def _point(time: int, bucket: Bucket, window: Iterable[tuple[int, Bucket]]) -> Point:
    settled, reward, baseline_w, baseline_wr, uniform_w, uniform_wr = map(
        sum, zip(*(recent.sums for _, recent in window), strict=True)
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


class StatisticsSummary(Earned, frozen=True, kw_only=True):
    """The statistics at one time, of all time and of each range; a copy that does not change."""

    ranges: dict[str, Earned] = msgspec.field(
        default_factory=lambda: {name: Earned() for name in RANGES}
    )
    # what is drawn, by range and of all time
    series: dict[str, Series] = msgspec.field(default_factory=dict)
    decided_in_minute: int = 0  # decisions in the last 60 seconds

    def of(self, earned: Earned) -> "StatisticsSummary":
        """Return the same with what was earned in some time."""
        known = {name: getattr(earned, name) for name in Earned.__struct_fields__}
        return msgspec.structs.replace(self, **known, ranges={}, series={})


class Statistics(msgspec.Struct, kw_only=True):
    """Sums over all decisions and all final rewards."""

    time: int = 0  # of the last that was counted, in milliseconds
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    ranges: Ranges = msgspec.field(default_factory=Ranges)
    references: References = msgspec.field(default_factory=References)
    holdout: HoldoutSums = msgspec.field(default_factory=HoldoutSums)
    guard: GuardBook | None = None  # None: conservative mode was never on

    def decide(self, time_ms: int, decided: Decided) -> None:
        assignment = decided.assignment
        if assignment is not None and not self.holdout.is_of(assignment):
            self.holdout = HoldoutSums(share=assignment.share, play=assignment.play)
        if (guarded := decided.guarded) is not None:
            if self.guard is None or self.guard.rule != guarded.rule:
                self.guard = GuardBook.of(guarded.rule)
            self.guard.decide(decided, guarded)
        self.time = time_ms
        self.timeline.decide(time_ms, len(decided.plays))
        self.ranges.at(time_ms).decide(decided)
        for play in decided.plays:
            self.traffic.add(decided.actions[play.chosen].id)

    def settle(
        self, time_ms: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Count the final reward of a play, which may be the default reward."""
        self.time = time_ms
        weights = weigh_play(play)
        # Plays of an apprentice do not count for the policy, even where it agreed: agreement is selective.
        is_of_policy = play.preferred is None and not decided.is_held
        if decided.assignment is not None:
            self.holdout.add(decided.assignment, reward)
        guard, guarded = self.guard, decided.guarded
        if guard is not None and guarded is not None and guard.rule == guarded.rule:
            guard.settle(play, guarded, reward)
        tally = self.ranges.at(time_ms)
        tally.joined += is_joined
        action = decided.actions[play.chosen].id
        tally.settle(action, weights, reward, is_of_policy, self.references)
        self.traffic.settle(action, reward)
        bucket = self.timeline.at(time_ms)
        bucket.settled += 1
        bucket.reward += reward
        if weights.baseline is not None:
            bucket.baseline_w += weights.baseline.weight
            bucket.baseline_wr += weights.baseline.weight * reward
        if weights.uniform is not None:
            bucket.uniform_w += weights.uniform.weight
            bucket.uniform_wr += weights.uniform.weight * reward

    def correct_clock(self, time: int) -> None:
        self.time = min(self.time, time)
        self.timeline.correct_clock(time)
        self.ranges.correct_clock(time)

    def summary(self, now: int | None = None) -> StatisticsSummary:
        """Return a copy for other threads; call it in the thread that counts.

        Ranges end now, in milliseconds; None: at the time of the last play.
        """
        end = self.time if now is None else now
        earned = msgspec.structs.asdict(self.ranges.total().summarise())
        return StatisticsSummary(
            **earned | name_actions(self.traffic),
            ranges={name: self.ranges.within(name, end).summarise() for name in RANGES},
            series=self.timeline.series(),
            decided_in_minute=self.timeline.per_minute(end),
        )
