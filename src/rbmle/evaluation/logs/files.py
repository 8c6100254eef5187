"""Parquet and CSV, which store the table of decisions directly."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from rbmle.evaluation.logs.table import (
    BATCH,
    SCHEMA,
    DecisionLog,
    LogBatch,
    LogReading,
    check_columns,
    conform,
    conform_all,
)
from rbmle.evaluation.results import LogFileError

# Columns of the service's exports, which are read too.
OTHERS = ("final_reward", "slot_features", "holdout")
CSV_BYTES = 2**22  # that are read at once; no row may be longer
LISTS = ("eligible", "probabilities")  # which are JSON in CSV
IN_CSV = pa.schema(
    [field if field.name not in ("time", *LISTS) else (field.name, pa.string()) for field in SCHEMA]
)


class ParquetLog:
    """A Parquet file, read a batch at a time."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        try:
            self._names = pq.read_schema(path).names
        except pa.ArrowInvalid as error:
            raise LogFileError(f"{path} cannot be read as Parquet: {error}") from None
        check_columns(self._names, self.name)

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        wanted = SCHEMA.names if columns is None else list(columns)
        kept = [name for name in (*wanted, *OTHERS) if name in self._names]
        with pq.ParquetFile(self.path) as file:
            yield from conform_all(file.iter_batches(BATCH, columns=kept), reading, columns)


class CSVLog:
    """A CSV file with a line of names, perhaps compressed, read a block at a time."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        with self._open(LogReading(skips_bad=True)) as (reader, _):
            self._names = reader.schema.names
        check_columns(self._names, self.name)

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        first = 0
        with self._open(reading) as (reader, bad):
            for batch in reader:
                if not len(batch):
                    continue
                candidates = np.arange(first + 1, first + 1 + len(batch) + len(bad))
                numbers = np.setdiff1d(candidates, bad)[: len(batch)]
                first = int(numbers[-1])
                yield conform(batch, numbers, reading, columns)

    @contextmanager
    def _open(self, reading: LogReading) -> Iterator[tuple[Any, list[int]]]:
        """Yield a reader of the file, and a list to which it adds the numbers of malformed rows."""
        bad: list[int] = []

        def refuse_row(row: Any) -> str:
            bad.append(row.number - 1)  # the line of names is counted
            if reading.skips_bad:
                reading.fault(f"row {row.number - 1}", _describe_miscount(row))
                return "skip"
            return "error"

        try:
            with pa_csv.open_csv(
                self.path,
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=CSV_BYTES),
                parse_options=pa_csv.ParseOptions(
                    newlines_in_values=True, invalid_row_handler=refuse_row
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


def _describe_miscount(row: Any) -> str:
    return f"it has {row.actual_columns} columns, but {row.expected_columns} are expected"


class SpooledLog:
    """A log that is slow to parse, such as text: the first reading keeps some columns in a temporary file.

    Later readings come from there, and report the same bad rows at the same places.
    """

    def __init__(self, log: DecisionLog, columns: Sequence[str]) -> None:
        self.name, self._log, self._columns = log.name, log, list(columns)
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115
        self._noticed: list[LogReading] = []  # before each batch, and at the end
        self._is_whole, self._unit = False, "row"

    def __enter__(self) -> "SpooledLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        wanted = self._columns if columns is None else list(columns)
        for batch in self._read_again(reading) if self._is_whole else self._read_first(reading):
            yield batch._replace(table=batch.table.select(wanted))

    def _read_first(self, reading: LogReading) -> Iterator[LogBatch]:
        self._file.seek(0)
        self._noticed = []
        noticed = LogReading(skips_bad=reading.skips_bad)
        with ExitStack() as stack:
            writer = None
            for batch in chain(self._log.batches(noticed, self._columns), (None,)):
                self._noticed.append(noticed.take())
                reading.add(self._noticed[-1])
                if batch is not None:
                    table = batch.table.append_column(_NUMBER, pa.array(batch.numbers))
                    if writer is None:
                        stream = pa.ipc.new_stream(self._file, table.schema, options=_OPTIONS)
                        writer, self._unit = stack.enter_context(stream), batch.unit
                    writer.write_batch(table)
                    yield batch
        self._is_whole = True

    def _read_again(self, reading: LogReading) -> Iterator[LogBatch]:
        self._file.seek(0)
        tables = pa.ipc.open_stream(self._file) if len(self._noticed) > 1 else ()
        for noticed, table in zip_longest(self._noticed, tables):
            reading.add(noticed)
            if table is not None:
                yield LogBatch(table, table[_NUMBER].to_numpy(), self._unit)


_NUMBER = "number"  # a column of temporary files
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def write_parquet(
    batches: Iterable[pa.RecordBatch | pa.Table], file: BinaryIO, schema: pa.Schema = SCHEMA
) -> int:
    """Write the table as Parquet, and return the number of rows."""
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write(batch)
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
    texts = [
        None if values is None else msgspec.json.encode(values).decode()
        for values in lists.to_pylist()
    ]
    return pa.array(texts, pa.string())
