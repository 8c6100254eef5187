"""Sums over the last hour, day, week and month, and over all time, in bounded memory."""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol, Self, TypeVar

import msgspec

from rbmle.service.statistics.tally import Tally

MINUTE = 60_000  # milliseconds

DAY = 24 * 60  # minutes
MOST_DAYS = 100

FINE = 5  # minutes in which plays are counted; longer buckets consist of these
HOUR = 60  # minutes


class Mergeable(Protocol):
    """Sums over some time."""

    def merged(self, later: Self, /) -> Self: ...


AnySums = TypeVar("AnySums", bound=Mergeable)


def lengthen(
    buckets: dict[int, AnySums],
    minutes: int,
    time: int,
    most: int,
    longer: Callable[[int], int] = lambda minutes: 2 * minutes,
) -> tuple[dict[int, AnySums], int]:
    """Return buckets and their length in minutes, so long that `most` of them reach to a time in milliseconds.

    `longer` returns the next length, a multiple of the one before.
    """
    while True:
        numbers = [*buckets, time // (minutes * MINUTE)]
        if max(numbers) - min(numbers) < most:
            return buckets, minutes
        length = longer(minutes)
        buckets, minutes = coarsen(buckets, length // minutes), length


def truncate(buckets: dict[int, AnySums], last: int) -> dict[int, AnySums]:
    """Return buckets with all later ones merged into the last one, to which a clock was set back."""
    kept = {number: bucket for number, bucket in buckets.items() if number <= last}
    for number in sorted(buckets.keys() - kept.keys()):
        bucket = buckets[number]
        kept[last] = kept[last].merged(bucket) if last in kept else bucket
    return kept


def coarsen(buckets: dict[int, AnySums], times: int) -> dict[int, AnySums]:
    """Return buckets that are so many times as long."""
    longer: dict[int, AnySums] = {}
    for number, bucket in buckets.items():
        at = number // times
        longer[at] = longer[at].merged(bucket) if at in longer else bucket
    return longer


class DaysCounted(NamedTuple):
    """The sums of some days, which begin and end at times in milliseconds."""

    tally: Tally
    start: int
    end: int


class Days(msgspec.Struct):
    """Tallies of one day each, in UTC, or of 2, 4, 8, … days when there would be too many."""

    minutes: int = DAY  # the length of a bucket
    buckets: dict[int, Tally] = msgspec.field(default_factory=dict)

    def add(self, time: int, tally: Tally) -> None:
        if tally == Tally():  # an empty day would only make the others longer
            return
        self.buckets, self.minutes = lengthen(self.buckets, self.minutes, time, MOST_DAYS)
        number = time // self._length
        known = self.buckets.get(number)
        self.buckets[number] = tally if known is None else known.merged(tally)

    def correct_clock(self, time: int) -> None:
        """Move what was counted after a time to that time."""
        self.buckets = truncate(self.buckets, time // self._length)

    def within(self, start: int, end: int) -> DaysCounted:
        """Return the sums of all buckets that overlap a time, with the time that they span."""
        first, last = start // self._length, (end - 1) // self._length
        total = Tally()
        for number, tally in self.buckets.items():
            if first <= number <= last:
                total = total.merged(tally)
        return DaysCounted(total, first * self._length, (last + 1) * self._length)

    @property
    def _length(self) -> int:
        return self.minutes * MINUTE


class Range(NamedTuple):
    """A number of buckets of a length, and the current one."""

    name: str  # on the page
    length: int  # minutes of a bucket
    buckets: int


RANGES = {
    "hour": Range("Hour", FINE, HOUR // FINE),
    "day": Range("Day", HOUR, 24),
    "week": Range("Week", DAY // 2, 14),
    "month": Range("30 days", DAY, 30),
}


class Ranges(msgspec.Struct, dict=True):  # for the cached property
    """Tallies by range and by bucket; the number of a bucket is its time divided by its length.

    A play is added to the current tally, which is added to a bucket of each range after five minutes.
    """

    number: int = 0  # of the current five minutes
    current: Tally = msgspec.field(default_factory=Tally)
    past: Tally = msgspec.field(default_factory=Tally)  # of all time before
    buckets: dict[str, dict[int, Tally]] = msgspec.field(
        default_factory=lambda: {name: {} for name in RANGES}
    )
    days: Days = msgspec.field(default_factory=Days)

    def at(self, time: int) -> Tally:
        """Return the current tally; a play with an earlier time is added to it as well."""
        number = time // (FINE * MINUTE)
        if number > self.number:
            self._close(number)
        return self.current

    def _close(self, number: int) -> None:
        self._closed.clear()
        self.past = self.past.merged(self.current)
        self.days.add(self.number * FINE * MINUTE, self.current)
        for name, buckets in self.buckets.items():
            at = self.number * FINE // RANGES[name].length
            buckets[at] = buckets[at].merged(self.current) if at in buckets else self.current
            first = _first(RANGES[name], number * FINE)
            self.buckets[name] = {at: tally for at, tally in buckets.items() if at >= first}
        self.number, self.current = number, Tally()

    def correct_clock(self, time: int) -> None:
        """Set the clock back; later plays are moved to this time."""
        number = time // (FINE * MINUTE)
        if number >= self.number:
            return
        self._close(number)
        self.days.correct_clock(time)
        self._closed.clear()
        for name, buckets in self.buckets.items():
            self.buckets[name] = truncate(buckets, number * FINE // RANGES[name].length)

    def total(self) -> Tally:
        return self.past.merged(self.current)

    def by_day(self) -> Days:
        """Return the sums of all days, the current one included."""
        days = Days(minutes=self.days.minutes, buckets=dict(self.days.buckets))
        days.add(self.number * FINE * MINUTE, self.current.merged(Tally()))
        return days

    def within(self, name: str, now: int) -> Tally:
        """Return the sums of a range that ends at a time, in milliseconds."""
        minutes = max(now // MINUTE, self.number * FINE)
        first = _first(RANGES[name], minutes)
        known = self._closed.get(name)
        if known is None or known[0] != first:
            total = Tally()
            for at, tally in self.buckets[name].items():
                if at >= first:
                    total = total.merged(tally)
            known = self._closed[name] = first, total
        _, closed = known
        is_current = self.number * FINE // RANGES[name].length >= first
        return closed.merged(self.current) if is_current else closed

    @cached_property
    def _closed(self) -> dict[str, tuple[int, Tally]]:
        """Return a cache: the first bucket of a range, and the sums of its buckets."""
        return {}


def _first(range: Range, minutes: int) -> int:
    return minutes // range.length - range.buckets
