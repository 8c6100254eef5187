"""Reward and traffic over time, in a bounded number of buckets."""

from rbmle.service.log.records import Play
from rbmle.service.statistics import Statistics
from rbmle.service.statistics.buckets import MINUTE
from rbmle.service.statistics.timeline import (
    ALL,
    MOST_BUCKETS,
    RATE_SECONDS,
    STEPS,
    WINDOW,
    Timeline,
)
from tests.service.statistics.samples import decided


def test_buckets_of_all_time_get_longer_when_time_does() -> None:
    timeline = Timeline()
    for minute in range(MOST_BUCKETS):
        timeline.at(minute * MINUTE).decided += 1
    assert (timeline.minutes, len(timeline.series()[ALL].buckets)) == (1, MOST_BUCKETS)
    timeline.at(MOST_BUCKETS * MINUTE).decided += 1
    timeline.at((MOST_BUCKETS + 1) * MINUTE).decided += 1
    found = timeline.series()[ALL]
    assert (found.minutes, len(found.buckets)) == (2, MOST_BUCKETS // 2 + 1)
    points = found.points()
    assert [point.decided for point in points] == [2] * (MOST_BUCKETS // 2 + 1)
    assert points[1].time == 2 * MINUTE


def test_idle_years_take_no_space_and_what_comes_late_counts_as_of_now() -> None:
    timeline = Timeline()
    year = 365 * 24 * 60 * MINUTE
    for time in (0, 10 * year, 3 * year):
        timeline.at(time).decided += 1
    assert [point.decided for point in timeline.series()[ALL].points()] == [1, 2]


def test_each_range_is_drawn_in_its_own_steps_however_long_the_whole_time_is() -> None:
    timeline, minutes = Timeline(), 12 * 24 * 60
    for minute in range(minutes):
        timeline.at(minute * MINUTE).decided += 1
    now, found = minutes * MINUTE, timeline.series()
    assert found[ALL].minutes == 128  # whose means over ten buckets are of 21 hours
    for name, (length, buckets) in STEPS.items():
        points = found[name].points(now - length * buckets * MINUTE, now)
        assert len(points) == min(buckets, minutes // length)
        assert {point.decided for point in points} == {length}
        assert len(timeline.recent[name]) <= buckets + WINDOW + 1


def test_decisions_are_counted_over_the_last_sixty_seconds() -> None:
    timeline = Timeline()
    for second in range(100):
        for _ in range(200):
            timeline.decide(second * 1000 + 500, plays=2)
    assert timeline.per_minute(100_000) == 60 * 200
    assert timeline.per_minute(130_999) == 30 * 200
    assert timeline.per_minute(10 * MINUTE) == 0
    assert len(timeline.seconds) <= RATE_SECONDS + 1


def test_points_have_means_where_something_tells_of_them() -> None:
    statistics = Statistics()
    apprentice = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0)
    online = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=1)
    statistics.settle(0, decided(apprentice), apprentice, 0.5, True)
    statistics.settle(WINDOW * MINUTE, decided(online), online, 1.0, True)
    first, second = statistics.summary().series[ALL].points()
    assert (first.played, first.baseline, first.uniform) == (0.5, 0.5, None)
    assert (second.played, second.baseline, second.uniform) == (1.0, None, 1.0)


def test_points_are_means_over_the_last_buckets() -> None:
    timeline = Timeline()
    for minute in range(WINDOW + 1):
        bucket = timeline.at(minute * MINUTE)
        bucket.settled += 1
        bucket.reward += float(minute)
    means = [point.played for point in timeline.series()[ALL].points()]
    assert means[:3] == [0.0, 0.5, 1.0]
    assert means[-1] == sum(range(1, WINDOW + 1)) / WINDOW


def test_what_a_clock_counted_that_ran_ahead_is_moved_to_the_corrected_time() -> None:
    timeline = Timeline()
    timeline.at(0).decided += 1
    timeline.at(3 * MINUTE).decided += 1
    timeline.at(2_000 * MINUTE).decided += 1
    timeline.correct_clock(3 * MINUTE)
    assert [point.decided for point in timeline.series()[ALL].points()] == [3]
