"""The same sums day by day, for any range of dates, in bounded space."""

from typing import NamedTuple

import msgspec

from rbmle.service.statistics.buckets import MINUTE, fitted, up_to
from rbmle.service.statistics.tally import Tally

DAY = 24 * 60  # minutes
MOST_DAYS = 100


class DaysCounted(NamedTuple):
    """The sums of some days, which begin and end at times in milliseconds."""

    tally: Tally
    start: int
    end: int


class Days(msgspec.Struct):
    """Tallies of one day each, in UTC, and of 2, 4, 8, … days when there would be too many."""

    minutes: int = DAY  # the length of a bucket
    buckets: dict[int, Tally] = msgspec.field(default_factory=dict)

    def add(self, time: int, tally: Tally) -> None:
        """Count what was counted at a time."""
        if tally == Tally():  # a day without anything would only make others longer
            return
        self.buckets, self.minutes = fitted(self.buckets, self.minutes, time, MOST_DAYS)
        number = time // self._length
        known = self.buckets.get(number)
        self.buckets[number] = tally if known is None else known.merged(tally)

    def correct_clock(self, time: int) -> None:
        """Move what was counted after a time to that time."""
        self.buckets = up_to(self.buckets, time // self._length)

    def within(self, start: int, end: int) -> DaysCounted:
        """Return the sums of all buckets that have a part of a time, and what time they are of."""
        first, last = start // self._length, (end - 1) // self._length
        found = Tally()
        for number, tally in self.buckets.items():
            if first <= number <= last:
                found = found.merged(tally)
        return DaysCounted(found, first * self._length, (last + 1) * self._length)

    @property
    def _length(self) -> int:
        return self.minutes * MINUTE
