"""The log of a service as a file for other programs, written whole or not at all."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rbmle.core.errors import SettingError
from rbmle.core.files import written_whole
from rbmle.service.exports.dsjson import dsjson
from rbmle.service.exports.parquet import parquet
from rbmle.service.exports.rows import ExportRow, Step, Take, gather, unseen
from rbmle.service.log.base import Log

Format = Callable[[BinaryIO], AbstractContextManager[Take]]

FORMATS: dict[str, Format] = {"parquet": parquet, "dsjson": dsjson}
SUFFIXES = {".parquet": "parquet", ".dsjson": "dsjson", ".json": "dsjson"}


def format_of(path: Path, name: str | None = None) -> str:
    """Return the format with this name, or the one that a file's suffix stands for if it is None."""
    if name is not None and name not in FORMATS:
        raise SettingError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    found = name or SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise SettingError(
            f"{path.name!r} does not tell its format; end it with {', '.join(SUFFIXES)}, or give "
            f"--format {' or '.join(FORMATS)}"
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """How much was written, and what was not."""

    rows: int
    pending: int  # events that are not settled yet, and left out


def export(log: Log, path: Path, format: str, step: Step = unseen) -> Exported:
    """Write every decision of the log whose reward is final now, and those that never get one.

    Pending events are left out, and so is what is appended meanwhile. `step` is told the seq of each
    record that was read.
    """
    rows = 0
    with written_whole(path) as file, FORMATS[format](file) as write:

        def take(entry: ExportRow) -> None:
            nonlocal rows
            write(entry)
            rows += 1

        pending = gather(log, log.last(), take, step)
    return Exported(rows=rows, pending=pending)
