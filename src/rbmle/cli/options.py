"""Options that several commands share, with parsing and shell completion of their values."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rbmle.cli.app import print_line

if TYPE_CHECKING:
    from rbmle.environments import Environment
    from rbmle.policies.registry import Specification


def complete_policy(incomplete: str) -> list[str]:
    """Return the names of policies that complete the typed text."""
    from rbmle.policies import POLICIES
    from rbmle.policies.registry import RIVALS

    return _complete(incomplete, ["all", *POLICIES, *RIVALS])


def complete_dataset(incomplete: str) -> list[str]:
    """Return the names of datasets and synthetic problems that complete the typed text."""
    from rbmle.datasets import DATASETS
    from rbmle.environments import DRAWN

    return _complete(incomplete, [*DATASETS, *DRAWN])


def complete_study(incomplete: str) -> list[str]:
    """Return the names of studies that complete the typed text."""
    from rbmle.studies import MEASURED, STUDIES

    return _complete(incomplete, ["all", *STUDIES, *MEASURED])


def _complete(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


Datasets = Annotated[
    str,
    typer.Option(
        "--dataset",
        autocompletion=complete_dataset,
        help="Datasets, separated by commas: names (see rbmle datasets) or paths of files. A suffix changes "
        "the rewards, as in adult+noise.",
    ),
]
POLICY_HELP = (
    "Policies, separated by commas, with settings after the name: lin-ucb:exploration=0.5; or all."
)
Target = Annotated[
    str | None, typer.Option(help="For a file: the column with the label.", show_default=False)
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RBMLE_DATA", help="Folder with datasets as Parquet files."),
]
Drop = Annotated[
    str,
    typer.Option(help="For a file: columns to leave out, separated by commas.", show_default=False),
]
Preprocessing = Annotated[
    str,
    typer.Option(
        "--preprocess", help="How columns become numbers: standard, online, paper or paired."
    ),
]
# Earlier releases had it. It still works, but is hidden: settings after the name do the same.
SettingsOption = Annotated[list[str] | None, typer.Option("--set", hidden=True)]
Jobs = Annotated[int, typer.Option(help="Trials that run at the same time; -1: one per core.")]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="serial, processes, ray, or a ray:// address.")
]


def environments(
    dataset: str,
    target: str | None,
    drop: str,
    preprocess: str,
    data_dir: Path | None,
    console: Console,
) -> dict[str, "Environment"]:
    """Return the problem of each named dataset, and print how a file was read."""
    from rbmle.environments import notice_of, problem

    worlds = {
        name: problem(
            name,
            target=target,
            drop=tuple(split_names(drop)),
            preprocessing=preprocess,
            data_dir=data_dir,
        )
        for name in split_names(dataset)
    }
    for world in worlds.values():
        if notice := notice_of(world):
            print_line(notice, console)
    return worlds


def named_policies(
    text: str, settings: list[str] | None, console: Console
) -> list["Specification"]:
    """Return the named policies, including those of modules in the current folder.

    `all:key=value` sets every policy that has the setting.
    """
    from rbmle.policies.registry import ALL, EVERY, parse_policies
    from rbmle.policies.settings import split

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    name, *common = split(text, ": \t\n") or [""]
    if name == ALL and common:
        text, settings = ALL, [*(f"{EVERY}.{setting}" for setting in common), *(settings or [])]
    specs, notes = parse_policies(text, settings or [])
    for note in notes:
        print_line(note, console)
    return specs


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]
