"""Policies judged on logs whose truth is known."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from rbmle import Bandit, Hashing, LinUCB
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.engine.json_features import read_groups
from rbmle.evaluation import (
    Evaluation,
    EvaluationWarning,
    LogFileError,
    Rounds,
    TableLog,
    evaluate,
    features,
    write_log,
)
from rbmle.evaluation.estimators import ESTIMATORS
from rbmle.evaluation.logs import LogBatch, LogReading
from rbmle.evaluation.rounds import rounds_of
from tests.evaluation.samples import ACTIONS, table, world

FIELDS = ("policy", "estimator", "value", "low", "high", "effective_sample_size", "n")


def quietly(*arguments: Any, **settings: Any) -> Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return evaluate(*arguments, **settings)


def warned(*arguments: Any, **settings: Any) -> tuple[Evaluation, str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", EvaluationWarning)
        found = evaluate(*arguments, **settings)
    assert [str(one.message) for one in told] == found.warnings
    return found, "\n".join(found.warnings)


def test_uniform_play_on_three_rounds_by_hand() -> None:
    """Weights are 0.5/0.8, 0.5/0.2 and 0.5/0.8."""
    found = quietly(table(), "uniform", estimators="ips,snips")
    ips = (0.625 * 1.0 + 2.5 * 0.0 + 0.625 * 0.5) / 3
    assert found["uniform", "ips"].value == pytest.approx(ips)
    assert found["uniform", "snips"].value == pytest.approx(3 * ips / 3.75)
    effective = 3.75**2 / (0.625**2 + 2.5**2 + 0.625**2)
    assert found["uniform", "ips"].effective_sample_size == pytest.approx(effective)
    assert found["uniform", "ips"].n == 3


@pytest.mark.parametrize("is_vector", [True, False])
@pytest.mark.parametrize("interval", ["bootstrap", "bernstein", "normal", "sequence"])
def test_every_estimator_is_near_the_truth(is_vector: bool, interval: str) -> None:
    log, means, _ = world(6_000, 1, is_vector=is_vector)
    best = means.argmax(axis=1)

    def greedy(rounds: Rounds) -> np.ndarray:
        return (best[rounds.numbers - 1][:, None] == np.arange(4)).astype(float).ravel()

    found = quietly(log, {"uniform": "uniform", "best": greedy}, interval=interval, floor=0.04)
    truth = {"uniform": means.mean(), "best": means.max(axis=1).mean()}
    assert len(found.estimates) == 2 * len(ESTIMATORS)
    for one in found.estimates:
        assert one.value is not None
        tolerance = 0.12 if one.estimator in ("replay", "dm") else 0.05
        assert one.value == pytest.approx(truth[one.policy], abs=tolerance)
        if one.low is not None and one.high is not None and one.estimator != "dm":
            assert one.low - 0.02 < truth[one.policy] < one.high + 0.02
    assert found["best", "dr"].value > found["uniform", "dr"].value + 0.2  # type: ignore[operator]  # there is one


@pytest.mark.parametrize("is_vector", [True, False])
def test_a_policy_that_learns_as_it_goes_beats_uniform_play(is_vector: bool) -> None:
    log, means, _ = world(1_500, 2, is_vector=is_vector)
    found = evaluate(log, [LinUCB()], estimators="snips,replay,dr")
    for name in ("snips", "dr"):
        assert (found["LinUCB", name].value or 0) > means.mean() + 0.1
    assert found["LinUCB", "replay"].effective_sample_size < 300
    assert found == evaluate(log, [LinUCB()], estimators="snips,replay,dr")


def test_a_frozen_policy_is_judged_on_the_rest_of_the_log() -> None:
    log, means, _ = world(2_000, 3)
    found = evaluate(log, "lin-ucb", estimators="snips", frozen=0.5)
    assert found["lin-ucb", "snips"].n == 1_000
    assert (found["lin-ucb", "snips"].value or 0) > means.mean() + 0.15


def test_frozen_and_progressive_learn_the_same() -> None:
    """Frozen at one round before the end, both say the same of the last round."""
    log, _, _ = world(50, 4)
    rounds = next(rounds_of(log, LogReading(), has_contexts=True, default_reward=0.0))
    bandit = Bandit(LinUCB(), arms=["a0", "a1", "a2", "a3"], features=3)
    X = np.array([json.loads(text) for text in rounds.contexts.to_pylist()])  # type: ignore[union-attr]  # asked for
    bandit.partial_fit(X[:49], [f"a{arm}" for arm in rounds.played[:49]], rounds.rewards[:49])
    best = bandit.decide(X[49]).arm
    found = quietly(log, "lin-ucb", estimators="ips", frozen=0.98)
    played = f"a{rounds.played[49]}" == best
    weight = played / rounds.propensities[49]
    assert found["lin-ucb", "ips"].value == pytest.approx(weight * rounds.rewards[49])
    assert found["lin-ucb", "ips"].n == 1


@pytest.mark.parametrize("encoding", ["disjoint", "per-arm"])
def test_a_saved_bandit_is_judged_as_it_is(encoding: str) -> None:
    log, _, _ = world(400, 5, is_vector=encoding == "disjoint")
    if encoding == "disjoint":
        bandit = Bandit(LinUCB(), arms=["a0", "a1", "a2", "a3"], features=3)
    else:
        bandit = Bandit(LinUCB(), features=Hashing(bits=6), encoding="per-arm")
    before = bandit.round
    found = quietly(log, {"saved": bandit}, estimators="ips")
    assert bandit.round == before
    uniform = quietly(log, "uniform", estimators="ips")  # all arms tie before any data
    if encoding == "disjoint":
        assert found["saved", "ips"].value == pytest.approx(uniform["uniform", "ips"].value)
    assert found["saved", "ips"].value is not None


def test_estimated_propensities_are_said_loudly() -> None:
    log = TableLog(table(propensity=None))
    found, told = warned(log, "uniform", estimators="ips", propensities="arms")
    assert "ESTIMATED PROPENSITIES. 3 of 3 rounds" in told
    # tea was played in 2 of 3 rounds, air in 1 of 3: weights are 0.5/(2/3) and 0.5/(1/3)
    assert found["uniform", "ips"].value == pytest.approx((0.75 * 1 + 1.5 * 0 + 0.75 * 0.5) / 3)


def test_poor_overlap_is_said_loudly() -> None:
    thin = TableLog(table(arm=["air"] * 3, propensity=[0.001, 0.5, 1.0]))
    _, told = warned(thin, "uniform", estimators="ips")
    assert "uniform: POOR OVERLAP. 3 rounds are worth 1.0 (33.53%)" in told
    assert "FEW ROUNDS. 3 rounds are worth 2.0" in warned(table(), "uniform", estimators="ips")[1]
    never = {"never": lambda rounds: np.tile([1.0, 0.0], len(rounds))}
    found, told = warned(thin, never, estimators="ips,snips,dm")
    assert "NO OVERLAP. In none of 3 rounds" in told
    assert found["never", "snips"].value is None
    assert found["never", "snips"].low is None


def test_propensities_that_do_not_fit_are_said_loudly() -> None:
    log, _, _ = world(2_000, 7)
    (batch,) = log.batches(LogReading())
    halved = pa.Table.from_batches([batch.table]).drop_columns(["probabilities"])
    place = halved.column_names.index("propensity")
    halved = halved.set_column(place, "propensity", pa.array(np.asarray(halved["propensity"]) / 2))
    with pytest.warns(EvaluationWarning, match="PROPENSITIES DO NOT FIT. The mean weight is 2"):
        evaluate(halved, "uniform", estimators="ips", floor=0.02)


def test_missing_rewards_count_as_the_default_and_are_said() -> None:
    found, told = warned(table(reward=[1.0, None, None]), "uniform", estimators="ips")
    assert "MISSING REWARDS. 2 of 3 rounds" in told
    assert found["uniform", "ips"].value == pytest.approx(0.625 / 3)
    found = quietly(
        table(reward=[1.0, None, None]), "uniform", estimators="ips", default_reward=0.5
    )
    assert found["uniform", "ips"].value == pytest.approx((0.625 + 0.5 * 2.5 + 0.5 * 0.625) / 3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"arm": ["tea", "cola", "tea"]}, "row 2: the arm is 'cola', but the eligible actions are"),
        ({"propensity": [0.8, 0.0, 0.8]}, "row 2: the propensity is 0, but the probability"),
        ({"propensity": [0.8, 1.5, 0.8]}, "row 2: the propensity is 1.5"),
        ({"reward": [1.0, float("inf"), 0.5]}, "row 2: the reward is inf"),
        ({"actions": [ACTIONS, "tea", ACTIONS]}, "row 2: the actions are 'tea', but a JSON array"),
        (
            {"actions": [ACTIONS, "[]", ACTIONS]},
            "row 2: the actions are '\\[\\]', but at least one",
        ),
        ({"actions": [ACTIONS, None, ACTIONS]}, "row 2: the actions are None"),
        ({"context": ["{}", '{"a": ', None]}, "row 2: the context is '{\"a\": ', but JSON is"),
        (
            {"eligible": pa.array([None, ["tea"], None])},
            "row 2: the arm is 'air', but the eligible",
        ),
    ],
)
def test_a_bad_row_stops_it_or_is_counted(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(LogFileError, match=why):
        evaluate(table(**changes), "uniform")
    found, told = warned(table(**changes), "uniform", estimators="ips,dr", skips_bad=True)
    assert "BAD ROWS. 1 rows were left out; the first: row 2" in told
    assert found["uniform", "ips"].n == 2


def test_restricted_arms_are_all_there_is_to_choose_from() -> None:
    log = table(eligible=pa.array([None, ["air"], None]))
    found = quietly(log, "uniform", estimators="snips")  # the second weight is 1/0.2
    assert found["uniform", "snips"].value == pytest.approx((0.625 + 0.3125) / (0.625 + 5 + 0.625))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"estimators": "ipss"}, "no estimator 'ipss' .did you mean 'ips'.*there are replay"),
        ({"interval": "t"}, "no interval 't'; there are bootstrap"),
        ({"confidence": 95}, "between 0 and 1, got 95"),
        ({"frozen": 1.0}, "`frozen` must be a part"),
        ({"clip": 0}, "`clip` must be above 0"),
        ({"floor": 0.0}, "`floor` must be above 0 and at most 1, got 0"),
        ({"floor": 0.3}, "`floor` is 0.3, but the log has an action whose probability was 0.2"),
        ({"rewards": (0.2, 1.0)}, "the log has some from 0 to 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        evaluate(table(), "uniform", **settings)


def test_bernstein_needs_bounds_for_unusual_rewards() -> None:
    log = table(reward=[100.0, 0.0, 5.0])
    with pytest.raises(SettingError, match="rewards are from 0 to 100, and an interval by 'bernst"):
        evaluate(log, "uniform", interval="bernstein")
    found = quietly(log, "uniform", interval="bernstein", rewards=(0, 200))
    assert found["uniform", "ips"].low == 0.0


def test_estimated_propensities_have_no_interval_that_claims_to_be_exact() -> None:
    for interval in ("sequence", "bernstein"):
        log = TableLog(table(propensity=None))
        found, told = warned(log, "uniform", interval=interval, propensities="arms")
        assert "There are no intervals by 'sequence' and 'bernstein'" in told
        assert all(one.low is None for one in found.estimates)


def test_the_default_interval_holds_at_every_look() -> None:
    log, _, _ = world(300, 9)
    found = quietly(log, "uniform", estimators="ips")
    assert found["uniform", "ips"].interval == "sequence"


def test_replay_has_a_sequence_where_a_floor_is_stated() -> None:
    log, _, _ = world(2_000, 9)
    assert quietly(log, "uniform", estimators="replay")["uniform", "replay"].low is None
    one = evaluate(log, "uniform", estimators="replay", floor=0.04)["uniform", "replay"]
    assert one.low is not None


def test_the_command_line_writes_the_records(tmp_path: Path) -> None:
    write_log(world(300, 8).log, tmp_path / "log.csv")
    bandit = Bandit(LinUCB(), arms=["a0", "a1", "a2", "a3"], features=3)
    bandit.save(tmp_path / "own.rbmle")
    names = f"uniform,lin-ucb:exploration=0.5,{tmp_path}/own.rbmle"
    arguments = [
        "evaluate",
        f"{tmp_path}/log.csv",
        "--policy",
        names,
        "--json",
        f"{tmp_path}/o.json",
    ]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    records = json.loads((tmp_path / "o.json").read_text())
    assert len(records) == 3 * len(ESTIMATORS)
    assert all(set(FIELDS) <= set(record) for record in records)
    assert {record["policy"] for record in records} == set(names.split(","))
    assert "300 decisions, which earned" in result.output


def test_the_command_line_shows_warnings(tmp_path: Path) -> None:
    write_log(TableLog(table(propensity=None)), tmp_path / "log.parquet")
    arguments = ["evaluate", f"{tmp_path}/log.parquet", "--policy", "uniform", "--estimator", "ips"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    assert "WARNING" in result.output
    assert "ESTIMATED PROPENSITIES" in result.output


def test_the_command_line_converts(tmp_path: Path) -> None:
    write_log(TableLog(table()), tmp_path / "log.parquet")
    for end in ("csv", "dsjson", "vw"):
        arguments = ["log", "convert", f"{tmp_path}/log.parquet", f"{tmp_path}/log.{end}"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert "3 decisions are in" in result.output
        found = quietly(f"{tmp_path}/log.{end}", "uniform", estimators="ips")
        assert found["uniform", "ips"].value == pytest.approx(0.3125)


class CountedLog(TableLog):
    readings = 0

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        self.readings += 1
        return super().batches(reading, columns)


@pytest.mark.parametrize("is_vector", [True, False])
def test_a_log_is_played_once_however_often_it_is_needed(is_vector: bool, tmp_path: Path) -> None:
    """Text and logs of a service are slow to read; a file of Parquet is read a few columns at a time."""
    log = world(300, 9, is_vector=is_vector).log
    (batch,) = log.batches(LogReading())
    table = pa.Table.from_batches([batch.table]).drop_columns(["propensity", "probabilities"])
    counted = CountedLog(table)
    played = SimpleNamespace(name="played", batches=counted.batches)
    assert quietly(played, ["uniform", "lin-ucb"]) == quietly(table, ["uniform", "lin-ucb"])
    assert counted.readings == 1


def test_bad_rows_are_counted_once_where_a_log_is_played_once() -> None:
    bad = CountedLog(table(propensity=["0.8", "high", "0.8"]))
    played = SimpleNamespace(name="played", batches=bad.batches)
    found, told = warned(played, "uniform", estimators="ips,dr", skips_bad=True)
    assert "BAD ROWS. 1 rows were left out; the first: row 2: the propensity is 'high'" in told
    assert found["uniform", "ips"].n == 2


def test_features_of_a_round_are_read_once_for_all_that_need_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0

    def counted(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return read_groups(*given)

    monkeypatch.setattr(features, "read_groups", counted)
    log = world(200, 9, is_vector=False).log
    quietly(
        log, ["lin-ucb", "lin-ts"]
    )  # with a model of rewards, two policies and a replay of each
    assert calls == 2  # the contexts, and the list of actions


def test_features_that_a_kernel_cannot_read_have_the_contexts_of_others() -> None:
    plain = ['{"user": {"name": "Zoe"}, "hour": 13}'] * 2
    odd = ['{"user": {"name": "Zo\\u0065"}, "hour": 13}', plain[0]]
    found = [quietly(table(context=[*some, plain[0]]), "lin-ucb") for some in (plain, odd)]
    assert found[0] == found[1]
