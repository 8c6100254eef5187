"""Options that several commands share, and how their values are read."""

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RBMLE_DATA", help="Folder with datasets as Parquet files."),
]
Jobs = Annotated[int, typer.Option(help="Trials at a time; -1 for one on each core.")]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="serial, processes, ray, or a ray:// address.")
]
Preprocessing = Annotated[str, typer.Option("--preprocess", help="standard or paper.")]


def listed(text: str) -> list[str]:
    """Return what stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
