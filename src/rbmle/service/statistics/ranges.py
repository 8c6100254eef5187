"""The same sums over the last hour, day, week and month, and over all time, in bounded space."""

from functools import cached_property
from typing import NamedTuple

import msgspec

from rbmle.service.statistics.buckets import MINUTE, up_to
from rbmle.service.statistics.days import DAY, Days
from rbmle.service.statistics.tally import Tally

FINE = 5  # minutes of the stretch that plays are counted in; all others are made of it
HOUR = 60  # minutes


class Range(NamedTuple):
    """So many buckets of a length, and the one that is not over."""

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
    """Tallies of what was counted, by range and by bucket, where a bucket is its time over its length.

    A play is added to one tally, and that one, when its five minutes are over, to the bucket of each range.
    """

    number: int = 0  # of the five minutes that are not over
    current: Tally = msgspec.field(default_factory=Tally)
    past: Tally = msgspec.field(default_factory=Tally)  # of all time before
    buckets: dict[str, dict[int, Tally]] = msgspec.field(
        default_factory=lambda: {name: {} for name in RANGES}
    )
    days: Days = msgspec.field(default_factory=Days)

    def at(self, time: int) -> Tally:
        """Return the tally to add to; what comes late is added to the newest."""
        number = time // (FINE * MINUTE)
        if number > self.number:
            self._close(number)
        return self.current

    def _close(self, number: int) -> None:
        """Add the current tally to all that it is a part of, and begin another."""
        self._closed.clear()
        self.past = self.past.merged(self.current)
        self.days.add(self.number * FINE * MINUTE, self.current)
        for name, found in self.buckets.items():
            bucket = self.number * FINE // RANGES[name].length
            found[bucket] = found[bucket].merged(self.current) if bucket in found else self.current
            first = _first(RANGES[name], number * FINE)
            self.buckets[name] = {at: tally for at, tally in found.items() if at >= first}
        self.number, self.current = number, Tally()

    def correct_clock(self, time: int) -> None:
        """Go back to a time, to which all that was counted after it is moved."""
        number = time // (FINE * MINUTE)
        if number >= self.number:
            return
        self._close(number)
        self.days.correct_clock(time)
        self._closed.clear()
        for name, found in self.buckets.items():
            self.buckets[name] = up_to(found, number * FINE // RANGES[name].length)

    def total(self) -> Tally:
        """Return the sums of all time."""
        return self.past.merged(self.current)

    def by_day(self) -> Days:
        """Return the sums of all days, the one that is not over among them."""
        found = Days(minutes=self.days.minutes, buckets=dict(self.days.buckets))
        found.add(self.number * FINE * MINUTE, self.current.merged(Tally()))
        return found

    def within(self, name: str, now: int) -> Tally:
        """Return the sums of a range that ends at a time, in milliseconds."""
        minutes = max(now // MINUTE, self.number * FINE)
        first = _first(RANGES[name], minutes)
        known = self._closed.get(name)
        if known is None or known[0] != first:
            found = Tally()
            for at, tally in self.buckets[name].items():
                if at >= first:
                    found = found.merged(tally)
            known = self._closed[name] = first, found
        _, closed = known
        is_current = self.number * FINE // RANGES[name].length >= first
        return closed.merged(self.current) if is_current else closed

    @cached_property
    def _closed(self) -> dict[str, tuple[int, Tally]]:
        """Return the first bucket of each range and the sums of its buckets, where they are known."""
        return {}


def _first(range: Range, minutes: int) -> int:
    """Return the first bucket of a range that ends at a time."""
    return minutes // range.length - range.buckets
