"""Tables in the documentation are made of results by seed."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.experiments.measures import measure
from rbmle.experiments.store import Store
from rbmle.experiments.summary import Summary, summarise
from rbmle.experiments.tables import comparison_table, mean_table, std_table
from rbmle.studies.seed_results import (
    VIEWS,
    find_outdated,
    read_trials,
    render_page,
    rounds_table,
    take,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a short Table 1 of two policies on two datasets."""
    out = tmp_path_factory.mktemp("out")
    arguments = ["reproduce", "table-1", "--quick", "--rounds", "450", "--seeds", "2"]
    chosen = ["--policy", "lin-rbmle,neural-ucb", "--dataset", "mushroom,shuttle"]
    where = ["--executor", "serial", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, *chosen, *where])
    assert done.exit_code == 0, done.output
    assert "table-1-seeds.json" in done.output
    return out / "quick" / "standard"


def test_the_tables_in_the_documentation_are_made_of_its_results_by_seed() -> None:
    """`rbmle tables` writes them."""
    assert list(find_outdated(DOCS)) == []
    marked = [page for page in DOCS.rglob("*.md") if "<!-- results: " in page.read_text()]
    assert marked


def test_every_file_of_results_is_shown_and_names_its_seeds() -> None:
    pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    for path in (DOCS / "seeds").glob("*.json"):
        assert f"<!-- results: {path.stem} " in pages
        results = json.loads(path.read_text())
        assert results["note"]
        assert "/work" not in path.read_text()


def test_a_summary_survives_the_file(played: Path) -> None:
    """All tables of a summary are the same, made of the runs or of the file."""
    runs = summarise(Store(folder=played / "runs").all())
    read = _read(played)
    for table in (mean_table, std_table, rounds_table, lambda s: comparison_table(measure(s))):
        assert table(read) == table(runs)
    for cell in runs.cells:
        twin = read.cell(cell.problem, cell.policy)
        assert twin is not None
        assert (twin.seeds, twin.settings, twin.code) == (cell.seeds, cell.settings, cell.code)
        for t in (100, 400, 450):
            np.testing.assert_allclose(twin.regrets[:, t - 1], cell.regrets[:, t - 1], rtol=1e-7)


def test_a_marked_table_is_written_and_checked(played: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results: table-1 mean -->\n<!-- results: end -->\nafter\n")
    file = str(played / "table-1-seeds.json")
    first = CliRunner().invoke(app, ["tables", file, "--docs", str(tmp_path)])
    assert first.exit_code == 0, first.output
    text = page.read_text()
    assert text.startswith("before\n<!-- results: table-1 mean -->\n| Mean final regret | Mushroom")
    assert text.endswith("<!-- results: end -->\nafter\n")
    check = ["tables", "--check", "--docs", str(tmp_path)]
    assert CliRunner().invoke(app, check).exit_code == 0
    page.write_text(text.replace("NeuralUCB", "AnotherUCB"))
    found = CliRunner().invoke(app, check)
    assert isinstance(found.exception, SettingError)
    assert "page.md; run rbmle tables" in str(found.exception)


def test_a_changed_number_is_noticed(played: Path, tmp_path: Path) -> None:
    take([played / "table-1-seeds.json"], tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- results: table-1 mean -->\n<!-- results: end -->\n")
    page.write_text(render_page(page.read_text(), tmp_path))
    assert not find_outdated(tmp_path)
    path = tmp_path / "seeds" / "table-1.json"
    results = json.loads(path.read_text())
    results["trials"][0][-1][-1] += 1
    path.write_text(json.dumps(results))
    assert list(find_outdated(tmp_path)) == [page]


def test_a_policy_that_was_played_again_replaces_its_row_in_the_documentation(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- results: everyday families -->\n<!-- results: end -->\n")
    little = ["--dataset", "pilot", "--rounds", "30", "--executor", "serial"]
    for policy, seeds in (("lin-ucb", "1"), ("lin-ts", "2")):
        chosen = ["--policy", policy, "--seeds", seeds, "--out", str(tmp_path / policy)]
        played = CliRunner().invoke(app, ["reproduce", "everyday", *chosen, *little])
        assert played.exit_code == 0, played.output
        file = tmp_path / policy / "paper" / "standard" / "everyday" / "everyday-seeds.json"
        result = CliRunner().invoke(app, ["tables", str(file), "--docs", str(tmp_path)])
        assert result.exit_code == 0, result.output
    shares = json.loads((tmp_path / "seeds" / "everyday.json").read_text())
    assert {name: len(row) for name, row in shares["families"]["pilot"].items()} == {
        "lin-ucb": 1,
        "lin-ts": 2,
        "best-fixed-arm": 2,
    }
    assert "| LinUCB | LinTS |" in page.read_text() or "| LinTS | LinUCB |" in page.read_text()


def test_a_mark_without_results_and_a_wrong_file_get_a_message(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="there is no table nothing mean"):
        render_page("<!-- results: nothing mean -->\n<!-- results: end -->\n", tmp_path)
    with pytest.raises(SettingError, match=r"ends in -seeds\.json"):
        take([tmp_path / "table-1.md"], tmp_path)
    found = CliRunner().invoke(app, ["tables", "--check", "x-seeds.json", "--docs", str(tmp_path)])
    assert isinstance(found.exception, SettingError)


def _read(played: Path) -> Summary:
    results = json.loads((played / "table-1-seeds.json").read_text())
    assert set(VIEWS) >= {"mean", "beside", "comparison", "riverswim"}
    return read_trials(results)
