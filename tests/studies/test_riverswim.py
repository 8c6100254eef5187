"""`rbmle reproduce section-3` and `rbmle reproduce riverswim`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.studies import MEASURED, riverswim, section_3
from rbmle.studies.timing import NAME as TABLE_3


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make quick studies quicker still."""
    monkeypatch.setattr(section_3, "QUICK_SEEDS", 4)
    monkeypatch.setattr(section_3, "QUICK_STEPS", 1000)
    monkeypatch.setattr(riverswim, "QUICK_SEEDS", 2)
    monkeypatch.setattr(riverswim, "QUICK_STEPS", 300)
    monkeypatch.setattr(riverswim, "SEEDS", 2)
    monkeypatch.setattr(riverswim, "STEPS", 300)
    monkeypatch.setattr(riverswim, "TUNING_SEEDS", 1)


@pytest.mark.parametrize("name", ["section-3", "riverswim"])
def test_a_study_writes_its_table_and_its_figure(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert MEASURED[name].title in done.output
    folder = tmp_path / "quick" / "standard" / name
    for ending in ("md", "png", "pdf"):
        assert (folder / f"{name}.{ending}").stat().st_size > 500


def test_what_was_played_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["reproduce", "section-3", "--quick", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, arguments)
    monkeypatch.setattr(section_3, "play", _refuse)
    assert CliRunner().invoke(app, arguments).output == first.output


def _refuse(*_: Any) -> None:
    raise AssertionError("it was played again")


def test_the_table_of_section_3_shows_the_failure_and_the_cure() -> None:
    found = {
        (truth, title): section_3.play(truth, title, seeds=4, steps=1000)
        for truth in section_3.TRUTHS
        for title in section_3.LEARNERS
    }
    rows = dict(section_3.share_table(found, seeds=4, steps=1000).rows)
    assert [entry.text for entry in rows["0.02: certainty equivalence"]] == ["0.0", "0.0", "100"]
    assert [entry.text for entry in rows["0.02: RBMLE, α(t) = √t"]] == ["100.0", "100.0", "0"]
    assert [entry.text for entry in rows["0.01: RBMLE, α(t) = t"]] == ["0.0", "0.0", "100"]


def test_every_learner_plays_in_every_world() -> None:
    for mdp in riverswim.worlds().values():
        for entrant in riverswim.ENTRANTS:
            record = riverswim.play(mdp, entrant.learner, seeds=1, steps=50)
            assert record["times"][-1] == 50
            assert 0 <= record["regrets"][0][-1] < 100


def test_studies_of_our_own_are_not_of_the_paper() -> None:
    ours = {"section-3", "riverswim", "classical", "pessimism", "conservative"}
    assert set(MEASURED) == {TABLE_3, *ours}


def test_every_learner_with_a_constant_is_tuned_on_as_many_values_and_on_other_mdps() -> None:
    tuned = [each for each in riverswim.ENTRANTS if each.constant]
    assert {each.title for each in tuned} == {"RBMLE", "PSRL", "UCRL2", "KL-UCRL"}
    assert {len(each.values) for each in tuned} == {8}
    assert all(each.value in each.values for each in tuned)
    reported = [mdp.transitions.tobytes() for mdp in riverswim.worlds().values()]
    played = [mdp.transitions.tobytes() for mdp in riverswim.tuning_worlds().values()]
    assert not set(reported) & set(played)
    assert riverswim.TUNING_SEED + riverswim.TUNING_SEEDS <= riverswim.FIRST_SEED


def test_a_full_riverswim_plays_the_constants_that_tuning_chose(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "riverswim", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "paper" / "standard" / "riverswim" / "riverswim.md").read_text()
    assert "KL-UCRL: width = " in done.output
    width = done.output.split("KL-UCRL: width = ")[1].split()[0]
    assert f"| KL-UCRL, width {width} |" in text
    assert f"**{width}: " in text


def test_ties_are_those_of_welchs_test() -> None:
    """Means 0 and 1, both with variance 1 and 4 seeds: t = 1/√½ = 1.41 with 6 degrees of freedom, p = 0.21."""
    best = np.array([-1.0, 1.0, -1.0, 1.0]) * 0.75**0.5
    assert riverswim.is_tied(best + 1, best)
    assert not riverswim.is_tied(best + 2, best)  # t = 2.83, p = 0.03
    assert not riverswim.is_tied(np.full(4, 2.0), np.full(4, 1.0))
    assert riverswim.is_tied(np.full(4, 1.0), np.full(4, 1.0))


def test_a_constant_is_chosen_by_the_geometric_mean_of_the_mean_regrets() -> None:
    """Means 2 and 8, and one below 1 that counts as 1: (2 · 8 · 1)^⅓."""
    record = {"a": [1.0, 3.0], "b": [8.0, 8.0], "c": [0.1, 0.3]}
    assert riverswim.tuning_score(record) == pytest.approx(16 ** (1 / 3))
