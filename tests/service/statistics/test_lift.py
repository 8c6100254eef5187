"""Lifts over another policy: their sums, and intervals that hold at all times at once."""

import math

import msgspec
import numpy as np
import pytest

from rbmle.evaluation.sequences import boundary
from rbmle.service.statistics.estimates import Weight
from rbmle.service.statistics.lift import MOST_WEIGHT, PRIOR, LiftSums, Means, RewardSums
from rbmle.service.statistics.lift_intervals import SCALES, lift_of, lower_bound, reward_interval


def test_two_plays_by_hand() -> None:
    sums, means = LiftSums(), Means()
    sums.add(Weight(2.0, 2.0), 1.0, means)  # m = q = 0
    assert sums == LiftSums(plays=1, reward=1, other=2, rr=1, rb=2, bb=4, above=2, below=2)
    sums.add(Weight(0.0, 4.0), 0.5, means)
    m = 1 / (1 + PRIOR)
    q = (2 + PRIOR * 4 * m) / (2 + PRIOR * 4)
    assert sums.other == pytest.approx(2 + q)
    assert sums.rr == pytest.approx(1 + (0.5 - m) ** 2)
    assert (sums.rb, sums.bb) == (2, 4)
    assert (sums.above, sums.below) == pytest.approx((4 * (1 - q), 4 * (1 + q)))


def test_plays_that_cannot_be_bounded_are_left_out() -> None:
    sums, means = LiftSums(), Means()
    sums.add(None, 1.0, means)
    sums.add(Weight(0.0, 2 * MOST_WEIGHT), 1.0, means)
    sums.add(Weight(1.0, 1.0), 1.5, means)
    assert sums == LiftSums(unlikely=2, beyond=1)
    assert means == Means()
    assert lift_of(sums) is None
    assert SCALES[-1] >= 2 * MOST_WEIGHT


def test_sums_of_parts_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    parts, whole = [LiftSums(), LiftSums()], LiftSums()
    means, same = Means(), Means()
    for number in range(100):
        weight, reward = Weight(float(4 * (rng.random() < 0.25)), 4.0), float(rng.random())
        parts[number // 50].add(weight, reward, means)
        whole.add(weight, reward, same)
    merged = parts[0].merged(parts[1])
    for found, expected in zip(
        msgspec.structs.astuple(merged), msgspec.structs.astuple(whole), strict=True
    ):
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_relative_lift_ends_where_the_difference_is_not_sure() -> None:
    sums = simulated(20_000, 0.25, 0.6, 0.3, seed=1)
    found = lift_of(sums)
    assert found is not None
    assert found.is_relative
    grid = np.linspace(0.0, 3.0, 3_001)
    sure = [lower_bound(sums, 1.0, -(1 + ratio), 0.025) > 0 for ratio in grid]
    assert found.low == pytest.approx(grid[sure.index(False)], abs=2e-3)
    sure = [lower_bound(sums, -1.0, 1 + ratio, 0.025) > 0 for ratio in grid]
    assert found.high == pytest.approx(grid[sure.index(True)], abs=2e-3)
    assert found.low < found.value < found.high


def test_a_lift_that_may_be_very_large_is_a_difference() -> None:
    found = lift_of(simulated(5_000, 0.5, 0.9, 0.01, seed=0))
    assert found is not None
    assert not found.is_relative
    assert 0 < found.low < 0.5 * (0.9 - 0.01) < found.high < 2


def test_a_bound_is_the_mean_less_the_boundary() -> None:
    sums = RewardSums()
    for number in range(400):
        sums.add(float(number % 4 == 0))
    low, high = reward_interval(sums) or (math.nan, math.nan)
    width = boundary(sums.squares, 0.025, 2.0) / 400
    assert 0.25 - low == pytest.approx(width, rel=0.01)
    assert high - 0.25 == pytest.approx(width, rel=0.01)
    assert 0.25 - low >= width  # squares are rounded up


@pytest.mark.parametrize("chance", [0.5, 0.05])
def test_intervals_cover_the_truth_at_all_times_at_once(chance: float) -> None:
    misses = 0
    for seed in range(60):
        sums, means = LiftSums(), Means()
        rng = np.random.default_rng(seed)
        is_missed = False
        for number in range(1_500):
            play(sums, means, chance, 0.5, 0.3, rng)
            if number % 100 == 99:
                low = lower_bound(sums, 1.0, -1.0, 0.025)
                high = -lower_bound(sums, -1.0, 1.0, 0.025)
                truth = (1 - chance) * (0.5 - 0.3)
                is_missed |= not low <= truth <= high
        misses += is_missed
    assert misses <= 3  # of 60; 5 % would be 3


def test_an_interval_shrinks_to_the_truth() -> None:
    widths = []
    for n in (1_000, 10_000, 40_000):
        found = lift_of(simulated(n, 0.5, 0.5, 0.25, seed=3))
        assert found is not None
        widths.append(found.high - found.low)
        assert found.low < 0.5 * (0.5 - 0.25) / 0.25 < found.high
    assert widths[0] > 2 * widths[1] > 3 * widths[2]


def test_equal_rewards_are_no_lift() -> None:
    found = lift_of(simulated(20_000, 0.5, 1.0, 1.0, seed=0))
    assert found is not None
    assert found.value == pytest.approx(0.0, abs=0.02)
    assert found.low < 0 < found.high


def simulated(n: int, chance: float, pays: float, baseline: float, seed: int) -> LiftSums:
    """Return sums of plays that show the baseline with a chance, and else something that pays more."""
    sums, means, rng = LiftSums(), Means(), np.random.default_rng(seed)
    for _ in range(n):
        play(sums, means, chance, pays, baseline, rng)
    return sums


def play(
    sums: LiftSums,
    means: Means,
    chance: float,
    pays: float,
    baseline: float,
    rng: np.random.Generator,
) -> None:
    is_baseline = rng.random() < chance
    reward = float(rng.random() < (baseline if is_baseline else pays))
    sums.add(Weight(is_baseline / chance, 1 / chance), reward, means)
