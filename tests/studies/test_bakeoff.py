"""The bake-off runs, is resumed, says what it skips, and writes its tables and its picture."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import pytest
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.environments import ALTERATIONS
from rbmle.experiments.figures import dot_figure, dot_svg, measured_panel, relative_panel
from rbmle.experiments.measures import measure
from rbmle.experiments.report import losses_of, write_comparison
from rbmle.experiments.summary import summarise
from rbmle.policies import POLICIES
from rbmle.policies.registry import RIVALS
from rbmle.studies import STUDIES, Plan, bakeoff
from rbmle.studies.base import OURS
from tests.equations.test_measures import example


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Few policies, one small dataset, few rounds, no network."""
    monkeypatch.setattr(
        bakeoff, "POLICIES", {name: POLICIES[name] for name in ("lin-ucb", "uniform")}
    )
    monkeypatch.setattr(bakeoff, "RIVALS", {"tree-ts": RIVALS["tree-ts"]})
    monkeypatch.setattr(bakeoff, "SHIPPED", ("digits",))
    monkeypatch.setattr(bakeoff, "QUICK_ROUNDS", 25)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RBMLE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pmlb", SimpleNamespace(fetch_data=offline))
    rivals, worlds = bakeoff.rivals, bakeoff.worlds
    rivals.cache_clear()
    worlds.cache_clear()
    yield
    rivals.cache_clear()
    worlds.cache_clear()


def test_it_is_played_and_written_and_not_repeated(tmp_path: Path) -> None:
    arguments = ["reproduce", "bakeoff", "--quick", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "3 policies on 3 problems" in result.output
    folder = tmp_path / "quick" / "standard" / "bakeoff"
    endings = (".md", ".tex", ".html", "-pairs.md", "-losses.md", "-regret.png", "-regret.pdf")
    for ending in endings:
        assert (folder / f"bakeoff{ending}").stat().st_size > 100
    page = (folder / "bakeoff.html").read_text()
    assert "9 trials on 3 problems, seeds 0, 25 rounds, the default settings" in page
    assert "<svg" in page
    assert "src=" not in page
    assert "9 of 9 trials are in" in CliRunner().invoke(app, arguments).output


def test_what_is_missing_is_skipped_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bakeoff, "DATASETS", ("digits", "pmlb:absent"))
    monkeypatch.setattr(bakeoff, "RIVALS", {"vw:first": RIVALS["vw:first"]})
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    plan = Plan(data_dir=tmp_path)
    first, second, third = bakeoff.skipped(plan)
    assert first.startswith("Skipped vw:first: ")
    assert "pip install 'rbmle[vw]'" in first
    assert second.startswith("Skipped vw:first:interactions=quadratic: ")
    assert third.startswith("Skipped pmlb:absent: cannot get absent")
    names = {trial.environment.settings["name"] for trial in bakeoff.trials(plan)}
    assert names == {"digits", "digits+noise", "digits+rare"}


def test_it_is_as_large_as_its_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """37 datasets, three rewards each; a dataset with fewer rows than rounds is played once through."""
    assert len(bakeoff.DATASETS) == 37
    assert len(set(bakeoff.DATASETS)) == 37
    assert bakeoff.VARIANTS == ((), ("noise",), ("rare",))
    monkeypatch.setattr(bakeoff, "DATASETS", ("digits",))
    assert {trial.horizon for trial in bakeoff.trials(Plan())} == {1797}
    assert {trial.seed for trial in bakeoff.trials(Plan())} == set(range(bakeoff.SEEDS))


def test_noise_and_rare_rewards_are_those_of_the_bake_off() -> None:
    """A fifth of the rewards is flipped; a right choice pays with probability 0.1, a wrong one 0.02."""
    noise, rare = ALTERATIONS["noise"], ALTERATIONS["rare"]
    assert (noise.right, noise.wrong) == (0.8, 0.2)
    assert (rare.right, rare.wrong) == (0.1, 0.02)


def test_products_of_too_many_features_are_left_out_where_they_are_dear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bakeoff, "MOST_FEATURES", 10)
    specs = [
        SimpleNamespace(name=name, settings=settings, policy=POLICIES["uniform"])
        for name in ("vw:cover", "vw:first")
        for settings in ((), ("interactions=quadratic",))
    ]
    monkeypatch.setattr(bakeoff, "rivals", lambda: (specs, []))
    cheap = {"vw:cover", "vw:first", "vw:first (quadratic)"}
    assert {trial.name for trial in bakeoff.trials(Plan(quick=True))} == cheap
    monkeypatch.setattr(bakeoff, "MOST_FEATURES", 1000)
    every = {trial.name for trial in bakeoff.trials(Plan(quick=True))}
    assert every == cheap | {"vw:cover (quadratic)"}


def test_a_few_policies_can_be_played_with_more_seeds(tmp_path: Path) -> None:
    plan = Plan(quick=True, policies="lin-ucb,lin-ucb:exploration=0.3", count=3)
    trials = bakeoff.trials(plan)
    assert len(trials) == 2 * 3 * 3
    assert {trial.seed for trial in trials} == {0, 1, 2}
    assert len({repr(trial.policy) for trial in trials}) == 2
    table = ["reproduce", "table-3", "--seeds", "3", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, table)
    assert result.exit_code != 0
    assert "--policy and --seeds are for one study of policies" in str(result.exception)


def test_it_is_no_part_of_the_paper() -> None:
    assert not STUDIES["bakeoff"].is_of_the_paper
    ours = {"bakeoff", "everyday", "everyday-development"}
    assert ours == {name for name, study in STUDIES.items() if not study.is_of_the_paper}


def test_the_picture_has_the_smallest_regret_at_the_top(tmp_path: Path) -> None:
    panel = measured_panel(measure(example()))
    values = [row.value for row in panel.rows]
    assert values == sorted(values)
    assert panel.rows[0].title == "a"
    assert "2 problems" in panel.label


def test_uniform_play_stands_at_the_edge_and_pictures_are_the_same_each_time(
    tmp_path: Path,
) -> None:
    ratios = {"NeuralUCB": 1.1, "$odd_name": 1.3, "vw:first (quadratic)": 1.4, "Uniform": 9.0}
    panel = relative_panel(ratios, problems=20)
    assert panel.highest is not None
    assert 1.4 < panel.highest < 1.5
    for path in dot_figure([panel], tmp_path / "regret"):
        assert path.stat().st_size > 1000
    assert dot_svg([panel]) == dot_svg([panel])
    assert dot_svg([panel]).startswith("<svg")


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    write_comparison(summarise([]), tmp_path / "page.html", "Title", "note", OURS)
    assert "Nothing to compare" in (tmp_path / "page.html").read_text()


def test_where_we_lose_is_told_from_the_worst_on() -> None:
    """b has 20 where a has 10; with noise both have 6. c has 60 and 30."""
    summary = example()
    measures = measure(summary)
    assert losses_of(measures, summary, "a") == []
    assert losses_of(measures, summary, "b") == ["plain: a has 10.0, b 20.0, 2.00 times as much."]
    first, second = losses_of(measures, summary, "c")
    assert first.startswith("plain: a has 10.0, c 60.0, 6.00 times")
    assert second.startswith("plain+noise: a has 6.0, c 30.0, 5.00 times")
    assert losses_of(measures, summary, OURS) == ["NeuralRBMLE-GA was not played."]


def offline(*_: Any, **__: Any) -> Any:
    raise URLError("no network")
