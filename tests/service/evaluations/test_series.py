"""What a policy would have earned over time."""

import numpy as np

from rbmle.service.evaluations.series import LENGTHS, MOST_WINDOWS, Series
from rbmle.service.statistics.buckets import MINUTE

YEAR = 365 * 24 * 60  # minutes


def test_windows_become_longer_and_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(0, YEAR * MINUTE, 5_000)
    weights, rewards = rng.integers(0, 4, 5_000).astype(float), rng.integers(0, 2, 5_000) * 1.0
    many, single = Series(), Series()
    for part in np.split(np.arange(5_000), 10):
        many.add_all(times[part], weights[part], rewards[part])
    for time, weight, reward in zip(times.tolist(), weights, rewards, strict=True):
        single.at(time).add(float(weight), float(reward))
    assert many.windows == single.windows
    assert many.minutes == 4 * LENGTHS[-1]  # 92 windows of four days
    assert len(many.windows) <= MOST_WINDOWS
    for number, sums in many.windows.items():
        here = times // (many.minutes * MINUTE) == number
        assert sums.plays == here.sum()
        assert sums.wr == (weights * rewards)[here].sum()
    assert many.total().w == weights.sum()


def test_a_short_time_has_windows_of_five_minutes() -> None:
    series = Series()
    for minute in range(0, 8 * 60):
        series.at(minute * MINUTE).add(1.0, 1.0)
    assert (series.minutes, len(series.windows)) == (5, 96)
    series.at(8 * 60 * MINUTE).add(1.0, 1.0)
    assert (series.minutes, len(series.windows)) == (60, 9)
