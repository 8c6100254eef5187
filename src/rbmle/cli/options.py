"""Options that several commands share, and how their values are read."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rbmle.environments import Environment

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RBMLE_DATA", help="Folder with datasets as Parquet files."),
]
Drop = Annotated[str, typer.Option(help="Columns of a file to leave out, with commas between.")]
Jobs = Annotated[int, typer.Option(help="Trials at a time; -1 for one on each core.")]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="serial, processes, ray, or a ray:// address.")
]
Preprocessing = Annotated[str, typer.Option("--preprocess", help="standard or paper.")]


def tell_readings(environments: "Iterable[Environment]", console: Console) -> None:
    """Print how each file of the user's own was read."""
    from rbmle.environments import Classification

    for world in environments:
        if isinstance(world, Classification) and world.notice:
            console.print(world.notice, markup=False, highlight=False, soft_wrap=True)


def listed(text: str) -> list[str]:
    """Return what stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
