"""The log of a service, judged where it is."""

import json
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.evaluation import EvaluationWarning, LogFileError, Rounds, evaluate
from rbmle.evaluation.logs import LogReading
from rbmle.service.exports.export import ServiceLog, export
from rbmle.service.exports.rows import SettledRows
from rbmle.service.log import LOG_FILE, open_log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.statistics.lift import LoggedLift
from rbmle.service.statistics.summary import Statistics, StatisticsSummary
from tests.service.exports.samples import OVER, Told, decided, kept, play, rewarded
from tests.services import busy, learned, running, small_start


def test_it_is_read_as_its_export_is(tmp_path: Path) -> None:
    log = kept(
        (1, "e", decided()), (2, "e", rewarded(1.0)), (3, "f", decided()), (OVER, "g", decided())
    )
    export(log, tmp_path / "out.parquet", "parquet")
    with pytest.warns(EvaluationWarning, match="FEW ROUNDS"):
        direct = evaluate(ServiceLog(log, "log"), "uniform", estimators="ips,dr")
    with pytest.warns(EvaluationWarning, match="FEW ROUNDS"):
        exported = evaluate(tmp_path / "out.parquet", "uniform", estimators="ips,dr")
    assert direct.estimates == exported.estimates
    # air was played with 0.8 and paid 1, then −0.5 by default
    assert direct["uniform", "ips"].value == pytest.approx((1.0 - 0.5) * 0.625 / 2)


def test_dsjson_of_an_export_tells_the_same(tmp_path: Path) -> None:
    log = kept((1, "e", decided()), (2, "e", rewarded(1.0)), (OVER, "g", decided()))
    export(log, tmp_path / "out.dsjson", "dsjson")
    with pytest.warns(EvaluationWarning, match="FEW ROUNDS"):
        found = evaluate(tmp_path / "out.dsjson", "uniform", estimators="ips")
    assert found["uniform", "ips"].value == pytest.approx(0.625)


def test_pending_decisions_are_left_out() -> None:
    log = kept((1, "e", decided()), (2, "e", rewarded(1.0)))
    assert sum(len(batch.table) for batch in ServiceLog(log, "log").batches(LogReading())) == 0


def test_the_command_line_takes_a_folder(folder: Path) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(folder), "--policy", "uniform"])
    assert result.exit_code == 0, result.output
    assert "2 decisions, which earned 0.25" in result.output


def varied() -> MemoryLog:
    """Return 300 plays: most by the policy, some by an apprentice, and some without a baseline to play."""
    rng = np.random.default_rng(0)
    story: list[Told] = []
    for i in range(300):
        if i % 10 == 0:  # an apprentice's: the baseline action is shown
            shown = play(probabilities=[1.0, 0.0], chosen=0, preferred=i % 20 // 10)
        elif i % 10 == 1:  # the baseline action is not eligible, or has no chance
            shown = [play(eligible=[1], probabilities=[1.0]), play(probabilities=[0.0, 1.0])][i % 2]
        else:
            p = float(rng.uniform(0.2, 0.8))
            shown = play(probabilities=[p, 1 - p], chosen=int(rng.random() > p))
        paid = float(rng.random() < (0.3, 0.6)[shown.chosen])
        story += [(i, f"e{i}", decided(plays=[shown])), (i, f"e{i}", rewarded(paid))]
    return kept(*story, (OVER + 300, "last", decided()))


def shown_by_dashboard(log: MemoryLog) -> StatisticsSummary:
    """Return what the dashboard shows, by the sums that the learner keeps."""
    statistics = Statistics()
    for row in SettledRows(log, log.last()):
        assert row.final_reward is not None
        statistics.settle(row.stored.row.time, row.decided, row.play, row.final_reward, True)
    return statistics.summary()


def test_the_baseline_is_worth_what_the_dashboard_says(tmp_path: Path) -> None:
    log, lift = varied(), LoggedLift()
    summary = shown_by_dashboard(log)
    assert 0.5 < summary.baseline.coverage < 1
    assert 0.5 < summary.policy_baseline.coverage < summary.baseline.coverage
    export(log, tmp_path / "out.parquet", "parquet")

    def watch(name: str, rounds: Rounds, weights: np.ndarray) -> None:
        lift.add(rounds, weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        found = evaluate(
            tmp_path / "out.parquet", "baseline", estimators="ips,snips,dr", watch=watch
        )
    assert "baseline: LEFT OUT. 30 rounds have no baseline action, or one that" in found.warnings[0]
    assert found["baseline", "ips"].n == 270
    assert found["baseline", "ips"].value == pytest.approx(summary.baseline.ips.value, abs=1e-12)
    assert found["baseline", "snips"].value == pytest.approx(
        summary.baseline.snips.value, abs=1e-12
    )
    assert found["baseline", "dr"].low is not None
    assert summary.over_baseline.plays == lift.sums.plays == 240
    for name in ("reward", "other", "rr", "rb", "bb", "above", "below"):  # of which the headline is
        assert getattr(lift.sums, name) == pytest.approx(getattr(summary.over_baseline, name))


def test_the_command_line_tells_the_headline_of_a_service(tmp_path: Path) -> None:
    with running(small_start(tmp_path / "data")) as service:
        busy(service, 40)
        learned(service)
        summary = service.statistics.summary()
    with closing(open_log(str(tmp_path / "data" / LOG_FILE), is_read_only=True)) as log:
        export(log, tmp_path / "out.parquet", "parquet")
    for source in ("data", "out.parquet"):
        arguments = ["evaluate", f"{tmp_path}/{source}", "--policy", "baseline,uniform"]
        arguments += ["--estimator", "snips", "--json", f"{tmp_path}/o.json"]
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
        assert result.exit_code == 0, result.output
        baseline, uniform = json.loads((tmp_path / "o.json").read_text())
        assert baseline["value"] == pytest.approx(summary.baseline.snips.value)
        assert uniform["value"] == pytest.approx(summary.uniform.snips.value)
        sums = summary.over_baseline
        told = (
            f"decided {sums.plays} of these plays, which earned {sums.reward / sums.plays:.4f} each"
        )
        assert told in result.output
        lift = (sums.reward - sums.other) / sums.plays
        assert f"{lift:+.4f} a decision over the baseline action (" in result.output


def test_a_log_without_baselines_is_refused(tmp_path: Path) -> None:
    log = {
        "context": ["{}"],
        "actions": ['["tea", "air"]'],
        "arm": ["tea"],
        "propensity": [0.5],
        "reward": [1.0],
    }
    with pytest.raises(
        LogFileError, match="the table has no baseline actions, so `baseline` cannot"
    ):
        evaluate(log, ["uniform", "baseline"])
