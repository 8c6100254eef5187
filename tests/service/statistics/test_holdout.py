"""The lift over the holdout: its sums by hand, and its interval against the truth."""

import math

import numpy as np
import pytest

from rbmle.evaluation.sequences import boundary
from rbmle.service.log.records import CELLS, Assignment, Play
from rbmle.service.statistics.lift import PRIOR, ArmSums, HoldoutSums
from rbmle.service.statistics.lift_intervals import STEP, holdout_lift
from rbmle.service.statistics.summary import Statistics
from tests.service.statistics.samples import decided

TAIL = 0.025


def test_sums_of_an_arm_by_hand() -> None:
    arm = ArmSums()
    for cell, reward in ((0, 1.0), (0, 1.0), (1, 0.0)):
        arm.add(cell, reward)
    arm.add(1, 1.5)
    assert (arm.plays, arm.beyond, arm.reward, arm.cells) == (3, 1, 2.0, 2)
    first, second, third = 0.0, 1 / (1 + PRIOR), 2 / (2 + PRIOR)
    squares = (1 - first) ** 2 + (1 - second) ** 2 + third**2
    assert arm.squares == pytest.approx(squares)
    # m = 2/3: the cells have 2 − 4/3 and 0 − 2/3, whose squares sum to 8/9, times 2/(2 − 1)
    assert arm.variance == pytest.approx(max(squares, 16 / 9))


def test_the_interval_by_hand() -> None:
    sums = filled(policy=(4_000, 0.5), held=(1_000, 0.4))
    lift = holdout_lift(sums)
    assert lift is not None
    assert lift.difference.value == pytest.approx(0.1)
    squares = (1 / 4) ** 2 * sums.policy.variance + sums.held.variance
    width = boundary(squares, TAIL, 2.0) / 1_000
    assert 0.1 - lift.difference.low == pytest.approx(width, rel=STEP - 1)
    assert lift.difference.high - 0.1 == pytest.approx(width, rel=STEP - 1)
    assert lift.relative is not None
    assert lift.relative.value == pytest.approx(0.25)
    assert lift.relative.low < 0 < lift.relative.high
    assert lift.lift is lift.relative


def test_there_is_no_lift_without_enough_units_or_with_rewards_out_of_range() -> None:
    assert holdout_lift(HoldoutSums()) is None
    few = HoldoutSums(share=0.1, play="baseline")
    for number in range(1_000):
        few.add(assignment(cell=number % CELLS), 1.0)
        few.add(assignment(cell=number % 3, is_held=True), 1.0)
    assert holdout_lift(few) is None
    wide = filled(policy=(4_000, 0.5), held=(1_000, 0.4))
    wide.add(assignment(cell=0), 2.0)
    assert holdout_lift(wide) is None


def test_plays_that_depend_on_their_unit_make_the_interval_wider() -> None:
    rng = np.random.default_rng(0)
    alone, together = (
        HoldoutSums(share=0.1, play="baseline"),
        HoldoutSums(share=0.1, play="baseline"),
    )
    for cell in rng.integers(CELLS, size=300).tolist():
        reward = float(rng.random() < 0.5)
        for is_held in (False, True):
            for _ in range(20):
                together.add(assignment(cell=cell, is_held=is_held), reward)
                fresh = assignment(cell=int(rng.integers(CELLS)), is_held=is_held)
                alone.add(fresh, float(rng.random() < 0.5))
    widths = []
    for sums in (alone, together):
        lift = holdout_lift(sums)
        assert lift is not None
        widths.append(lift.difference.high - lift.difference.low)
    assert widths[1] > 3 * widths[0]  # √20 at most


@pytest.mark.parametrize(("units", "spread"), [(0, 0.0), (300, 0.15)])
def test_the_interval_has_the_truth_at_all_times(units: int, spread: float) -> None:
    missed = 0
    for run in range(60):
        rng = np.random.default_rng(run)
        n = units or 3_000
        held, cells = rng.random(n) < 0.2, rng.integers(CELLS, size=n)
        chances = np.clip(0.3 + spread * rng.normal(size=n), 0.05, 0.9)
        sums, is_missed = HoldoutSums(share=0.2, play="baseline"), False
        for number in range(3_000):
            who = int(rng.integers(units)) if units else number
            reward = float(rng.random() < chances[who] + 0.05 * (not held[who]))
            sums.add(assignment(cell=int(cells[who]), is_held=bool(held[who])), reward)
            if number % 300 == 299 and (lift := holdout_lift(sums)) is not None:
                is_missed |= not lift.difference.low <= 0.05 <= lift.difference.high
        missed += is_missed
    assert missed <= 3  # 5 % of 60


def test_statistics_begin_again_with_another_holdout_and_keep_it_apart() -> None:
    statistics = Statistics()
    play = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0)
    first, second = assignment(cell=1, is_held=True), assignment(cell=1, is_held=True, share=0.2)
    for given in (first, second):
        event = decided(play, assignment=given)
        statistics.decide(0, event)
        statistics.settle(0, event, play, 1.0, True)
    statistics.settle(0, decided(play, assignment=first), play, 1.0, True)  # a late one
    statistics.settle(0, decided(play), play, 1.0, True)
    assert (statistics.holdout.share, statistics.holdout.held.plays) == (0.2, 1)
    earned = statistics.summary()
    assert earned.settled == 4
    assert earned.over_baseline.plays == 1  # the holdout is not the policy
    assert math.isclose(earned.policy.coverage, 1 / 4)


def assignment(*, cell: int, is_held: bool = False, share: float = 0.1) -> Assignment:
    return Assignment(share=share, unit=f"{cell:016x}", is_held=is_held)


def filled(policy: tuple[int, float], held: tuple[int, float]) -> HoldoutSums:
    """Return sums of so many plays with so large a mean, each of another unit."""
    sums = HoldoutSums(share=0.1, play="baseline")
    for is_held, (plays, mean) in ((False, policy), (True, held)):
        for number in range(plays):
            reward = float(int((number + 1) * mean) > int(number * mean))
            sums.add(assignment(cell=number % CELLS, is_held=is_held), reward)
    return sums
