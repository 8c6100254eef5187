"""Any range of dates."""

import msgspec
import numpy as np

from rbmle.service.statistics.buckets import MINUTE
from rbmle.service.statistics.days import DAY, MOST_DAYS, Days
from rbmle.service.statistics.ranges import Ranges

ONE = DAY * MINUTE  # milliseconds


def test_a_range_of_days_holds_what_was_counted_in_it() -> None:
    rng = np.random.default_rng(0)
    minutes = np.sort(rng.integers(20_000 * DAY, 20_060 * DAY, 3_000))
    ranges = Ranges()
    for minute in minutes.tolist():
        ranges.at(minute * MINUTE).decisions += 1
    days = ranges.by_day()
    assert days.minutes == DAY
    for first, last in ((20_000, 20_059), (20_003, 20_003), (20_010, 20_050), (20_061, 20_070)):
        found = days.within(first * ONE, (last + 1) * ONE)
        expected = ((first * DAY <= minutes) & (minutes < (last + 1) * DAY)).sum()
        assert found.tally.decisions == expected
        assert (found.start, found.end) == (first * ONE, (last + 1) * ONE)
    assert ranges.by_day() == days  # to look changes nothing


def test_a_long_time_needs_bounded_space_and_is_told_in_longer_steps() -> None:
    ranges = Ranges()
    for day in range(20_000, 21_000):
        ranges.at(day * ONE).decisions += 1
    days = ranges.by_day()
    assert days.minutes == 16 * DAY
    assert len(days.buckets) <= MOST_DAYS
    found = days.within(20_500 * ONE, 20_501 * ONE)
    assert (found.tally.decisions, found.end - found.start) == (16, 16 * ONE)
    assert found.start <= 20_500 * ONE < found.end
    assert days.within(0, 30_000 * ONE).tally.decisions == 1_000
    assert msgspec.json.decode(msgspec.json.encode(days), type=Days) == days
