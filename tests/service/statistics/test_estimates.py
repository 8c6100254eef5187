"""IPS and SNIPS by hand, and where nothing can be estimated."""

import math
from collections.abc import Sequence

import pytest

from rbmle.evaluation.sums import WeightSums
from rbmle.service.statistics.estimates import (
    FEWEST,
    NORMAL_95,
    compare,
    ips_estimate,
    snips_estimate,
)


def test_ips_is_the_mean_of_weighted_rewards_with_their_standard_error() -> None:
    sums = sums_of([(2.0, 1.0), (0.0, 1.0)] * 50)
    found = ips_estimate(sums)
    # 100 terms, half of them 2 and half 0: mean 1, Σ (w r − 1)² = 100, s² = 100 / (100 · 99)
    assert found.value == 1.0
    assert found.low == pytest.approx(1 - NORMAL_95 / math.sqrt(99), abs=1e-12)
    assert found.high == pytest.approx(1 + NORMAL_95 / math.sqrt(99), abs=1e-12)


def test_snips_divides_by_the_weights_and_has_the_interval_of_the_delta_method() -> None:
    sums = sums_of([(2.0, 1.0), (2.0, 0.0), (0.0, 1.0)] * 40)
    found = snips_estimate(sums)
    # 80 plays of weight 2, half of them paid: V = ½, Σ w² (r − ½)² = 80 · 4 · ¼ = 80, (Σ w)² = 160²
    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - NORMAL_95 * math.sqrt(80) / 160, abs=1e-12)
    assert found.high == pytest.approx(0.5 + NORMAL_95 * math.sqrt(80) / 160, abs=1e-12)


def test_snips_stays_between_the_rewards_where_ips_does_not() -> None:
    sums = sums_of([(10.0, 1.0)])
    assert ips_estimate(sums).value == 10.0
    assert snips_estimate(sums).value == 1.0


def test_plays_are_worth_fewer_when_their_weights_differ() -> None:
    assert sums_of([(1.0, 0.0)] * 8).effective == 8
    assert sums_of([(4.0, 0.0)] + [(0.0, 0.0)] * 7).effective == 1
    assert WeightSums().effective == 0


def test_few_plays_have_an_estimate_and_no_interval() -> None:
    few = [(1.0, 1.0), (1.0, 0.0)] * (FEWEST // 2 - 1)
    for found in (ips_estimate(sums_of(few)), snips_estimate(sums_of(few))):
        assert found.value == 0.5
        assert not found.has_interval
        assert "too few" in found.problem
    assert ips_estimate(sums_of([*few, (1.0, 1.0), (1.0, 0.0)])).has_interval


@pytest.mark.parametrize("reward", [0.0, 0.1, -0.3, 1.0])
def test_equal_rewards_do_not_pretend_to_be_certain(reward: float) -> None:
    found = snips_estimate(sums_of([(1.0, reward)] * 1000))
    assert found.value == pytest.approx(reward, abs=1e-12)
    assert not found.has_interval
    assert "equal" in found.problem


def test_what_had_no_chance_is_not_estimated() -> None:
    sums = sums_of([(None, 1.0)] * 100)
    for found in (ips_estimate(sums), snips_estimate(sums)):
        assert found.value is None
        assert "no chance" in found.problem
    assert compare(sums).coverage == 0.0


def test_without_rewards_nothing_is_estimated() -> None:
    assert (
        ips_estimate(WeightSums()).problem
        == snips_estimate(WeightSums()).problem
        == "no reward yet"
    )
    unseen = sums_of([(0.0, 1.0)])
    assert ips_estimate(unseen) == snips_estimate(unseen)
    assert ips_estimate(unseen).problem == "it was not chosen yet"


def sums_of(plays: Sequence[tuple[float | None, float]]) -> WeightSums:
    sums = WeightSums()
    for weight, reward in plays:
        sums.add(weight, reward)
    return sums
