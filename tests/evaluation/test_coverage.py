"""Intervals of 95 % hold as often as they say, on logs whose truth is known (`benchmarks/evaluation`)."""

import pytest

from benchmarks.evaluation.coverage import coverage, errors, peeking, uniform_coverage
from rbmle.evaluation.sequences import SEQUENCES


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replay", "ips", "snips", "dr"])
def test_intervals_hold_as_often_as_they_say(name: str) -> None:
    assert 0.93 <= coverage("bootstrap", name, logs=600, n=1_000) <= 0.97
    assert coverage("bernstein", name, logs=200, n=1_000) >= 0.95


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_holds_at_every_time_at_once(name: str) -> None:
    assert uniform_coverage(name, logs=100, n=5_000) >= 0.95


def test_looking_every_day_fools_a_z_test_and_no_sequence() -> None:
    wrong = peeking(logs=100, n=3_000)
    assert wrong["z-test"] > 0.2
    assert wrong["sequence"] < 0.05


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_errors_fall_as_the_root_of_the_rounds(name: str) -> None:
    (few_bias, few), (many_bias, many) = errors(name, 300, 500), errors(name, 300, 4_500)
    assert few / many == pytest.approx(3, rel=0.15)
    assert abs(few_bias) < 4 * few / 300**0.5
    assert abs(many_bias) < 4 * many / 300**0.5


def test_the_direct_method_keeps_the_bias_of_its_model() -> None:
    """Σ π (0.9 m + 0.02) − Σ π m = 0.02 − 0.1 · 0.31."""
    bias, _ = errors("dm", 50, 4_500)
    assert bias == pytest.approx(0.02 - 0.031, abs=5e-4)


def test_doubly_robust_varies_less_than_ips() -> None:
    assert errors("dr", 300, 1_000)[1] < errors("ips", 300, 1_000)[1]
