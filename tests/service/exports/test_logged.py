"""The log of a service, judged where it is."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.evaluation import EvaluationWarning, evaluate
from rbmle.evaluation.logs import Reading
from rbmle.service.exports.export import export
from rbmle.service.exports.logged import ServiceLog
from tests.service.exports.samples import OVER, decided, kept, rewarded


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
    assert sum(len(batch.table) for batch in ServiceLog(log, "log").batches(Reading())) == 0


def test_the_command_line_takes_a_folder(folder: Path) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(folder), "--policy", "uniform"])
    assert result.exit_code == 0, result.output
    assert "2 decisions, which earned 0.25" in result.output
