"""Options that several commands share, and how their values are read."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rbmle.environments import Environment
    from rbmle.policies.specification import Specification

Datasets = Annotated[
    str,
    typer.Option(
        "--dataset", help="Names or paths of datasets, with commas between; adult+noise: altered."
    ),
]
Target = Annotated[str | None, typer.Option(help="The label's column, for a path.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RBMLE_DATA", help="Folder with datasets as Parquet files."),
]
Drop = Annotated[str, typer.Option(help="Columns of a file to leave out, with commas between.")]
Preprocessing = Annotated[
    str, typer.Option("--preprocess", help="standard, online, paper or paired.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="policy.key=value; * in place of the policy for all that have it."),
]
Jobs = Annotated[int, typer.Option(help="Trials at a time; -1 for one on each core.")]
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
    """Return the problem of each dataset that is named, and print how a file was read."""
    from rbmle.environments import DRAWN, Classification, altered, split

    found: dict[str, Environment] = {}
    for name in listed(dataset):
        plain, changes = split(name)
        if plain in DRAWN:
            found[name] = altered(DRAWN[plain], changes)
            continue
        world = Classification(
            dataset=plain,
            target=target,
            drop=tuple(listed(drop)),
            preprocessing=preprocess,
            data_dir=data_dir,
        )
        if world.notice:
            console.print(world.notice, highlight=False, soft_wrap=True)
        found[name] = altered(world, changes)
    return found


def named_policies(
    text: str, settings: list[str] | None, console: Console
) -> list["Specification"]:
    """Return the policies that are named, those of modules in the current folder among them."""
    from rbmle.policies.specification import specifications

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    specs, notes = specifications(text, settings or [])
    for note in notes:
        console.print(note, highlight=False, soft_wrap=True)
    return specs


def listed(text: str) -> list[str]:
    """Return what stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
