"""The last hour, day, week and month."""

import msgspec
import numpy as np

from rbmle.service.statistics.ranges import DAY, FINE, MINUTE, MOST_DAYS, RANGES, Days, Ranges

WEEKS = 6 * 7 * 24 * 60  # minutes

ONE = DAY * MINUTE  # milliseconds


def test_a_range_holds_what_was_counted_in_it() -> None:
    rng = np.random.default_rng(0)
    minutes = np.sort(rng.integers(0, WEEKS, 3_000)).tolist()
    ranges = Ranges()
    for seen, minute in enumerate(minutes):
        ranges.at(minute * MINUTE).decisions += 1
        if seen % 100 != 99:
            continue
        for name, (_, length, buckets) in RANGES.items():
            first = (minute // length - buckets) * length
            expected = sum(first <= one for one in minutes[: seen + 1])
            assert ranges.within(name, minute * MINUTE).decisions == expected
        assert ranges.total().decisions == seen + 1


def test_idle_time_ends_a_range() -> None:
    ranges = Ranges()
    ranges.at(0).decisions += 1
    assert ranges.within("hour", 64 * MINUTE).decisions == 1
    assert ranges.within("hour", 65 * MINUTE).decisions == 0
    assert ranges.within("day", 65 * MINUTE).decisions == 1
    assert ranges.total().decisions == 1


def test_what_comes_late_counts_as_of_now() -> None:
    ranges = Ranges()
    ranges.at(100 * MINUTE).decisions += 1
    ranges.at(3 * MINUTE).decisions += 1
    assert ranges.within("hour", 100 * MINUTE).decisions == 2


def test_any_time_needs_bounded_space_and_comes_back_equal() -> None:
    ranges = Ranges()
    for minute in range(0, WEEKS, FINE):
        ranges.at(minute * MINUTE).decisions += 1
    assert {name: len(found) for name, found in ranges.buckets.items()} == {
        name: buckets + (length > FINE) for name, (_, length, buckets) in RANGES.items()
    }
    text = msgspec.json.encode(ranges)
    assert len(text) < 100_000
    assert msgspec.json.decode(text, type=Ranges) == ranges


def test_what_a_clock_counted_that_ran_ahead_is_moved_to_the_corrected_time() -> None:
    ranges, now, ahead = Ranges(), 10_000 * 60 * MINUTE, 10_048 * 60 * MINUTE
    ranges.at(now).decisions += 1
    ranges.at(ahead).decisions += 1
    ranges.correct_clock(now)
    ranges.at(now + MINUTE).decisions += 1
    for name in ("week", "month"):  # the jump has ended the hour and the day
        assert ranges.within(name, now + MINUTE).decisions == 3
    assert ranges.within("hour", now + MINUTE).decisions == 2
    assert ranges.within("hour", now + 70 * MINUTE).decisions == 0
    assert ranges.total().decisions == 3
    (day,) = ranges.by_day().buckets.values()
    assert day.decisions == 3


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
