"""Whether less than the baseline is earned now, told so that looking often does not raise false alarms."""

import subprocess
import sys

import numpy as np
import pytest

from rbmle.service.log.records import Play
from rbmle.service.statistics.lift_intervals import ALL, STARTS, WindowLift, find_loss, window_lifts
from rbmle.service.statistics.summary import Statistics
from tests.service.statistics.samples import decided

MINUTE = 60_000


def test_windows_begin_2198_times_in_a_week() -> None:
    assert STARTS == 7 * 24 * 12 + 7 * 24 + 7 * 2


def test_few_plays_tell_nothing() -> None:
    statistics = Statistics()
    traffic(statistics, range(20), 0.5, 0.5, np.random.default_rng(0))
    assert window_lifts(statistics.summary(), statistics.summary().ranges) == []


def test_a_loss_of_the_last_hours_is_seen_within_a_long_gain() -> None:
    """The policy earns much more for ten days, and then 0.157 where the baseline earns 0.289."""
    statistics, rng = Statistics(), np.random.default_rng(0)
    traffic(statistics, range(10 * 1440), 0.6, 0.29, rng)
    found = lifts(statistics)
    assert found["day"].value == pytest.approx(0.8 * 0.31, abs=0.05)
    assert find_loss([*found.values()]) is None
    traffic(statistics, range(10 * 1440, 10 * 1440 + 300), 0.157, 0.289, rng, per_minute=40)
    found = lifts(statistics)
    assert found[ALL].low > 0
    loss = find_loss([*found.values()])
    assert loss is not None
    assert loss.window in ("hour", "day")
    assert loss.low < 0.8 * (0.157 - 0.289) < loss.high < 0


@pytest.mark.parametrize("seed", range(4))
def test_looking_each_minute_for_a_week_gives_no_false_alarm(seed: int) -> None:
    statistics, rng = Statistics(), np.random.default_rng(seed)
    for minute in range(0, 7 * 1440, 5):
        traffic(statistics, range(minute, minute + 1), 0.3, 0.3, rng, per_minute=3)
        if minute % 60 == 0:
            assert find_loss([*lifts(statistics).values()]) is None


def test_a_long_window_does_not_count_where_a_shorter_one_shows_that_the_loss_is_over() -> None:
    week = lift("week", -0.05, -0.08, -0.02, 0.01)
    assert find_loss([week]) is week
    over, unsure = lift("hour", 0.10, -0.1, 0.3, 0.02), lift("hour", 0.02, -0.4, 0.4, 0.09)
    assert find_loss([over, week]) is None
    assert find_loss([unsure, week]) is week
    assert find_loss([lift(ALL, -0.5, -0.6, -0.4, 0.01)]) is None


def lift(window: str, value: float, low: float, high: float, error: float) -> WindowLift:
    return WindowLift(
        window=window, plays=500, played=0.3 + value, baseline=0.3, low=low, high=high, error=error
    )


def lifts(statistics: Statistics) -> dict[str, WindowLift]:
    summary = statistics.summary()
    return {one.window: one for one in window_lifts(summary, summary.ranges)}


def traffic(
    statistics: Statistics,
    minutes: range,
    others: float,
    baseline: float,
    rng: np.random.Generator,
    per_minute: int = 1,
) -> None:
    """Count plays that show the baseline, action 0, with probability 1/5; each action has its mean reward."""
    for minute in minutes:
        for chosen in (rng.random(per_minute) < 0.8).astype(int).tolist():
            play = Play(eligible=[0, 1], probabilities=[0.2, 0.8], chosen=chosen)
            reward = float(rng.random() < (others if chosen else baseline))
            statistics.decide(minute * MINUTE, decided(play))
            statistics.settle(minute * MINUTE, decided(play), play, reward, True)


def test_scipy_is_imported_only_when_an_interval_is_near() -> None:
    program = (
        "import sys\n"
        "from rbmle.service.statistics import lift_intervals\n"
        "before = 'scipy.optimize' in sys.modules\n"
        "lift_intervals.import_scipy()\n"
        "print(before, 'scipy.optimize' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert output.stdout.split() == [b"False", b"True"]
