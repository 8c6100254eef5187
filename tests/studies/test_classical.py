"""`rbmle reproduce classical`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.studies import classical


def test_the_study_writes_its_table_and_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classical, "QUICK_RUNS", 3)
    monkeypatch.setattr(classical, "QUICK_ROUNDS", 200)
    done = CliRunner().invoke(app, ["reproduce", "classical", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Lai and Robbins" in done.output
    folder = tmp_path / "quick" / "standard" / "classical"
    for ending in ("md", "png", "pdf"):
        assert (folder / f"classical.{ending}").stat().st_size > 500


def test_the_table_has_an_entry_for_each_who_plays() -> None:
    found = {
        (name, title): classical.play(game.arms, policy, runs=2, rounds=50)
        for name, game in classical.GAMES.items()
        for title, policy in game.policies.items()
    }
    rows = dict(classical.regret_table(found, runs=2, rounds=50).rows)
    assert set(rows) == {*classical.STYLES, classical.BOUND}
    assert [bool(entry.text) for entry in rows["UCB1"]] == [True, False]
    assert rows[classical.BOUND][0].text == "68"  # 17.445 log 50
