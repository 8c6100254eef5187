"""Every table and figure of the paper builds, and the commands that make them."""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.experiments import code
from rbmle.experiments.store import Store
from rbmle.experiments.trial import describe
from rbmle.models.regression import Replay
from rbmle.policies import POLICIES, NeuralRBMLEGA, NeuralRBMLEPC
from rbmle.policies.registry import parse_policy
from rbmle.studies import (
    STUDIES,
    Plan,
    Tuned,
    paper,
    timing,
)
from rbmle.studies import base as studies_base
from rbmle.studies.base import (
    CONSTANTS,
    DATASETS,
    GRID,
    TABLE_1,
    TABLE_2,
    Choice,
    Data,
    load_or_measure,
)
from rbmle.studies.timing import (
    PARAMETERS,
    Inversion,
    TimedExact,
    Update,
    free_bytes,
    seconds_left,
    sherman_morrison,
    sizes_that_fit,
    time_policy,
)
from rbmle.studies.tuning import edges, grids


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make quick studies quicker still."""
    monkeypatch.setattr("rbmle.studies.base.QUICK_ROUNDS", 25)
    monkeypatch.setattr(timing, "QUICK_ROUNDS", 15)
    monkeypatch.setattr(timing, "QUICK_UPDATED", (20, 40))
    monkeypatch.setattr(timing, "QUICK_INVERTED", (20, 40))


def test_a_measurement_is_made_again_only_where_its_code_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = {"control": "before"}
    monkeypatch.setattr(
        code,
        "package_digest",
        lambda root, folders: "".join(digests.get(folder, "") for folder in folders),
    )
    made = []

    def measure() -> dict[str, int]:
        made.append(digests["control"])
        return {"made": len(made)}

    assert [load_or_measure(tmp_path, {"n": 1}, measure)["made"] for _ in range(2)] == [1, 1]
    digests["control"] = "after"
    assert load_or_measure(tmp_path, {"n": 1}, measure) == {"made": 2}
    assert made == ["before", "after"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_builds_and_its_ids_are_unique(name: str) -> None:
    trials = STUDIES[name].trials(Plan(quick=True))
    assert trials
    assert len({trial.id for trial in trials}) == len(trials)


def test_the_tables_have_the_papers_size() -> None:
    """7 policies × 6 datasets × 10 seeds; Mushroom has 8,000 rounds."""
    plan = Plan()
    assert (len(studies_base.PAPER_POLICIES), len(plan.datasets), len(plan.seeds)) == (7, 6, 10)
    assert plan.horizon("mushroom") == 8000
    assert plan.horizon("adult") == 15_000
    assert set(TABLE_1) == set(TABLE_2) == set(studies_base.PAPER_POLICIES)


def test_every_policy_is_tuned_on_the_same_grid() -> None:
    assert {1.0, 1e-1, 1e-3, 1e-5} <= set(GRID)  # the paper's
    found = grids([parse_policy(name) for name in studies_base.PAPER_POLICIES])
    assert [grid.spec.name for grid in found] == [
        name for name in studies_base.PAPER_POLICIES if name != "bootstrapped-nn"
    ]  # which has no such constant
    assert {grid.values for grid in found} == {GRID}
    assert {grid.setting for grid in found} == {"bias", "exploration"}


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
    monkeypatch.setattr("rbmle.studies.base.QUICK_DATASETS", ("mushroom",))
    arguments = ["reproduce", "table-1", "--quick", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "NeuralRBMLE-GA" in result.output
    folder = tmp_path / "quick" / "standard"
    assert "Mushroom" in (folder / "table-1.md").read_text()
    assert "\\begin{tabular}" in (folder / "table-1.tex").read_text()
    for name in ("table-1.md", "table-1.tex", "table-1.html"):
        assert "Constants: as shipped with rbmle" in (folder / name).read_text()
    runs = list(Store(folder=folder / "runs").all())
    assert len(runs) == 16
    assert "| NeuralRBMLE-GA (default) |" in (folder / "table-1-beside-the-paper.md").read_text()
    page = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert page.exit_code == 0, page.output
    assert "NeuralRBMLE-GA" in (tmp_path / "page.html").read_text()


def test_tuning_records_the_best_and_reproduce_uses_it(tmp_path: Path) -> None:
    arguments = ["tune", "--dataset", "mushroom", "--policy", "lin-rbmle", "--rounds", "60"]
    result = CliRunner().invoke(
        app, [*arguments, "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    runs = list(Store(folder=tmp_path / "runs").all())
    best = min(runs, key=lambda run: (run.final_regret, float(run.policy.partition("@")[2])))
    tuned = Tuned.read(tmp_path / "tuned.json")
    assert set(tuned.choices) == {"standard/mushroom/lin-rbmle"}
    choice = tuned.choices["standard/mushroom/lin-rbmle"]
    assert choice.regrets == {run.policy.partition("@")[2]: run.final_regret for run in runs}
    assert (choice.seeds, choice.rounds, choice.versions) == ([1000], 60, best.versions)
    assert f"**{best.final_regret:.1f}**" in result.output
    chosen = tuned.policy("lin-rbmle", "mushroom", "standard")
    assert describe(chosen) == best.settings["settings"]


def test_a_choice_at_an_edge_of_the_grid_is_warned_of() -> None:
    found = {"inside": _choice(0.01), "low": _choice(1e-5), "high": _choice(1.0)}
    assert edges(found) == ["low (1e-05)", "high (1)"]


def test_a_greedy_choice_is_at_no_edge_as_nothing_lies_below_0() -> None:
    regrets = {"0.1": 3.0, "0.01": 2.0, "0": 1.0}
    choice = Choice(constant=0.0, regrets=regrets, seeds=[1000], rounds=7, versions={})
    assert edges({"greedy": choice}) == []


def test_finalists_alone_have_all_seeds_and_the_choice_is_among_them(tmp_path: Path) -> None:
    arguments = ["tune", "--dataset", "mushroom", "--policy", "lin-rbmle,lin-ucb", "--rounds", "60"]
    arguments += ["--seeds", "5", "--finalists", "2", "--executor", "serial"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "3 or 5 seeds" in result.output
    runs = list(Store(folder=tmp_path / "runs").all())
    for name in ("lin-rbmle", "lin-ucb"):
        choice = Tuned.read(tmp_path / "tuned.json").choices[f"standard/mushroom/{name}"]
        assert sorted(choice.counts.values()) == [3] * (len(GRID) - 2) + [5] * 2
        assert choice.counts[f"{choice.constant:g}"] == len(choice.seeds) == 5
        first = {
            value: np.mean(
                [r.final_regret for r in runs if r.policy == f"{name}@{value}" and r.seed < 1003]
            )
            for value in choice.counts
        }
        last = [value for value, count in choice.counts.items() if count == 5]
        assert max(first[value] for value in last) <= min(
            first[value] for value in first if value not in last
        )
        assert choice.regrets[f"{choice.constant:g}"] == min(
            choice.regrets[value] for value in last
        )


def test_choices_are_read_as_they_were_written(tmp_path: Path) -> None:
    tuned = Tuned(choices={"standard/adult/neural-ucb": _choice(0.1)})
    tuned.write(tmp_path / "tuned.json")
    assert Tuned.read(tmp_path / "tuned.json").choices == tuned.choices


def test_the_shipped_constants_are_of_known_grids_and_of_seeds_not_reported() -> None:
    assert (files("rbmle.studies") / "tuned.json").is_file()
    shipped = Tuned.shipped()
    variants = {
        (each.key, each.dataset): each
        for found in (paper.likelihood_contenders, paper.growth_contenders, paper.table_candidates)
        for each in found(Plan())
        if each.key not in POLICIES
    }
    for key, choice in shipped.choices.items():
        preprocessing, dataset, name = key.split("/")
        assert dataset in DATASETS
        finalists = [v for v in choice.regrets if choice.counts.get(v, 0) == len(choice.seeds)]
        rivals = finalists if choice.counts else choice.regrets
        assert choice.regrets[f"{choice.constant:g}"] == min(choice.regrets[v] for v in rivals)
        assert not set(choice.seeds) & set(Plan().seeds)
        grids = {
            "standard": studies_base.GRIDS.get(name, GRID),
            "paired": studies_base.PRINTED_GRID,
        }
        if (variant := variants.get((name, dataset))) is None:
            grid = grids.get(preprocessing, GRID)
            policy = shipped.policy(name, dataset, preprocessing)
            assert getattr(policy, CONSTANTS[name]) == choice.constant
        else:
            grid = variant.values
            assert getattr(variant.policy, variant.constant or "") == choice.constant
        assert choice.regrets.keys() == {f"{constant:g}" for constant in grid}


def test_the_page_of_results_has_the_shipped_constants() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence" / "results.md").read_text()
    rows = page.partition("\n## Constants\n")[2].splitlines()
    shown: dict[str, list[str]] = {}
    for each in paper.table_contenders(Plan()):
        if each.constant is not None:
            rate = "" if each.key == each.name else ", η = 0.4"
            value = f"{getattr(each.policy, each.constant):g}{rate}"
            shown.setdefault(each.name, []).append(value)
    for name, values in shown.items():
        assert f"| {name} | {' | '.join(values)} |" in rows


def test_the_rate_of_a_network_is_chosen_as_its_constant_is(tmp_path: Path) -> None:
    arguments = ["tune", "--study", "table-1", "--dataset", "mushroom", "--policy", "neural-ucb"]
    where = ["--rounds", "40", "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *where])
    assert result.exit_code == 0, result.output
    tuned = Tuned.read(tmp_path / "tuned.json")
    keys = ["standard/mushroom/neural-ucb", "standard/mushroom/neural-ucb (rate 0.4)"]
    assert sorted(tuned.choices) == keys
    for best, rate in zip(keys, studies_base.RATES, strict=True):
        choices = {
            key: replace(choice, regrets=dict.fromkeys(choice.regrets, float(key != best)))
            for key, choice in tuned.choices.items()
        }
        plan = Plan(tuned=Tuned(choices=choices), only=("mushroom",), policies="neural-ucb")
        (shown,) = plan.select(paper.table_contenders(plan))
        assert shown.name == "neural-ucb"
        assert shown.policy.model.training == Replay(steps=100, rate=rate)
        assert shown.policy.exploration == choices[best].constant


def test_a_study_says_where_its_constants_come_from() -> None:
    tuned = Tuned(choices={"standard/adult/neural-ucb": _choice(0.1)}, source="from mine.json")
    adult = Data(preprocessing="standard", name="adult")
    assert tuned.policy("neural-ucb", "adult", "standard").exploration == 0.1
    assert tuned.policy("neural-ucb", "adult", "paper") == POLICIES["neural-ucb"]()
    assert "from mine.json, chosen on 1 unreported seed and 7 rounds; on magic the default" in (
        tuned.origin([adult, Data(preprocessing="standard", name="magic")])
    )
    assert tuned.origin([adult], ["neural-ucb", "lin-ts"]).endswith("not tuned: lin-ts on adult.")
    other = Data(preprocessing="paper", name="adult")
    assert "nothing is tuned" in tuned.origin([other])


def test_given_constants_take_the_place_of_shipped_ones(tmp_path: Path) -> None:
    path, out = tmp_path / "mine.json", tmp_path / "out"
    Tuned(choices={"standard/digits/neural-rbmle-ga": _choice(0.1)}).write(path)
    arguments = ["reproduce", "figure-3", "--quick", "--tuned", str(path), "--executor", "serial"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    assert result.exit_code == 0, result.output
    folder = out / "quick" / "standard"
    assert "Constants: from mine.json" in (folder / "figure-3.html").read_text()
    assert {run.settings["settings"]["bias"] for run in Store(folder=folder / "runs").all()} == {
        0.1
    }


def test_a_faithful_table_has_policies_as_printed(tmp_path: Path) -> None:
    arguments = ["reproduce", "table-1", "--faithful", "--dataset", "mushroom", "--seeds", "1"]
    policies = ["--policy", "neural-rbmle-ga,neural-rbmle-pc", "--rounds", "8"]
    where = ["--quick", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *policies, *where])
    assert result.exit_code == 0, result.output
    runs = list(Store(folder=tmp_path / "quick" / "paired" / "runs").all())
    assert {(run.policy, len(run.regrets), run.seed) for run in runs} == {
        ("neural-rbmle-ga", 8, 0),
        ("neural-rbmle-pc", 8, 0),
    }
    plan = Plan(is_faithful=True, preprocessing="paired", tuned=Tuned())
    ga, pc = (plan.policy(f"neural-rbmle-{kind}", "mushroom") for kind in ("ga", "pc"))
    assert ga == NeuralRBMLEGA.as_printed(bias=ga.bias)
    assert pc == NeuralRBMLEPC.as_printed(bias=pc.bias)
    assert plan.policy("lin-rbmle", "mushroom").growth(9) == 3.0
    warm = replace(plan, is_warm=True)
    names = {each.name: each.policy for each in warm.tuned_contenders(("mushroom",))}
    ga = names["neural-rbmle-ga (warm)"]
    assert ga == NeuralRBMLEGA.as_printed(bias=ga.bias, objective="mean", warm=True)
    assert "lin-rbmle" in names


def test_the_constant_of_each_likelihood_is_tuned_by_itself(tmp_path: Path) -> None:
    names = [f"neural-rbmle-ga ({kind})" for kind in ("Gaussian", "Bernoulli", "Mixture")]
    arguments = ["tune", "--study", "figure-2", "--dataset", "mushroom", "--seeds", "1"]
    where = ["--rounds", "5", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, "--policy", ",".join(names[1:]), *where])
    assert result.exit_code == 0, result.output
    tuned = Tuned.read(tmp_path / "tuned.json")
    assert set(tuned.choices) == {f"standard/mushroom/{name}" for name in names[1:]}
    data = Data(preprocessing="standard", name="mushroom")
    chosen = {
        each.key: each.policy.bias
        for each in paper.likelihood_contenders(Plan(tuned=tuned))
        if each.dataset == "mushroom"
    }
    assert chosen == {
        names[0]: NeuralRBMLEGA().bias,
        **{name: tuned.constant(name, data) for name in names[1:]},
    }


def test_every_exponent_is_tried_with_values_of_its_own() -> None:
    found = paper.growth_contenders(Plan(quick=True))
    assert [each.name for each in found] == [
        f"α(t) = ν t^{n}" for n in ("0", "0.25", "0.5", "1", "2")
    ]
    assert len({each.values for each in found}) == len(found)
    largest = [each.policy.growth(8000) * max(each.values) for each in found]
    assert max(largest) < 10 * min(largest)


def test_table_3_is_written_and_measures_only_what_is_missing(tmp_path: Path) -> None:
    arguments = ["reproduce", "table-3", "--quick", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "quick" / "standard"
    written = (folder / "table-3.md").read_text()
    for text in ("NeuralUCB", "9,697", "t = 15", "extrapolated by p^2", "extrapolated by p^3"):
        assert text in written
    assert "\\begin{tabular}" in (folder / "table-3.tex").read_text()
    records = {path: path.read_text() for path in (folder / "table-3").iterdir()}
    assert len(records) == 4  # three policies, and the dense inverse
    lost, damaged, *whole = records
    lost.unlink()
    damaged.write_text("{")
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert json.loads(damaged.read_text())["settings"] == json.loads(records[damaged])["settings"]
    assert lost.exists()
    assert all(path.read_text() == records[path] for path in whole)


def test_a_stopped_table_3_keeps_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(timing, "dense_points", stopped)
    result = CliRunner().invoke(app, ["reproduce", "table-3", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "run the same command again to continue" in " ".join(result.output.split())
    assert len(list((tmp_path / "quick" / "standard" / "table-3").iterdir())) == 3


def test_the_clock_of_Z_runs_within_the_round() -> None:
    exact, seen = TimedExact(), []
    policy = POLICIES["neural-ucb"](precision=exact)  # type: ignore[call-arg]  # of policies with a Z
    times = time_policy(policy, 5, exact.clock, lambda wall: seen.append(len(wall)))
    assert seen == [1, 2, 3, 4, 5]
    assert (times.Z > 0).all()
    assert (times.Z < times.wall).all()
    assert "Clock" not in repr(policy)  # a row's name is made of it


def test_the_time_left_is_exact_for_rounds_that_grow_with_their_square() -> None:
    """t rounds take 2t + 3t³."""
    t = np.arange(101.0)
    wall = np.diff(2 * t + 3 * t**3)
    assert seconds_left(wall[:30], 100) == pytest.approx(wall[30:].sum())
    assert seconds_left(wall[:5], 100) is None


def test_a_rank_one_update_in_place_is_the_inverse() -> None:
    g = np.arange(5, dtype=np.float32)
    inverse = np.eye(5, dtype=np.float32)
    sherman_morrison(inverse, g)
    np.testing.assert_allclose(inverse, np.linalg.inv(np.eye(5) + np.outer(g, g)), atol=1e-6)


def test_a_matrix_too_large_for_memory_is_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sizes_that_fit((10, 20, 40), free=10**9) == [10, 20, 40]
    assert sizes_that_fit((10, 20, 40), free=5 * 30**2) == [10, 20, 30]
    assert sizes_that_fit((10, 20, 40), free=0) == [10]
    monkeypatch.setattr(timing, "free_bytes", lambda: 5 * 30**2)
    console = Console(record=True, width=200)
    updates, _ = timing.dense_points(True, tmp_path, console)
    assert [update.p for update in updates] == [20, 30]
    assert "p = 30 is measured in its place" in console.export_text()


def test_free_memory_is_that_of_the_container(tmp_path: Path) -> None:
    machine = tmp_path / "meminfo"
    assert free_bytes(machine, tmp_path) == 0
    machine.write_text("MemTotal: 9 kB\nMemAvailable: 8 kB\n")
    assert free_bytes(machine, tmp_path) == 8192
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert free_bytes(machine, tmp_path) == 4000


def test_an_extrapolation_follows_its_law_and_says_so() -> None:
    half = PARAMETERS // 2
    updates = [Update(p=half, update=0.5, widths=0.5)]
    rows = timing.dense_table(updates, [Inversion(p=half, seconds=1.0)]).rows
    assert [(entries[1].text, entries[2].text.split()[0]) for _, entries in rows] == [
        ("1,000", "measured"),
        ("4,000", "extrapolated"),
        ("1,000", "measured"),
        ("8,000", "extrapolated"),
    ]


def test_one_constant_for_all_problems_is_compared_by_geometric_means(tmp_path: Path) -> None:
    arguments = ["tune", "--pooled", "--dataset", "digits,digits+noise", "--policy", "lin-ucb"]
    more = ["--grid", "exploration=0.1,1,10", "--rounds", "40", "--seeds", "2"]
    where = ["--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *more, *where])
    assert result.exit_code == 0, result.output
    assert "| lin-ucb, exploration | 0.1 | 1 | 10 |" in result.output
    assert "| **1.000** |" in result.output
    assert not (tmp_path / "tuned.json").exists()
    runs = list(Store(folder=tmp_path / "runs").all())
    regrets: dict[str, list[float]] = {}
    for dataset in ("digits", "digits+noise"):
        for value in ("0.1", "1", "10"):
            some = [r for r in runs if r.dataset == dataset and r.policy == f"lin-ucb@{value}"]
            assert {run.seed for run in some} == {1000, 1001}
            mean = sum(run.final_regret for run in some) / 2
            regrets.setdefault(value, []).append(mean)
    products = {value: found[0] * found[1] for value, found in regrets.items()}
    worst = (max(products.values()) / min(products.values())) ** 0.5
    assert f"{worst:.3f} ± " in result.output or f"{worst:.3f}" in result.output


def test_mistakes_get_a_message(tmp_path: Path) -> None:
    for arguments in (
        ["reproduce", "table-9"],
        ["reproduce", "table-1", "--quick", "--tuned", str(tmp_path / "missing.json")],
        ["reproduce", "bakeoff", "--faithful"],
        ["reproduce", "table-1", "--quick", "--warm"],
        ["reproduce", "table-3", "--seeds", "1"],
        ["reproduce", "table-1", "--quick", "--dataset", "nowhere"],
        ["tune", "--dataset", "mushroom", "--policy", "uniform"],
        ["tune"],
        ["tune", "--study", "table-3"],
        ["tune", "--study", "figure-2", "--grid", "bias=1"],
        ["report", str(tmp_path)],
    ):
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, SettingError), arguments


def _choice(constant: float) -> Choice:
    """Return a choice out of the grid."""
    regrets = {f"{value:g}": float(value != constant) for value in GRID}
    return Choice(constant=constant, regrets=regrets, seeds=[1000], rounds=7, versions={})


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].is_of_the_paper])
def test_no_policy_of_a_study_of_the_paper_forgets(name: str) -> None:
    trials = STUDIES[name].trials(Plan(quick=True))
    policies: list[Any] = [
        trial.policy for trial in trials if trial.name != paper.DEFAULT
    ]  # it ships so
    assert policies
    assert all(policy.model.alarm == 0 for policy in policies)
