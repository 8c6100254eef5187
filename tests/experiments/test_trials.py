"""Trials, their store, the executors, and the command that runs them."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import rbmle
from rbmle import Bernoulli, Exact, LinUCB, NeuralUCB, Regression, Uniform
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.datasets import Dataset, load
from rbmle.environments import Classification
from rbmle.experiments import code
from rbmle.experiments.code import FOLDERS, own_code, package_digest
from rbmle.experiments.executors import Processes, RayCluster, Serial, campaign, executor
from rbmle.experiments.store import Store, note_on, of_one_code
from rbmle.experiments.summary import settings_text, summarise
from rbmle.experiments.tables import mean_table
from rbmle.experiments.trial import Run, Trial, describe, parse_description, play
from rbmle.policies import POLICIES
from rbmle.policies.registry import parse_policies, policy_from

QUIET = Console(quiet=True)
RBMLE = [sys.executable, "-c", "from rbmle.cli import main; main()"]


def trial(policy: Policy[Any] | None = None, seed: int = 0, horizon: int = 40) -> Trial:
    return Trial(
        policy=policy or LinUCB(),
        name=type(policy or LinUCB()).__name__,
        environment=Classification(dataset="digits"),
        horizon=horizon,
        seed=seed,
    )


def same(first: Run, second: Run) -> bool:
    return first.id == second.id and bool((first.regrets == second.regrets).all())


def test_an_id_is_a_function_of_the_content() -> None:
    assert trial().id == trial().id
    others = [
        trial(LinUCB(exploration=0.5)),
        trial(seed=1),
        trial(horizon=41),
        trial(Uniform()),
        Trial(
            policy=LinUCB(),
            name="LinUCB",
            environment=Classification(dataset="digits", preprocessing="paper"),
            horizon=40,
            seed=0,
        ),
    ]
    assert len({other.id for other in others} | {trial().id}) == 6


def test_regret_is_the_number_of_wrong_digits() -> None:
    run = play(trial(horizon=200))
    assert set(np.unique(run.regrets)) <= {0.0, 1.0}
    assert run.final_regret == run.regrets.sum()
    assert 0 < run.final_regret < 200
    assert run.versions["rbmle"]


def test_a_stored_run_comes_back_whole(tmp_path: Path) -> None:
    store, run = Store(folder=tmp_path), play(trial())
    assert store.get(trial()) is None
    store.put(run)
    found = store.get(trial())
    assert found is not None
    assert same(found, run)
    assert found.settings == run.settings
    assert [other.id for other in store.all()] == [run.id]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_run_counts_as_missing(tmp_path: Path, share: float) -> None:
    store, run = Store(folder=tmp_path), play(trial())
    store.put(run)
    path = store.path(run.id)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert store.get(trial()) is None
    assert list(store.all()) == []


def test_only_missing_trials_are_run(tmp_path: Path) -> None:
    store = Store(folder=tmp_path)
    trials = [trial(seed=seed) for seed in range(4)]
    campaign(trials[:2], store, Serial(), QUIET)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.run")}
    runs = campaign(trials, store, Serial(), QUIET)
    assert [run.seed for run in runs] == [0, 1, 2, 3]
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert len(list(tmp_path.glob("*.run"))) == 4
    assert not list(tmp_path.glob(".*"))  # no heartbeat and no scratch file is left


def test_processes_make_the_same_runs_as_serial(tmp_path: Path) -> None:
    trials = [trial(NeuralUCB(), seed) for seed in range(3)] + [trial(Uniform())]
    serial = campaign(trials, Store(folder=tmp_path / "a"), Serial(), QUIET)
    parallel = campaign(trials, Store(folder=tmp_path / "b"), Processes(jobs=2), QUIET)
    assert all(same(a, b) for a, b in zip(serial, parallel, strict=True))


def test_ray_makes_the_same_runs_as_serial(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'rbmle[ray]'")
    trials = [trial(seed=seed) for seed in range(3)]
    serial = campaign(trials, Store(folder=tmp_path / "a"), Serial(), QUIET)
    spread = campaign(trials, Store(folder=tmp_path / "b"), RayCluster(jobs=2), QUIET)
    assert all(same(a, b) for a, b in zip(serial, spread, strict=True))


def test_executors_have_names() -> None:
    assert executor("serial") == Serial()
    assert executor("processes", 2) == Processes(jobs=2)
    assert executor("ray://head:10001") == RayCluster(address="ray://head:10001")
    with pytest.raises(SettingError, match="no executor 'dask'"):
        executor("dask")


def test_settings_reach_the_policy() -> None:
    specs, notes = parse_policies(
        "neural-ucb,neural-ts,lin-ucb",
        [
            "neural-ucb.exploration=0.5",
            "neural-ucb.precision=Exact()",
            "*.model.ridge=0.1",
            "neural-ts.model.likelihood=Bernoulli()",
            "*.model.memory=Memory(keep='window', size=9)",
        ],
    )
    first, second, third = (spec.policy() for spec in specs)  # type: Any, Any, Any
    assert (first.exploration, first.precision, first.model.ridge) == (0.5, Exact(), 0.1)
    assert second.model.likelihood == Bernoulli()
    assert second.model.memory.size == 9
    assert third.model.ridge == 0.1
    (note,) = notes
    assert note == "Unchanged, because they have no setting 'model.memory': lin-ucb."


def test_one_policy_may_be_named_with_several_settings() -> None:
    text = 'neural-ucb:exploration=1:model.memory=Memory(keep="window",size=50),neural-ucb:exploration=2'
    specs, _ = parse_policies(f"{text}, neural-ucb exploration=2", ["neural-ucb.model.ridge=0.5"])
    first, second = (spec.policy() for spec in specs)  # type: Any, Any
    assert (first.exploration, first.model.memory.size, first.model.ridge) == (1.0, 50, 0.5)
    assert (second.exploration, second.model.ridge) == (2.0, 0.5)
    assert {spec.name for spec in specs} == {"neural-ucb"}


@pytest.mark.parametrize("text", ["bernoulli", "Bernoulli", "Bernoulli()"])
def test_a_part_is_named_as_one_likes(text: str) -> None:
    policy: Any = policy_from(f"neural-ucb:model.likelihood={text}")
    assert policy.model.likelihood == Bernoulli()


def test_a_policy_comes_from_a_name_a_class_or_itself() -> None:
    policy = NeuralUCB(exploration=0.5)
    assert policy_from("neural-ucb:exploration=0.5") == policy
    assert policy_from(NeuralUCB) == NeuralUCB()
    assert policy_from(policy) is policy
    for wrong in (3, None, Bernoulli, Bernoulli()):
        with pytest.raises(SettingError, match="not a policy"):
            policy_from(wrong)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (
            "neural-ubc",
            [],
            "no policy 'neural-ubc' .did you mean 'neural-ucb'.*there are neural-rbmle-ga",
        ),
        ("lin-ucb", ["lin-ucb.explore=1"], "no setting 'explore'; it has model, exploration"),
        ("lin-ucb", ["lin-ts.exploration=1"], "not among the policies lin-ucb"),
        ("lin-ucb", ["lin-ucb"], "write policy.key=value"),
        ("lin-ucb", ["lin-ucb.exploration=-1"], "must be a finite number, 0 or more"),
        ("lin-ucb", ["lin-ucb.exploration=abc"], "`exploration` must be a number, got abc"),
        ("lin-ucb", ["lin-ucb.exploration=True"], "`exploration` must be a number, got True"),
        ("lin-ucb", ["lin-ucb.exploration.deeper=1"], "float has no setting 'deeper'"),
        ("lin-ucb", ["*.model.network.width=5"], "none of the policies lin-ucb has a setting"),
        ("neural-ucb:model.network.width=5.5", [], "`width` must be a whole number, got 5.5"),
        (
            "neural-ucb:model.network.start=no",
            [],
            "`start` must be standard, zero or paired, got no",
        ),
        ("neural-ucb:model.likelihood=exact", [], r"a Likelihood \(Bernoulli, Gaussian, Mixture\)"),
        ("neural-ucb:model.memory=Memory(sice=1)", [], "Memory has no setting 'sice'"),
        ("neural-ucb:exploration", [], "write key=value"),
        ("nowhere:Nobody", [], "cannot be imported"),
        ("json:JSONEncoder", [], "is not a policy: it has no init, index"),
        ("os:getcwd", [], "expected a class"),
        (" , ", [], "no policy is named"),
    ],
)
def test_a_mistaken_setting_gets_a_message(text: str, settings: list[str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_policies(text, settings)


def test_run_shows_a_table_and_writes_records(tmp_path: Path) -> None:
    arguments = ["run", "--dataset", "digits", "--policy", "lin-ucb,uniform", "--rounds", "50"]
    files = ["--out", str(tmp_path / "out"), "--json", str(tmp_path / "records.json")]
    result = CliRunner().invoke(app, [*arguments, "--seeds", "2", "--executor", "serial", *files])
    assert result.exit_code == 0, result.output
    assert "lin-ucb" in result.output
    records = json.loads((tmp_path / "records.json").read_text())
    assert len(records) == 4
    keys = {"dataset", "policy", "seed", "rounds", "final_regret", "cpu_seconds", "wall_seconds"}
    assert keys | {"settings"} <= set(records[0])
    assert (tmp_path / "out" / "digits.png").stat().st_size > 5000


def test_the_error_on_the_screen_is_the_one_of_the_report(tmp_path: Path) -> None:
    command = ["run", "--dataset", "digits", "--policy", "lin-ts", "--rounds", "60", "--seeds", "3"]
    result = CliRunner().invoke(app, [*command, "--executor", "serial", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    final = [run.final_regret for run in Store(folder=tmp_path / "runs").all()]
    error = float(np.std(final, ddof=1) / 3**0.5)
    assert "± std error" in result.output
    assert f"{error:,.1f} │" in result.output
    assert f"± {error:.1f}" in str(mean_table(summarise(Store(folder=tmp_path / "runs").all())))


def test_a_picture_of_another_run_is_not_overwritten(tmp_path: Path) -> None:
    command = ["run", "--dataset", "digits", "--seeds", "1", "--executor", "serial"]
    names = {"50": "digits.png", "60": "digits-2.png", "70": "digits-3.png"}
    pictures: dict[str, bytes] = {}
    for rounds, name in [*names.items(), *names.items()]:  # the second time, nothing is new
        options = ["--rounds", rounds, "--policy", "lin-ucb", "--out", str(tmp_path)]
        result = CliRunner().invoke(app, [*command, *options])
        assert f"The curves are in {tmp_path / name}." in result.output
        pictures.setdefault(name, (tmp_path / name).read_bytes())
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.png")} == pictures


def test_brackets_are_printed_as_they_are(tmp_path: Path) -> None:
    data = tmp_path / "my[red].csv"
    data.write_text("a,b,label\n" + "1,2,x\n3,4,y\n" * 20)
    command = ["run", "--dataset", str(data), "--target", "label", "--policy", "uniform"]
    options = ["--rounds", "20", "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    records = ["--json", str(tmp_path / "a[red].json")]
    output = CliRunner().invoke(app, [*command, *options, *records], env={"COLUMNS": "200"}).output
    assert "Regret on my[red] after 20 rounds" in output
    assert "a[red].json" in output


def test_run_takes_a_users_csv(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["age,colour,clicked"]
    for _ in range(200):
        age, colour = rng.integers(20, 60), rng.choice(["red", "blue"])
        lines.append(f"{age},{colour},{'yes' if colour == 'red' else 'no'}")
    (tmp_path / "my.csv").write_text("\n".join(lines))
    arguments = ["run", "--dataset", str(tmp_path / "my.csv"), "--target", "clicked"]
    more = ["--policy", "lin-ucb,uniform", "--rounds", "200", "--executor", "serial"]
    result = CliRunner().invoke(app, [*arguments, *more, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "digitz"], "digitz"),
        (["--dataset", "digits", "--policy", "nobody"], "no policy 'nobody'"),
        (["--dataset", "digits", "--rounds", "2000"], "1797"),
        (["--dataset", "digits", "--preprocess", "magic"], "magic"),
        (["--dataset", "nowhere.csv", "--target", "y"], "nowhere.csv"),
        (["--dataset", "digits", "--executor", "dask"], "dask"),
        (["--dataset", "digits", "--jobs", "0"], "jobs must be at least 1, or -1 for one on each"),
        (["--dataset", "digits", "--jobs", "-2"], "got -2"),
    ],
)
def test_a_mistake_gets_one_line_and_the_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    command = [*RBMLE, "run", *arguments, "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_a_killed_campaign_continues_where_it_was(tmp_path: Path) -> None:
    """kill −9 in the midst; then only what is missing is run, and all is as if nothing had happened."""
    arguments = ["run", "--dataset", "digits", "--policy", "neural-ucb", "--rounds", "1500"]
    command = [*RBMLE, *arguments, "--seeds", "6", "--executor", "serial", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runs = tmp_path / "runs"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(runs.glob("*.run"))) < 2:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*.run")}
    assert 2 <= len(before) < 6
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = {path: path.stat().st_mtime_ns for path in runs.glob("*.run")}
    assert len(after) == 6
    assert all(after[path] == stamp for path, stamp in before.items())
    unbroken = Serial().map(
        [trial(NeuralUCB(), s, 1500) for s in range(6)], Store(folder=tmp_path / "u")
    )
    finals = sorted(run.final_regret for run in unbroken)
    assert sorted(run.final_regret for run in Store(folder=runs).all()) == finals


def test_a_digest_is_that_of_the_code_that_decides(tmp_path: Path) -> None:
    root = Path(rbmle.__file__).parent
    for name in ("a", "b", "c", "d"):
        for folder in (*FOLDERS, "experiments", "cli"):
            shutil.copytree(
                root / folder, tmp_path / name / folder, ignore=lambda *_: ["__pycache__", "files"]
            )
        shutil.copy(root / "likelihoods.py", tmp_path / name)
    assert package_digest(tmp_path / "a") == own_code().digest
    _edit(tmp_path / "b" / "cli" / "running.py")
    assert package_digest(tmp_path / "b") == own_code().digest  # it shows, and decides nothing
    _edit(tmp_path / "c" / "policies" / "lin_ucb.py")
    _edit(tmp_path / "d" / "experiments" / "trial.py")
    assert len({package_digest(tmp_path / name) for name in ("a", "c", "d")}) == 3


def test_runs_of_other_code_are_kept_but_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, console = Store(folder=tmp_path / "runs"), Console(record=True, width=200)
    (old,) = campaign([trial()], store, Serial(), console)
    with monkeypatch.context() as edited:
        edited.setattr(code, "package_digest", lambda root, folders: "f" * 16)
        (new,) = campaign([trial()], store, Serial(), console)
        assert new.id != old.id
        assert f"1 run in {tmp_path} is of other code" in console.export_text()
        assert [run.id for run in of_one_code(store.all(), own_code()).used] == [new.id]
        note = note_on(of_one_code(store.all(), own_code()), tmp_path)
        assert "is of other code (version" in note
    unknown = replace(own_code(), digest="0" * 16)
    newest = of_one_code(store.all(), unknown)
    assert ([run.id for run in newest.used], newest.is_current) == ([new.id], False)
    assert note_on(newest, tmp_path).startswith(f"No run in {tmp_path} is of the current code")
    summary = summarise(store.all())
    assert [len(cell.seeds) for cell in summary.cells] == [1, 1]  # never averaged
    titles = {f"LinUCB (code {title})" for title in (old.code.title, "ffffffff")}
    assert set(summary.policies) == titles


def test_a_run_without_a_code_is_of_other_code(tmp_path: Path) -> None:
    run = play(trial())
    settings = {key: value for key, value in run.settings.items() if key != "code"}
    store = Store(folder=tmp_path)
    store.put(replace(run, settings=settings))
    assert [each.title for each in store.codes()] == ["unknown"]
    assert not of_one_code(store.all(), own_code()).is_current


def test_a_run_of_an_older_version_has_its_settings_as_json(tmp_path: Path) -> None:
    """They used to be stored as the `repr` of the policy."""
    policy = NeuralUCB(exploration=0.5, model=Regression(likelihood=Bernoulli()))
    run = play(trial(policy))
    store = Store(folder=tmp_path)
    store.put(replace(run, settings=run.settings | {"settings": repr(policy)}))
    (found,) = store.all()
    assert found.settings == run.settings
    assert found.settings["settings"]["model"]["likelihood"] == {"class": "Bernoulli"}
    assert found.settings["settings"]["exploration"] == 0.5


@pytest.mark.parametrize("name", POLICIES)
def test_settings_as_json_say_as_much_as_the_repr(name: str) -> None:
    policy = policy_from(name)
    described = describe(policy)
    assert json.loads(json.dumps(described)) == described == parse_description(repr(policy))
    assert settings_text(described) == repr(policy)


def test_an_id_is_found_once_and_again_in_another_process(tmp_path: Path) -> None:
    made = trial()
    assert made.id is made.id
    copy = pickle.loads(pickle.dumps(made))
    assert (copy, copy.id) == (made, made.id)
    assert not {"id", "settings"} & set(vars(pickle.loads(pickle.dumps(made))))


def test_no_round_looks_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read once, before the first round, is at hand."""
    looked: list[str] = []

    def look(name: str, **options: Any) -> Dataset:
        looked.append(name)
        return load(name, **options)

    monkeypatch.setattr("rbmle.environments.classification.load", look)
    few, many = play(trial(horizon=5)), len(looked)
    looked.clear()
    assert len(play(trial(horizon=50)).regrets) > len(few.regrets)
    assert len(looked) == many


def test_two_files_of_one_name_are_two_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, right in (("a", "red"), ("b", "blue")):
        rows = [f"{colour},{int(colour == right)}" for colour in ("red", "blue") * 30]
        Path(name).mkdir()
        Path(name, "data.csv").write_text("\n".join(["colour,y", *rows, f"{right},1"]))
    command = ["run", "--dataset", "a/data.csv,b/data.csv", "--target", "y", "--seeds", "2"]
    policy = ["--policy", "lin-ucb", "--executor", "serial", "--json", "records.json"]
    result = CliRunner().invoke(app, [*command, *policy])
    assert result.exit_code == 0, result.output
    records = json.loads(Path("records.json").read_text())
    assert [record["dataset"] for record in records] == ["a/data"] * 2 + ["b/data"] * 2
    assert result.output.count("mean of 2 seeds") == 2
    assert Path("results/run/a-data.png").exists()
    tune = ["tune", *command[1:5], "--policy", "lin-ucb", "--rounds", "20", "--executor", "serial"]
    assert CliRunner().invoke(app, tune).exit_code == 0
    choices = json.loads(Path("results/tune/tuned.json").read_text())
    assert set(choices) == {"standard/a/data/lin-ucb", "standard/b/data/lin-ucb"}
    for place, constant in (("a", 0.3), ("b", 0.7)):
        choices[f"standard/{place}/data/lin-ucb"]["constant"] = constant
    Path("tuned.json").write_text(json.dumps(choices))
    result = CliRunner().invoke(app, [*command, *policy, "--tuned", "tuned.json"])
    assert result.exit_code == 0, result.output
    settings = [r["settings"]["settings"] for r in json.loads(Path("records.json").read_text())]
    assert [each["exploration"] for each in settings] == [0.3, 0.3, 0.7, 0.7]


def test_a_file_that_was_moved_is_the_same_data(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.csv").write_text("x,y\n" + "1,0\n2,1\n" * 9)
    first, second = (
        replace(trial(), environment=Classification(dataset=str(path), target="y"), horizon=9)
        for path in sorted(tmp_path.glob("*/data.csv"))
    )
    assert first.id == second.id


def _edit(path: Path) -> None:
    path.write_text(path.read_text() + "\n# edited\n")
