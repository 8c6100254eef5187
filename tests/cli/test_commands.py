"""The command line as a user meets it: help, examples, mistakes, settings, lists and completion."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from rbmle.cli import app
from rbmle.cli.app import COMPARE, INSPECT, JUDGE, SERVE
from rbmle.cli.listing import _settings
from rbmle.cli.options import (
    complete_dataset,
    complete_policy,
    complete_study,
    named_policies,
)
from rbmle.cli.serving import config_text
from rbmle.policies import POLICIES
from rbmle.service.settings import ServeSettings, ServiceConfiguration, read_settings
from rbmle.studies import MEASURED, STUDIES

MAIN = [sys.executable, "-c", "from rbmle.cli import main; main()"]


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "160"})


def ended(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*MAIN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | environment,
    )


def commands(group: Any = None, prefix: str = "rbmle") -> Iterator[tuple[str, Any]]:
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


COMMANDS = dict(commands())
EXAMPLES = [
    line.strip()
    for command in [typer.main.get_command(app), *COMMANDS.values()]
    for line in (command.help or "").splitlines()
    if line.strip().startswith("rbmle ")
]


def test_help_says_what_it_does_with_three_examples_and_four_groups() -> None:
    text = invoke("--help").output
    assert "Choose one of several actions for each user" in text
    assert len(re.findall(r"^   rbmle \w+", text, re.MULTILINE)) == 3
    places = [text.index(f"─ {group} ─") for group in (COMPARE, JUDGE, SERVE, INSPECT)]
    assert places == sorted(places)
    names = {name.split()[1] for name in COMMANDS}
    assert all(re.search(rf"^│ {name} ", text, re.MULTILINE) for name in names)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_every_option(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    for parameter in command.params:
        is_hidden = getattr(parameter, "hidden", False)
        assert is_hidden or parameter.name == "help" or parameter.help, parameter.name


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_help_can_be_typed(example: str) -> None:
    words = shlex.split(example)
    name = max((n for n in COMMANDS if example.startswith(n)), key=len)
    rest = words[len(name.split()) :]
    context = COMMANDS[name].make_context(name, rest)  # raises if it cannot be parsed
    assert context.command is COMMANDS[name]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("run --dataset digits --policy lin-ucbb", "'lin-ucb'"),
        ("run --dataset adlt --policy lin-ucb", "'adult'"),
        ("run --dataset digits --policy lin-ucb --preprocess standart", "'standard'"),
        ("reproduce tabel-1", "'table-1'"),
        ("tune --study figur-1", "'figure-1'"),
        ("policies neural-uc", "'neural-ucb'"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_one_in_one_line(words: str, meant: str) -> None:
    process = ended(*words.split())
    assert process.returncode == 2
    assert f"(did you mean {meant}?)" in process.stderr
    assert process.stderr.startswith("rbmle: there is no ")
    assert process.stderr.count("\n") == 1


def test_a_mistyped_command_gets_the_nearest_one() -> None:
    assert "Did you mean 'run'?" in invoke("rnu").output


def run(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    records = folder / "records.json"
    common = ["--dataset", "digits", "--rounds", "30", "--seeds", "1", "--executor", "serial"]
    places = ["--out", str(folder / "out"), "--json", str(records)]
    result = invoke("run", *common, *places, *arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(records.read_text())
    return found


def test_settings_behind_a_name_are_those_of_the_older_option(tmp_path: Path) -> None:
    (first,) = run(tmp_path, "--policy", "lin-ucb:exploration=0.5:model.ridge=2")
    older = ["--set", "lin-ucb.exploration=0.5", "--set", "*.model.ridge=2"]
    (second,) = run(tmp_path, "--policy", "lin-ucb", *older)
    assert first == second
    assert first["settings"]["settings"]["exploration"] == 0.5
    assert first["settings"]["settings"]["model"]["ridge"] == 2.0


def test_a_setting_behind_all_is_for_every_policy_that_has_it() -> None:
    console = Console(file=io.StringIO(), width=160)
    specs = named_policies("all:model.ridge=0.7", None, console)
    models = [getattr(spec.policy(), "model", None) for spec in specs]
    assert {model.ridge for model in models if model is not None} == {0.7}
    printed = console.file.getvalue()  # type: ignore[attr-defined]  # of a StringIO
    assert "Unchanged, because they have no setting 'model.ridge': uniform" in printed


def test_a_run_prints_a_table_keeps_its_trials_and_does_not_repeat_them(tmp_path: Path) -> None:
    arguments = (
        "run --dataset digits --rounds 30 --seeds 2 --policy uniform,lin-ucb --executor serial"
    )
    folder = ["--out", str(tmp_path / "out")]
    first = invoke(*arguments.split(), *folder)
    assert first.exit_code == 0, first.output
    for text in ("Regret on digits after 30 rounds, mean of 2 seeds", "uniform", "lin-ucb"):
        assert text in first.output
    assert len(list((tmp_path / "out" / "runs").glob("*.run"))) == 4
    assert (tmp_path / "out" / "digits.png").stat().st_size > 1_000
    again = invoke(*arguments.split(), *folder)
    assert "4 of 4 trials are in" in again.output


def test_policies_are_listed_with_their_formula() -> None:
    text = invoke("policies").output
    for name, kind in POLICIES.items():
        assert name in text
        assert kind.__name__ in text


def test_a_policy_is_shown_with_formula_settings_defaults_and_cost() -> None:
    text = invoke("policies", "lin-ucb").output
    assert "θ̂ᵀx + γ ‖x‖_{V⁻¹}" in text
    assert re.search(r"│ exploration +│ 1\.0 +│ γ", text)
    assert re.search(r"│ model\.ridge +│ 1\.0 +│ λ", text)
    assert "--policy lin-ucb:exploration=1.0" in text
    assert re.search(r"A round costs [\d.e-]+ ms of CPU time on this machine", text)
    assert "It has no settings." in invoke("policies", "uniform").output


@pytest.mark.parametrize("name", POLICIES)
def test_every_setting_of_a_policy_is_listed_with_its_default(name: str) -> None:
    policy = POLICIES[name]()
    shown = {key: value for key, value, _ in _settings(policy)}
    for field in fields(policy):  # type: ignore[arg-type]  # every policy is a dataclass
        value = getattr(policy, field.name)
        assert shown[field.name] in (repr(value), type(value).__name__)


def test_studies_are_listed_with_a_line_each() -> None:
    text = invoke("studies").output
    for name, study in (STUDIES | MEASURED).items():
        assert re.search(rf"│ {name} +│ {re.escape(study.title)} +│", text), name


def test_the_printed_configuration_is_one_that_can_be_read(tmp_path: Path) -> None:
    printed = ended("serve", "--print-config", "--port", "9000", "--data", str(tmp_path)).stdout
    toml = tmp_path / "serve.toml"
    toml.write_text(printed)
    assert read_settings(toml, {}) == ServeSettings(port=9000, data=str(tmp_path))
    for name in ServeSettings.__struct_fields__:
        assert re.search(rf"^(# )?({name} =|\[{name}\])", printed, re.MULTILINE), name
    for name, default in ServiceConfiguration().to_json().items():
        shown = "" if default is None else f" {json.dumps(default)}"
        assert f"# {name} ={shown}\n" in printed, name
    assert list(tmp_path.iterdir()) == [toml]  # nothing was started


def test_the_printed_configuration_has_tables_and_no_password() -> None:
    text = config_text(
        ServeSettings(
            log="postgresql://me:s3cret@db/x", configuration={"log_retention_days": 30, "a": "b"}
        )
    )
    assert "s3cret" not in text
    assert tomllib.loads(text)["configuration"] == {"log_retention_days": 30, "a": "b"}


def test_a_file_takes_settings_behind_the_name_of_its_policy(tmp_path: Path) -> None:
    toml = tmp_path / "serve.toml"
    toml.write_text('policy = "neural-ucb:exploration=0.5:model.ridge=2"')
    printed = tomllib.loads(ended("serve", "--print-config", "--config", str(toml)).stdout)
    assert printed["policy"] == "neural-ucb"
    assert printed["policy_settings"] == "exploration=0.5 model.ridge=2"


@pytest.mark.parametrize(
    "options",
    [
        ["--policy", "neural-ucb:exploration=0.5:model.ridge=2"],
        ["--policy", "neural-ucb", "--set", "exploration=0.5 model.ridge=2"],
        ["--policy", "neural-ucb:exploration=0.5", "--set", "model.ridge=2"],
    ],
)
def test_a_service_takes_settings_behind_the_name_of_its_policy(options: list[str]) -> None:
    printed = tomllib.loads(ended("serve", "--print-config", *options).stdout)
    assert printed["policy"] == "neural-ucb"
    assert printed["policy_settings"] == "exploration=0.5 model.ridge=2"


def test_names_are_completed_behind_the_last_comma() -> None:
    assert complete_policy("lin-u") == ["lin-ucb"]
    assert complete_policy("uniform,lin-t") == ["uniform,lin-ts"]
    assert complete_dataset("adu") == ["adult"]
    assert complete_study("figure-") == ["figure-1", "figure-2", "figure-3", "figure-4"]


def test_a_shell_completes_commands_and_names() -> None:
    bash = {"_RBMLE_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "rbmle eva"}
    assert ended(**bash).stdout.split() == ["evaluate"]
    words = {"COMP_CWORD": "3", "COMP_WORDS": "rbmle run --policy lin-u"}
    assert ended(**bash | words).stdout.split() == ["lin-ucb"]


def test_the_version_is_that_of_the_package() -> None:
    import rbmle

    assert invoke("--version").output == f"rbmle {rbmle.__version__}\n"
