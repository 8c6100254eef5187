"""Parquet and CSV: the table as it is."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from rbmle.evaluation.errors import LogFileError
from rbmle.evaluation.logs.reading import Reading
from rbmle.evaluation.logs.table import (
    BATCH,
    SCHEMA,
    LogBatch,
    check_columns,
    conformed,
    conformed_all,
)

OTHERS = ("final_reward", "slot_features")  # of the service's exports, which are read too
CSV_BYTES = 2**22  # that are read at once; no row may be longer
LISTS = ("eligible", "probabilities")  # which are JSON in CSV
IN_CSV = pa.schema(
    [field if field.name not in ("time", *LISTS) else (field.name, pa.string()) for field in SCHEMA]
)


class ParquetLog:
    """A Parquet file, read a batch at a time."""

    def __init__(self, path: Path) -> None:
        """Raise LogFileError for a file that is none, or has other columns."""
        self.path, self.name = path, str(path)
        try:
            self._names = pq.read_schema(path).names
        except pa.ArrowInvalid as error:
            raise LogFileError(f"{path} cannot be read as Parquet: {error}") from None
        check_columns(self._names, self.name)

    def batches(self, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[LogBatch]:
        """Yield the rows of the file."""
        wanted = SCHEMA.names if columns is None else list(columns)
        kept = [name for name in (*wanted, *OTHERS) if name in self._names]
        with pq.ParquetFile(self.path) as file:
            yield from conformed_all(file.iter_batches(BATCH, columns=kept), reading, columns)


class CSVLog:
    """A CSV file with a line of names, perhaps compressed, read a block at a time."""

    def __init__(self, path: Path) -> None:
        """Raise LogFileError for a file that is none, or has other columns."""
        self.path, self.name = path, str(path)
        with self._opened(Reading(skips_bad=True)) as (reader, _):
            self._names = reader.schema.names
        check_columns(self._names, self.name)

    def batches(self, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[LogBatch]:
        """Yield the rows of the file."""
        first = 0
        with self._opened(reading) as (reader, bad):
            for batch in reader:
                if not len(batch):
                    continue
                candidates = np.arange(first + 1, first + 1 + len(batch) + len(bad))
                numbers = np.setdiff1d(candidates, bad)[: len(batch)]
                first = int(numbers[-1])
                yield conformed(batch, numbers, reading, columns)

    @contextmanager
    def _opened(self, reading: Reading) -> Iterator[tuple[Any, list[int]]]:
        """Yield what reads the file, and a list that gets the numbers of rows that are no rows."""
        bad: list[int] = []

        def refused(row: Any) -> str:
            bad.append(row.number - 1)  # the line of names is counted
            if reading.skips_bad:
                reading.fault(f"row {row.number - 1}", _miscounted(row))
                return "skip"
            return "error"

        try:
            with pa_csv.open_csv(
                self.path,
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=CSV_BYTES),
                parse_options=pa_csv.ParseOptions(
                    newlines_in_values=True, invalid_row_handler=refused
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys((*SCHEMA.names, *OTHERS), pa.string()),
                    null_values=["", "null", "NA", "NaN", "nan"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            ) as reader:
                yield reader, bad
        except pa.ArrowInvalid as error:
            why = f"row {bad[0]}: it has another number of columns" if bad else str(error)
            raise LogFileError(f"{self.path} cannot be read as CSV: {why}") from None


def _miscounted(row: Any) -> str:
    return f"it has {row.actual_columns} columns, but {row.expected_columns} are expected"


def write_parquet(batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    """Write the table as Parquet, and return the number of rows."""
    rows = 0
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += len(batch)
    return rows


def write_csv(batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    """Write the table as CSV, and return the number of rows."""
    rows = 0
    with pa_csv.CSVWriter(file, IN_CSV) as writer:
        for batch in batches:
            columns = {name: batch[name] for name in SCHEMA.names}
            times = pc.strftime(columns["time"], format="%Y-%m-%dT%H:%M:%SZ")
            columns |= {"time": times} | {name: _json(batch[name]) for name in LISTS}
            writer.write_batch(pa.record_batch(columns, schema=IN_CSV))
            rows += len(batch)
    return rows


def _json(lists: pa.Array) -> pa.Array:
    """Return a column of lists as JSON."""
    texts = [
        None if one is None else msgspec.json.encode(one).decode() for one in lists.to_pylist()
    ]
    return pa.array(texts, pa.string())
