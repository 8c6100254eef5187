"""What the service has earned, and what others would have."""

import msgspec
import pytest

from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play
from rbmle.service.statistics.ranges import MINUTE
from rbmle.service.statistics.summary import (
    ALL,
    MOST_BUCKETS,
    RATE_SECONDS,
    STEPS,
    WINDOW,
    Statistics,
    StatisticsSummary,
    Timeline,
)
from rbmle.service.statistics.tally import BINS, MOST_ACTIONS
from tests.service.statistics.samples import decided


def test_each_target_has_its_weights() -> None:
    statistics = Statistics()
    play = Play(eligible=[0, 1, 3], probabilities=[0.2, 0.7, 0.1], chosen=0)
    settle(statistics, play, 1.0)
    settle(statistics, msgspec.structs.replace(play, chosen=1), 0.0)
    summary = statistics.summary()
    assert summary.played.ips.value == 0.5
    assert summary.policy.ips.value == 0.5  # it is what was played
    assert summary.policy_baseline == summary.baseline
    assert summary.baseline.ips.value == pytest.approx((1 / 0.2) / 2, abs=1e-12)
    assert summary.baseline.snips.value == 1.0
    assert summary.uniform.ips.value == pytest.approx((1 / 3 / 0.2) / 2, abs=1e-12)
    w, v = 1 / 3 / 0.2, 1 / 3 / 0.7
    assert summary.uniform.snips.value == pytest.approx(w / (w + v), abs=1e-12)


def test_apprentice_plays_tell_of_the_baseline_alone() -> None:
    statistics = Statistics()
    for preferred in (0, 0, 0, 2):
        play = Play(
            eligible=[0, 1, 2], probabilities=[1.0, 0.0, 0.0], chosen=0, preferred=preferred
        )
        decide(statistics, play)
        settle(statistics, play, 0.25)
    summary = statistics.summary()
    assert summary.agreement == 0.75
    assert summary.baseline.ips.value == 0.25
    assert summary.uniform.ips.value is None
    assert "no chance" in summary.uniform.ips.problem
    assert summary.policy.coverage == 0.0
    assert summary.exploration_rate == 0.0


def test_the_policy_is_compared_in_the_plays_that_it_decided() -> None:
    statistics = Statistics()
    settle(statistics, Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0, preferred=0), 0.0)
    settle(statistics, Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=0), 0.8)
    summary = statistics.summary()
    assert summary.policy.coverage == summary.policy_baseline.coverage == 0.5
    assert summary.policy.snips.value == summary.policy_baseline.snips.value == 0.8
    assert summary.baseline.snips.value == pytest.approx(1.6 / 3, abs=1e-12)


def test_a_baseline_that_was_excluded_is_not_estimated() -> None:
    statistics = Statistics()
    settle(statistics, Play(eligible=[1, 2], probabilities=[0.5, 0.5], chosen=1, baseline=0), 1.0)
    assert statistics.summary().baseline.coverage == 0.0
    assert statistics.summary().uniform.coverage == 1.0


def test_estimates_are_near_the_truth_of_a_simulated_log() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    pays, probabilities = [0.2, 0.6, 0.4], [0.25, 0.5, 0.25]
    statistics = Statistics()
    for chosen in rng.choice(3, size=5_000, p=probabilities):
        play = Play(eligible=[0, 1, 2], probabilities=probabilities, chosen=int(chosen))
        settle(statistics, play, float(rng.random() < pays[chosen]))
    summary = statistics.summary()
    for found, truth in (
        (summary.played, 0.45),
        (summary.baseline, 0.2),
        (summary.uniform, 0.4),
    ):
        for estimate in (found.ips, found.snips):
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low < truth < estimate.high
            assert estimate.high - estimate.low < 0.1


def test_every_slot_counts() -> None:
    statistics = Statistics()
    plays = [
        Play(eligible=[0, 1], probabilities=[0.9, 0.1], chosen=1, slot="top"),
        Play(eligible=[0, 2], probabilities=[0.5, 0.5], chosen=2, slot="side"),
    ]
    statistics.decide(0, decided(*plays))
    summary = statistics.summary()
    assert (summary.decisions, summary.plays) == (1, 2)
    assert summary.exploration_rate == 0.5  # of equal probabilities none is the smaller
    assert [(action.id, action.count) for action in summary.actions] == [("b", 1), ("c", 1)]


def test_propensities_fall_into_twenty_bins_closed_above() -> None:
    statistics = Statistics()
    for probability in (0.001, 0.05, 0.051, 0.1, 0.95, 0.951, 1.0):
        decide(
            statistics,
            Play(eligible=[0, 1], probabilities=[probability, 1 - probability], chosen=0),
        )
    found = statistics.summary().propensities
    assert found == [2, 2, *[0] * (BINS - 6), 0, 0, 1, 2]


def test_joined_rewards_are_told_from_defaults() -> None:
    statistics = Statistics()
    play = Play(eligible=[0], probabilities=[1.0], chosen=0)
    statistics.settle(0, decided(play), play, 1.0, True)
    statistics.settle(0, decided(play), play, 0.0, False)
    assert (statistics.summary().settled, statistics.summary().joined) == (2, 1)


def test_a_few_actions_are_counted_exactly_and_the_rest_together() -> None:
    statistics = Statistics()
    for number in range(MOST_ACTIONS + 5):
        play = Play(eligible=[0], probabilities=[1.0], chosen=0)
        one = Decided(
            context=NO_FEATURES,
            actions=[OfferedAction(id=f"{number:03}")],
            plays=[play],
            digest="",
            learned=0,
        )
        for _ in range(2 if number < 3 else 1):
            statistics.decide(0, one)
    summary = statistics.summary()
    assert [action.count for action in summary.actions] == [2, 2, 2] + [1] * (MOST_ACTIONS - 3)
    assert all(action.excess == 0 for action in summary.actions)
    assert summary.others == 5


def test_many_events_leave_a_bounded_state_that_comes_back_equal_and_goes_on_equally() -> None:
    statistics = Statistics()
    feed(statistics, range(100_000))
    text = msgspec.json.encode(statistics)
    again = msgspec.json.decode(text, type=Statistics)
    assert again == statistics
    assert msgspec.json.encode(again) == text
    assert len(text) < 300_000  # 42 buckets of at most 64 actions, and 256 actions of all time
    feed(statistics, range(100_000, 101_000))
    feed(again, range(100_000, 101_000))
    assert msgspec.json.encode(again) == msgspec.json.encode(statistics)


def test_a_summary_does_not_change_any_more() -> None:
    statistics = Statistics()
    assert statistics.summary() == StatisticsSummary()
    feed(statistics, range(10))
    before = statistics.summary()
    text = msgspec.json.encode(before)
    feed(statistics, range(10, 20))
    assert msgspec.json.encode(before) == text
    assert msgspec.json.decode(text, type=StatisticsSummary) == before


def decide(statistics: Statistics, play: Play) -> None:
    statistics.decide(0, decided(play))


def settle(statistics: Statistics, play: Play, reward: float) -> None:
    statistics.settle(0, decided(play), play, reward, True)


def feed(statistics: Statistics, numbers: range) -> None:
    """Count decisions of ever new actions, one each second."""
    for number in numbers:
        play = Play(eligible=[0, 1], probabilities=[0.3, 0.7], chosen=number % 2)
        one = Decided(
            context=NO_FEATURES,
            actions=[OfferedAction(id=f"new {number}"), OfferedAction(id=f"known {number % 40}")],
            plays=[play],
            digest="",
            learned=0,
        )
        statistics.decide(number * 1000, one)
        statistics.settle(number * 1000 + 500, one, play, (number % 7) / 7, True)


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
