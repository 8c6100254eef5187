"""Policies from outside: named by module:Class or by an entry point, run, tuned, and known by their source."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rbmle import Bandit, NeuralUCB
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.environments import Classification
from rbmle.experiments.code import outside_code
from rbmle.experiments.trial import Trial
from rbmle.policies import registry
from rbmle.policies.registry import name_of, parse_policies, policy_from

RBMLE = [sys.executable, "-c", "from rbmle.cli import main; main()"]
HELPER = "FACTOR = 1.0\n"
POLICY = '''
from dataclasses import dataclass, field

import numpy as np

from rbmle.models.linear import Ridge
from rbmle.policies.base import ModelPolicy

from HELPER import FACTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(ModelPolicy):
    """Index θ̂ᵀx + c ‖x‖_{V⁻¹}."""

    model: Ridge = field(default_factory=Ridge)
    weight: float = 0.1

    def index(self, state, contexts, rng):
        mean, norm_squared = self.model.estimates(state, contexts)
        return mean + FACTOR * self.weight * np.sqrt(norm_squared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails(Mine):
    def index(self, state, contexts, rng):
        if state.round == 9:
            raise RuntimeError("no\\nmore")
        return Mine.index(self, state, contexts, rng)


@dataclass
class Unfrozen:
    init, index, update, grow = Mine.init, Mine.index, Mine.update, Mine.grow


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy(Mine):
    must: int
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the current folder; each test has its own."""
    name, helper = f"mine_{tmp_path.name}", f"helper_{tmp_path.name}"
    (tmp_path / f"{helper}.py").write_text(HELPER)
    (tmp_path / f"{name}.py").write_text(POLICY.replace("HELPER", helper))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def rbmle(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RBMLE, *arguments], capture_output=True, text=True, check=False)


def test_a_policy_of_the_current_folder_runs_in_worker_processes(module: str) -> None:
    name = f"{module}:Mine"
    command = ["run", "--dataset", "digits", "--rounds", "40", "--seeds", "1", "--jobs", "2"]
    policies = ["--policy", f"{name}:weight=0.5,{name},lin-ucb:exploration=0.1"]
    first = rbmle(*command, *policies, "--json", "first.json")
    assert first.returncode == 0, first.stderr
    records = {r["policy"]: r for r in json.loads(Path("first.json").read_text())}
    assert set(records) == {f"{name} (weight=0.5)", f"{name} (weight=0.1)", "lin-ucb"}
    assert records[f"{name} (weight=0.1)"]["final_regret"] == records["lin-ucb"]["final_regret"]
    again = rbmle(*command, *policies, "--executor", "serial")
    assert "3 of 3 trials are in" in again.stdout
    for file, old, new in (
        (f"helper_{Path.cwd().name}.py", "1.0", "9.0"),  # a module beside it
        (f"{module}.py", "np.sqrt(norm_squared)", "norm_squared"),
    ):
        Path(file).write_text(Path(file).read_text().replace(old, new))
        edited = rbmle(*command, *policies, "--executor", "serial")
        assert "1 of 3 trials are in" in edited.stdout  # lin-ucb's
        assert "runs in results/run are of other code" in edited.stdout.replace("\n", " ")


def test_a_policy_of_the_current_folder_is_tuned(module: str) -> None:
    command = ["--dataset", "digits", "--rounds", "30", "--seeds", "1", "--executor", "serial"]
    policy = ["--policy", f"{module}:Mine,uniform"]
    nothing = CliRunner().invoke(app, ["tune", *command, *policy])
    assert isinstance(nothing.exception, SettingError)
    assert "--grid" in str(nothing.exception)
    tuned = CliRunner().invoke(app, ["tune", *command, *policy, "--grid", "weight=0.5,2"])
    assert tuned.exit_code == 0, tuned.output
    assert "Nothing to tune in uniform." in tuned.output
    (key,) = choices = json.loads(Path("results/tune/tuned.json").read_text())
    assert key == f"standard/digits/{module}:Mine"
    assert choices[key]["setting"] == "weight"
    choices[key]["constant"] = 0.25
    Path("mine.json").write_text(json.dumps(choices))
    run = ["run", *command, *policy, "--tuned", "mine.json", "--json", "records.json"]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    assert "not tuned: uniform on digits" in result.output.replace("\n", " ")
    assert '"weight": 0.25' in Path("records.json").read_text()
    other = CliRunner().invoke(app, [*run, "--set", f"{module}:Mine.weight=0.75"])
    assert other.exit_code == 0, other.output
    assert '"weight": 0.75' in Path("records.json").read_text()  # what is set stands before
    untuned = CliRunner().invoke(app, ["run", *command, "--policy", "lin-ts", *run[-4:-2]])
    assert "tune those first" in str(untuned.exception)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_an_error_inside_a_trial_gets_one_line(module: str, executor: str) -> None:
    command = ["run", "--dataset", "digits", "--rounds", "40", "--seeds", "1"]
    result = rbmle(*command, "--policy", f"{module}:Fails", "--executor", executor)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"rbmle: {module}:Fails on digits with seed 0: RuntimeError: no more ")
    assert f"({module}.py, line" in line


def test_a_class_other_than_a_policy_gets_a_message(module: str) -> None:
    for name, message in (
        ("Nobody", "cannot be imported"),
        ("Unfrozen", "frozen dataclass"),
        ("Needy", "give each field a default"),
        ("np", "expected a class"),
    ):
        with pytest.raises(SettingError, match=message):
            policy_from(f"{module}:{name}")
    with pytest.raises(SettingError, match=f"{module}:Mine: `weight` must be a number"):
        policy_from(f"{module}:Mine:weight=much")


def test_a_policy_from_outside_is_saved_and_loaded(module: str) -> None:
    policy = policy_from(f"{module}:Mine:weight=0.5")
    bandit = Bandit(policy, arms=2, features=3)
    bandit.learn(bandit.decide([1.0, 0.0, 2.0]), 1.0)
    bandit.save("mine.rbmle")
    again = Bandit.load("mine.rbmle", policy=policy_from(f"{module}:Mine:weight=0.5"))
    assert (again.decide([1, 1, 1]).indices == bandit.decide([1, 1, 1]).indices).all()
    assert name_of(policy) == f"{module}:Mine"


def test_code_from_outside_is_that_of_all_parts(module: str) -> None:
    assert outside_code(NeuralUCB()) == ()
    (own,) = outside_code(policy_from(f"{module}:Mine"))
    assert own[0] == module
    trial = Trial(
        policy=policy_from(f"{module}:Mine"),
        name="mine",
        environment=Classification(dataset="digits"),
        horizon=9,
        seed=0,
    )
    assert trial.code.outside == (own,)
    assert trial.settings["code"]["outside"] == dict([own])


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=registry.GROUP)


def install(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    """Let packages register policies."""

    def entry_points(group: str) -> Any:
        assert group == "rbmle.policies"
        return points

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_an_installed_policy_has_a_name(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, entry("mine", f"{module}:Mine"), entry("lin-ucb", f"{module}:Mine"))
    policy: Any = policy_from("mine:weight=2")
    assert (policy.weight, name_of(policy)) == (2.0, "mine")
    assert type(policy_from("lin-ucb")).__name__ == "LinUCB"  # a name of ours stays ours
    specs, _ = parse_policies("all")
    assert [spec.name for spec in specs][-2:] == ["uniform", "mine"]
    listed = CliRunner().invoke(app, ["policies"], env={"COLUMNS": "400"}).output
    assert "an unknown package" in listed
    assert f"write {module}:Mine" in listed


def test_two_packages_with_one_name_get_a_message(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, entry("mine", f"{module}:Mine"), entry("mine", f"{module}:Fails"))
    with pytest.raises(SettingError, match=r"registered by .* and .*; name the one you mean"):
        policy_from("mine")
    with pytest.raises(SettingError, match=r"there is no policy 'your'; .* uniform, mine$"):
        policy_from("your")


def test_an_installed_policy_that_cannot_be_imported_gets_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, entry("broken", "no_such_module:Policy"))
    with pytest.raises(SettingError, match="the policy 'broken' of an unknown package cannot be"):
        policy_from("broken")
    listed = CliRunner().invoke(app, ["policies"], env={"COLUMNS": "400"})
    assert listed.exit_code == 0
    assert "no_such_module" in listed.output
