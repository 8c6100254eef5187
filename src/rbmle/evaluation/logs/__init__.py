"""Logged decisions: one table, which is read from and written to several formats."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from rbmle.core.checks import no_such
from rbmle.core.files import written_whole
from rbmle.evaluation.logs.bandit_feedback import from_bandit_feedback as from_bandit_feedback
from rbmle.evaluation.logs.bandit_feedback import to_bandit_feedback as to_bandit_feedback
from rbmle.evaluation.logs.dsjson import parse_dsjson, write_dsjson
from rbmle.evaluation.logs.files import CSVLog, ParquetLog, write_csv, write_parquet
from rbmle.evaluation.logs.lines import OPENERS, TextLog
from rbmle.evaluation.logs.table import SCHEMA as SCHEMA
from rbmle.evaluation.logs.table import DecisionLog as DecisionLog
from rbmle.evaluation.logs.table import LogBatch as LogBatch
from rbmle.evaluation.logs.table import LogReading as LogReading
from rbmle.evaluation.logs.table import TableLog as TableLog
from rbmle.evaluation.logs.vw_text import parse_vw_text, write_vw_text
from rbmle.evaluation.results import LogFileError

READERS: dict[str, Callable[[Path], DecisionLog]] = {
    "parquet": ParquetLog,
    "csv": CSVLog,
    "dsjson": partial(TextLog, parse=parse_dsjson),
    "vw": partial(TextLog, parse=parse_vw_text),
}
WRITERS: dict[str, Callable[[Iterable[pa.RecordBatch], BinaryIO], int]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "dsjson": write_dsjson,
    "vw": write_vw_text,
}
FORMATS = tuple(READERS)
SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".dsjson": "dsjson",
    ".json": "dsjson",
    ".jsonl": "dsjson",
    ".vw": "vw",
    ".txt": "vw",
    ".dat": "vw",
}


def open_log(path: str | Path, format: str | None = None) -> DecisionLog:
    """Return the log in a file, by its format or else its suffix; raise LogFileError."""
    path = Path(path)
    if not path.is_file():
        raise LogFileError(f"there is no file {str(path)!r}; give the log as a file")
    plain = path.with_suffix("") if path.suffix in OPENERS else path
    return READERS[format_of(plain, format)](path)


def write_log(
    log: DecisionLog,
    path: str | Path,
    format: str | None = None,
    *,
    reading: LogReading | None = None,
    step: Callable[[int], object] | None = None,
) -> int:
    """Write a log to a file, whole or not at all, and return the rows; `step` is called with those so far."""
    path, reading = Path(path), reading or LogReading()

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in log.batches(reading):
            yield batch.table
            rows += len(batch.table)
            if step is not None:
                step(rows)

    with written_whole(path) as file:
        return WRITERS[format_of(path, format)](batches(), file)


def format_of(path: Path, name: str | None = None, suffixes: Mapping[str, str] = SUFFIXES) -> str:
    """Return the format with this name, or the one of the file's suffix; raise LogFileError."""
    formats = tuple(dict.fromkeys(suffixes.values()))
    if name is not None and name not in formats:
        raise LogFileError(no_such("format", name, formats))
    format = name or suffixes.get(path.suffix.lower())
    if format is None:
        raise LogFileError(
            f"the name {path.name!r} does not show its format; end it with {', '.join(suffixes)}, or give "
            f"--format {' or '.join(formats)}"
        )
    return format
