"""The study of conservative mode: it counts violations, and writes its tables."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle.cli.app import app
from rbmle.studies import conservative


def test_a_run_below_the_promise_is_counted() -> None:
    score = conservative.Score()
    for played, expected in ((0.4, 0.4), (0.2, 0.4), (0.6, 0.4)):
        score.add(played, expected, is_open=played != 0.4)
    assert score.outcomes() == pytest.approx([0.75, 1.0, 0.4, 2 / 3])
    values: dict[tuple[str, float | None], np.ndarray] = {
        ("a world", 0.1): np.array([score.outcomes(), [0.95, 0.89, 0.4, 0.5]])
    }
    table = conservative.promise_table(values, runs=2, rounds=3)
    ((title, entries),) = table.rows
    assert title == "a world: guarded, α = 0.1"
    assert [entry.text for entry in entries] == ["1 of 2", "1 of 2", "0.750", "0.400", "58%"]


def test_the_study_writes_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conservative, "QUICK_RUNS", 2)
    monkeypatch.setattr(conservative, "QUICK_ROUNDS", 30)
    done = CliRunner().invoke(app, ["reproduce", "conservative", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (written,) = tmp_path.rglob("conservative.md")
    text = written.read_text()
    assert text.count("| 0 of 2 | 0 of 2 | 1.000 | 0.400 |") == len(conservative.WORLDS)
    assert "What the guard costs where LinUCB is better: 30 rounds, 2 runs." in text
