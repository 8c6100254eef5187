"""The table of logged decisions, which every format is read into and written from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from rbmle.evaluation.results import LogFileError

SHOWN = 20  # messages that are kept; the rest are counted


@dataclass(slots=True, kw_only=True)
class LogReading:
    """How to treat bad rows, and how many there were so far."""

    skips_bad: bool = False
    bad: int = 0
    messages: list[str] = field(default_factory=list)  # of the first bad rows
    unlabelled: int = 0  # rows whose decision was never shown, or was dropped
    unrewarded: int = 0  # rows without a reward, which got the default one

    def fault(self, place: str, why: str) -> None:
        """Count a bad row, or raise LogFileError unless bad rows are skipped."""
        message = f"{place}: {why}"
        if not self.skips_bad:
            raise LogFileError(
                f"{message}; correct the log, or leave bad rows out with --skip-bad (skips_bad=True)"
            )
        self.add(LogReading(bad=1, messages=[message]))

    def add(self, more: "LogReading") -> None:
        self.bad += more.bad
        self.unlabelled += more.unlabelled
        self.unrewarded += more.unrewarded
        self.messages += more.messages[: max(0, SHOWN - len(self.messages))]

    def take(self) -> "LogReading":
        """Return the counts so far, and reset them."""
        taken = replace(self)
        self.bad = self.unlabelled = self.unrewarded = 0
        self.messages = []
        return taken


TIME = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("time", TIME),  # null: not known
        ("context", pa.string()),  # JSON: an object, an array of objects, or an array of numbers
        ("actions", pa.string()),  # JSON: [{"id": …, "features": …}, …], or an array of ids
        ("arm", pa.string()),  # the id of the action that was played
        ("propensity", pa.float64()),  # null: not known
        ("reward", pa.float64()),  # null: none came
        ("eligible", pa.list_(pa.string())),  # ids of the actions that could be played; null: all
        # of each of them, in the order of `eligible`; null: not known
        ("probabilities", pa.list_(pa.float64())),
        (
            "baseline",
            pa.string(),
        ),  # the id of the action that would have been played without a model
        (
            "preferred",
            pa.string(),
        ),  # the action that an apprentice would have played; null: it decided
    ]
)
NEEDED = ("context", "actions", "arm", "reward")
BATCH = 16_384  # rows, read at once


class LogBatch(NamedTuple):
    """Some rows of a log, with some columns of SCHEMA, and their places in the file."""

    table: pa.RecordBatch
    numbers: Int[np.ndarray, " rows"]
    unit: str = "row"  # what is counted: rows or lines


class DecisionLog(Protocol):
    """Logged decisions that can be read repeatedly, a batch at a time."""

    @property
    def name(self) -> str:
        """Return its name in messages."""
        ...

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        """Yield all rows in their order, with all columns of SCHEMA or those that are named."""
        ...


class TableLog:
    """A table in memory: a pyarrow Table, a data frame or a dictionary of columns."""

    def __init__(self, table: Any, name: str = "the table") -> None:
        if isinstance(table, pa.Table | pa.RecordBatch):
            self._table = pa.table(table) if isinstance(table, pa.RecordBatch) else table
        elif hasattr(table, "columns"):
            self._table = pa.Table.from_pandas(table, preserve_index=False)
        else:
            self._table = pa.table(table)
        self.name = name
        check_columns(self._table.column_names, name)

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        yield from conform_all(self._table.to_batches(max_chunksize=BATCH), reading, columns)


def check_columns(names: Sequence[str], name: str) -> None:
    """Raise LogFileError if a required column is missing."""
    missing = [column for column in NEEDED if column not in names]
    if missing:
        raise LogFileError(
            f"{name} has no column {', '.join(missing)}; a log has the columns event_id, context, actions, "
            f"arm, propensity and reward, as rbmle log export writes them, and this one has {', '.join(names)}"
        )


def conform_all(
    batches: Iterator[pa.RecordBatch] | Sequence[pa.RecordBatch],
    reading: LogReading,
    columns: Sequence[str] | None,
) -> Iterator[LogBatch]:
    """Yield record batches, converted to the types of SCHEMA."""
    first = 0
    for batch in batches:
        numbers = np.arange(first + 1, first + 1 + len(batch))
        first += len(batch)
        yield conform(batch, numbers, reading, columns)


def conform(
    batch: pa.RecordBatch,
    numbers: Int[np.ndarray, " rows"],
    reading: LogReading,
    columns: Sequence[str] | None = None,
) -> LogBatch:
    """Return a record batch as SCHEMA has it; rows without information are left out, bad ones are reported.

    A row with a true `holdout` is left out: it had no chance of another arm, whatever a policy would play. In
    exports of the service, `final_reward` is what counts, the default reward among it; where it is
    null, the decision was never shown, or let go. `slot_features` are part of the context.
    """
    names = batch.schema.names
    is_good = np.ones(len(batch), bool)
    if "holdout" in names and pa.types.is_boolean(batch["holdout"].type):
        is_good = ~np.asarray(pc.fill_null(batch["holdout"], fill_value=False))
    columns_read: dict[str, pa.Array] = {}
    for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
        if columns is not None and name not in columns:
            continue
        if name not in names:
            missing = pa.nulls(len(batch), kind)
            is_id = name == "event_id"
            columns_read[name] = pc.cast(pa.array(numbers), pa.string()) if is_id else missing
            continue
        columns_read[name], faults = _cast(batch[name], kind)
        for row, value in faults:
            if is_good[row]:
                why = f"the {name} is {value!r}, {_EXPECTED[kind]}"
                reading.fault(f"row {numbers[row]}", why)
                is_good[row] = False
    if "final_reward" in names and "reward" in columns_read:
        final = pc.cast(batch["final_reward"], pa.float64())
        columns_read["reward"] = pc.coalesce(columns_read["reward"], final)
        is_labelled = np.asarray(pc.is_valid(columns_read["reward"]))
        reading.unlabelled += int((is_good & ~is_labelled).sum())
        is_good &= is_labelled
    if "slot_features" in names and "context" in columns_read:
        columns_read["context"] = _with_slots(columns_read["context"], batch["slot_features"])
    table = pa.record_batch(columns_read)
    if not is_good.all():
        table, numbers = table.filter(pa.array(is_good)), numbers[is_good]
    return LogBatch(table, numbers)


_EXPECTED = {
    pa.float64(): "but a number is expected",
    pa.string(): "but a text, JSON or plain values that JSON can hold are expected",
    TIME: "but a date as in 2024-05-31T12:00:00Z is expected",
    pa.list_(pa.string()): "but a list of ids is expected",
    pa.list_(pa.float64()): "but a list of probabilities is expected",
}
Fault = tuple[int, Any]  # a place, and the value there


def _cast(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, list[Fault]]:
    """Return a column of another type, null where that fails, and the values that failed."""
    if column.type == kind:
        return column, []
    try:
        if not pa.types.is_nested(column.type) and not pa.types.is_nested(kind):
            return pc.cast(column, kind), []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    convert = _CONVERT[kind]
    values: list[Any] = []
    faults: list[Fault] = []
    for row, value in enumerate(column.to_pylist()):
        try:
            values.append(None if value is None else convert(value))
        except (TypeError, ValueError, pa.ArrowInvalid):
            values.append(None)
            faults.append((row, value))
    return pa.array(values, kind), faults


def _ids(value: Any) -> list[str]:
    ids = msgspec.json.decode(value) if isinstance(value, str) else value
    if not isinstance(ids, list):
        raise ValueError
    return [str(id) for id in ids]


def _numbers(value: Any) -> list[float]:
    numbers = msgspec.json.decode(value) if isinstance(value, str) else value
    return [float(number) for number in numbers]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_CONVERT: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.float64(): float,
    pa.string(): _text,
    TIME: lambda value: pa.scalar(value).cast(TIME).as_py(),
    pa.list_(pa.string()): _ids,
    pa.list_(pa.float64()): _numbers,
}


def _with_slots(context: pa.Array, slots: pa.Array) -> pa.Array:
    """Append the features of the slot to each context; both are JSON arrays."""
    if pc.all(pc.equal(pc.fill_null(slots, "[]"), "[]")).as_py():
        return context
    pairs = zip(context.to_pylist(), slots.to_pylist(), strict=True)
    return pa.array([_join_arrays(text, slot) for text, slot in pairs], pa.string())


def _join_arrays(context: str | None, slot: str | None) -> str | None:
    if context is None or slot is None or slot == "[]":
        return context
    if context == "[]":
        return slot
    return f"{context.rstrip()[:-1]}, {slot.lstrip()[1:]}"
