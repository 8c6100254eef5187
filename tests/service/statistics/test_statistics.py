"""What the service earned and what others would have, by numbers that a hand can check."""

import math
from collections.abc import Sequence

import msgspec
import pytest

from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play
from rbmle.service.statistics import BINS, MOST_ACTIONS, Statistics, StatisticsSummary
from rbmle.service.statistics.estimates import FEWEST, NORMAL_95, Sums
from rbmle.service.statistics.timeline import MINUTE, MOST_BUCKETS, WINDOW, Timeline
from rbmle.service.statistics.traffic import COUNTERS, Traffic


def test_ips_is_the_mean_of_weighted_rewards_with_their_standard_error() -> None:
    sums = sums_of([(2.0, 1.0), (0.0, 1.0)] * 50)
    found = sums.ips()
    # 100 terms, half of them 2 and half 0: mean 1, Σ (w r − 1)² = 100, s² = 100 / (100 · 99)
    assert found.value == 1.0
    assert found.low == pytest.approx(1 - NORMAL_95 / math.sqrt(99), abs=1e-12)
    assert found.high == pytest.approx(1 + NORMAL_95 / math.sqrt(99), abs=1e-12)


def test_snips_divides_by_the_weights_and_has_the_interval_of_the_delta_method() -> None:
    sums = sums_of([(2.0, 1.0), (2.0, 0.0), (0.0, 1.0)] * 40)
    found = sums.snips()
    # 80 plays of weight 2, half of them paid: V = ½, Σ w² (r − ½)² = 80 · 4 · ¼ = 80, (Σ w)² = 160²
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - NORMAL_95 * math.sqrt(80) / 160, abs=1e-12)
    assert found.high == pytest.approx(0.5 + NORMAL_95 * math.sqrt(80) / 160, abs=1e-12)


def test_snips_stays_between_the_rewards_where_ips_does_not() -> None:
    sums = sums_of([(10.0, 1.0)])
    assert sums.ips().value == 10.0
    assert sums.snips().value == 1.0


def test_plays_are_worth_fewer_when_their_weights_differ() -> None:
    assert sums_of([(1.0, 0.0)] * 8).effective == 8
    assert sums_of([(4.0, 0.0)] + [(0.0, 0.0)] * 7).effective == 1
    assert Sums().effective == 0


def test_few_plays_have_an_estimate_and_no_interval() -> None:
    few = [(1.0, 1.0), (1.0, 0.0)] * (FEWEST // 2 - 1)
    for found in (sums_of(few).ips(), sums_of(few).snips()):
        assert found.value == 0.5
        assert not found.has_interval
        assert "too few" in found.problem
    assert sums_of([*few, (1.0, 1.0), (1.0, 0.0)]).ips().has_interval


@pytest.mark.parametrize("reward", [0.0, 0.1, -0.3, 1.0])
def test_equal_rewards_do_not_pretend_to_be_certain(reward: float) -> None:
    found = sums_of([(1.0, reward)] * 1000).snips()
    assert found.value == pytest.approx(reward, abs=1e-12)
    assert not found.has_interval
    assert "equal" in found.problem


def test_what_had_no_chance_is_not_estimated() -> None:
    sums = sums_of([(None, 1.0)] * 100)
    for found in (sums.ips(), sums.snips()):
        assert found.value is None
        assert "no chance" in found.problem
    assert sums.coverage == 0.0


def test_without_rewards_nothing_is_estimated() -> None:
    assert Sums().ips().problem == Sums().snips().problem == "no reward yet"
    unseen = sums_of([(0.0, 1.0)])
    assert unseen.ips() == unseen.snips()
    assert unseen.ips().problem == "it was not chosen yet"


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


def test_buckets_get_longer_when_time_does() -> None:
    timeline = Timeline()
    for minute in range(MOST_BUCKETS):
        timeline.at(minute * MINUTE).decided += 1
    assert (timeline.minutes, len(timeline.buckets)) == (1, MOST_BUCKETS)
    timeline.at(MOST_BUCKETS * MINUTE).decided += 1
    assert (timeline.minutes, len(timeline.buckets)) == (2, MOST_BUCKETS // 2 + 1)
    points = timeline.points()
    assert [point.decided for point in points] == [2] * (MOST_BUCKETS // 2) + [1]
    assert points[1].time == 2 * MINUTE


def test_idle_years_take_no_space_and_times_may_go_back() -> None:
    timeline = Timeline()
    year = 365 * 24 * 60 * MINUTE
    for time in (10 * year, 0, 3 * year, 3 * year + 1):
        timeline.at(time).decided += 1
    assert [point.decided for point in timeline.points()] == [1, 2, 1]


def test_points_have_means_where_something_tells_of_them() -> None:
    statistics = Statistics()
    apprentice = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0)
    online = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=1)
    statistics.settle(0, decided(apprentice), apprentice, 0.5, True)
    statistics.settle(WINDOW * MINUTE, decided(online), online, 1.0, True)
    first, second = statistics.summary().points
    assert (first.played, first.baseline, first.uniform) == (0.5, 0.5, None)
    assert (second.played, second.baseline, second.uniform) == (1.0, None, 1.0)


def test_points_are_means_over_the_last_buckets() -> None:
    timeline = Timeline()
    for minute in range(WINDOW + 1):
        bucket = timeline.at(minute * MINUTE)
        bucket.settled += 1
        bucket.reward += float(minute)
    means = [point.played for point in timeline.points()]
    assert means[:3] == [0.0, 0.5, 1.0]
    assert means[-1] == sum(range(1, WINDOW + 1)) / WINDOW


def test_frequent_actions_are_found_among_any_number() -> None:
    traffic = Traffic()
    for number in range(20_000):
        traffic.add("often" if number % 10 == 0 else f"rare {number}")
    often = traffic.counters["often"]
    assert often.count - often.excess <= 2_000 <= often.count
    assert len(traffic.counters) == COUNTERS
    assert sum(counter.count for counter in traffic.counters.values()) == traffic.total == 20_000


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
    assert len(text) < 100_000
    feed(statistics, range(100_000, 101_000))
    feed(again, range(100_000, 101_000))
    assert msgspec.json.encode(again) == msgspec.json.encode(statistics)


def test_a_summary_does_not_change_any_more() -> None:
    statistics = Statistics()
    assert statistics.summary() == StatisticsSummary(propensities=[0] * BINS)
    feed(statistics, range(10))
    before = statistics.summary()
    text = msgspec.json.encode(before)
    feed(statistics, range(10, 20))
    assert msgspec.json.encode(before) == text
    assert msgspec.json.decode(text, type=StatisticsSummary) == before


def sums_of(plays: Sequence[tuple[float | None, float]]) -> Sums:
    sums = Sums()
    for weight, reward in plays:
        sums.add(weight, reward)
    return sums


def decided(*plays: Play) -> Decided:
    return Decided(
        context=NO_FEATURES,
        actions=[OfferedAction(id=id) for id in "abcd"],
        plays=list(plays),
        digest="",
        learned=0,
    )


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
