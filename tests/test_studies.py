"""Every table and figure of the paper builds, and the commands that make them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.experiments.store import Store
from rbmle.studies import STUDIES, Plan, Tuned, base
from rbmle.studies.published import TABLE_1, TABLE_2
from rbmle.studies.tuned import GRID, grid


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make quick studies quicker still."""
    monkeypatch.setattr(base, "QUICK_ROUNDS", 25)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_builds_and_its_ids_are_unique(name: str) -> None:
    trials = STUDIES[name].trials(Plan(quick=True))
    assert trials
    assert len({trial.id for trial in trials}) == len(trials)


def test_the_tables_have_the_papers_size() -> None:
    """7 policies × 6 datasets × 10 seeds; Mushroom has 8,000 rounds."""
    plan = Plan()
    assert (len(base.POLICIES), len(plan.datasets), len(plan.seeds)) == (7, 6, 10)
    assert plan.horizon("mushroom") == 8000
    assert plan.horizon("adult") == 15_000
    assert set(TABLE_1) == set(TABLE_2) == set(base.POLICIES)


def test_every_policy_is_tuned_on_the_same_grid() -> None:
    assert {1.0, 1e-1, 1e-3, 1e-5} <= set(GRID)  # the paper's
    found = grid(base.POLICIES)
    assert len(found) == 6 * len(GRID)  # BootstrappedNN has no such constant
    assert {shown for _, shown, _ in found} >= {"neural-ucb@0.1", "lin-rbmle@1e-05"}


def test_a_study_runs_and_writes_its_files(tmp_path: Path) -> None:
    arguments = ["reproduce", "figure-3", "--quick", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "quick" / "standard"
    for name in ("figure-3.png", "figure-3.pdf", "figure-3.html"):
        assert (folder / name).stat().st_size > 5000
    again = CliRunner().invoke(app, arguments)
    assert "10 of 10 trials are in" in again.output


def test_table_1_is_printed_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "QUICK_DATASETS", ("mushroom",))
    arguments = ["reproduce", "table-1", "--quick", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "NeuralRBMLE-GA" in result.output
    folder = tmp_path / "quick" / "standard"
    assert "Mushroom" in (folder / "table-1.md").read_text()
    assert "\\begin{tabular}" in (folder / "table-1.tex").read_text()
    runs = list(Store(folder=folder / "runs").all())
    assert len(runs) == 14
    page = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert page.exit_code == 0, page.output
    assert "NeuralRBMLE-GA" in (tmp_path / "page.html").read_text()


def test_tuning_records_the_best_and_reproduce_uses_it(tmp_path: Path) -> None:
    arguments = ["tune", "--dataset", "mushroom", "--policy", "lin-rbmle", "--rounds", "60"]
    result = CliRunner().invoke(
        app, [*arguments, "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    constants = json.loads((tmp_path / "tuned.json").read_text())
    assert set(constants) == {"standard/mushroom/lin-rbmle"}
    runs = list(Store(folder=tmp_path / "runs").all())
    assert {run.seed for run in runs} == {1000}
    best = min(runs, key=lambda run: (run.final_regret, float(run.policy.partition("@")[2])))
    chosen = Tuned.read(tmp_path / "tuned.json").policy("lin-rbmle", "mushroom", "standard")
    assert repr(chosen) == best.settings["settings"]


def test_table_3_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rbmle.studies.table_3.QUICK_ROUNDS", 10)
    result = CliRunner().invoke(app, ["reproduce", "table-3", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "quick" / "standard" / "table-3.md").read_text()
    assert "neural-ucb" in text


def test_mistakes_get_a_message(tmp_path: Path) -> None:
    for arguments in (
        ["reproduce", "table-9"],
        ["reproduce", "table-1", "--quick", "--tuned", str(tmp_path / "missing.json")],
        ["tune", "--dataset", "mushroom", "--policy", "uniform"],
        ["report", str(tmp_path)],
    ):
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, SettingError), arguments
