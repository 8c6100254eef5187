"""Intervals of 95 % hold as often as they say, on logs whose truth is known (`benchmarks/evaluation`)."""

import warnings

import numpy as np
import pytest

from benchmarks.evaluation.coverage import coverage, drawn, errors, peeking, uniform_coverage
from rbmle.evaluation import EvaluationWarning, Rounds, TableLog, evaluate
from rbmle.evaluation.estimators import Judged, OfferedArms
from rbmle.evaluation.sequences import SEQUENCES, ValueSequence


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


def rare_log(seed: int, *, arms: int = 2, n: int = 2_000) -> TableLog:
    """Return a log of which 5 % of the contexts play B with probability 1/3000, where B pays 0, and else 1."""
    rng = np.random.default_rng(seed)
    is_rare = rng.random(n) < 0.05
    p = np.where(is_rare, 1 / 3000, 0.5)
    is_b = rng.random(n) < p
    others = np.array(["A", "C"])[rng.integers(arms - 1, size=n)]
    return TableLog(
        {
            "context": [f'{{"rare": {int(rare)}}}' for rare in is_rare],
            "actions": ['["A", "B", "C"]' if arms == 3 else '["A", "B"]'] * n,
            "arm": np.where(is_b, "B", others),
            "propensity": np.where(is_b, p, (1 - p) / (arms - 1)),
            "reward": np.where(is_b, ~is_rare, rng.random(n) < 0.5).astype(float),
        }
    )


def always_b(rounds: Rounds) -> np.ndarray:
    return np.concatenate([[0.0, 1.0, 0.0][:size] for size in rounds.sizes])


@pytest.mark.parametrize("kind", ["sequence", "bernstein"])
@pytest.mark.parametrize(("arms", "floor"), [(2, None), (3, None), (3, 1 / 3001)])
def test_intervals_hold_or_are_refused_where_large_weights_are_unseen(
    kind: str, arms: int, floor: float | None
) -> None:
    """The value is 0.95, and where weights are small it is 1; no log of 60 has ten weights of 3,000."""
    missed, refused = 0, set()
    for seed in range(60):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", EvaluationWarning)
            found = evaluate(
                rare_log(seed, arms=arms),
                {"B": always_b},
                estimators="ips,snips,dr",
                interval=kind,
                floor=floor,
            )
        held = [(one.low, one.high) for one in found.estimates if one.low is not None]
        missed += any(not low <= 0.95 <= (high or 0.0) for low, high in held)
        refused |= {one.estimator for one in found.estimates if one.low is None}
        assert ("NO INTERVAL" in "".join(str(one.message) for one in told)) == bool(refused)
    assert missed <= 3
    expected = set() if kind == "sequence" else {"dr"}
    if arms == 3 and floor is None:  # of two arms, the propensity of one tells that of the other
        expected = {"snips", "dr"} if kind == "sequence" else {"ips", "snips", "dr"}
    assert refused == expected


@pytest.mark.parametrize("kind", ["bootstrap", "normal"])
def test_usual_intervals_warn_where_large_weights_are_unseen(kind: str) -> None:
    with pytest.warns(
        EvaluationWarning, match="UNSEEN WEIGHTS. Weights could have been as large as 3,000"
    ):
        evaluate(rare_log(0), {"B": always_b}, estimators="snips", interval=kind)


@pytest.mark.parametrize(
    ("name", "is_bounded"), [("ips", True), ("ips", False), ("snips", True), ("dr", True)]
)
def test_a_sequence_covers_the_mean_of_values_that_change(name: str, is_bounded: bool) -> None:
    """The value is 0.2 first and then 0.8, or the other way round; weights are up to 20."""
    missed, n = 0, 3_000
    for seed in range(100):
        rng = np.random.default_rng(seed)
        means = np.where(np.arange(n) < 1_000, 0.2, 0.8)
        means = means if seed % 2 else means[::-1]
        p = rng.choice([0.05, 0.5], size=n)
        weights = (rng.random(n) < p) / p
        rewards = (rng.random(n) < means).astype(float)
        sequence, is_missed = ValueSequence(name, 0.0, 1.0), False
        for first in range(0, n, 100):
            part = slice(first, first + 100)
            ones = np.ones(100)
            offered = OfferedArms(
                np.full(100, 1), np.arange(100), ones, 1 / p[part] - 1, ones * 0.3
            )
            found = Judged(
                rewards[part], weights[part], ones, ones, ones > 0, offered if is_bounded else None
            )
            sequence.add(found)
            low, high = sequence.interval(0.95) or (0.0, 0.0)
            is_missed |= not low <= means[: first + 100].mean() <= high
        missed += is_missed
    assert missed <= 5


def test_widths_on_known_logs() -> None:
    """What intervals of 2,000 rounds were before they bet: 0.20, 0.18 and 0.18."""
    judged = drawn(2_000, np.random.default_rng(0))
    widths = {}
    for name in ("ips", "snips", "dr"):
        sequence = ValueSequence(name, 0.0, 1.0)
        sequence.add(judged)
        low, high = sequence.interval(0.95) or (0.0, 1.0)
        widths[name] = high - low
    assert widths["ips"] < 0.19
    assert widths["snips"] < 0.165
    assert widths["dr"] < 0.165
