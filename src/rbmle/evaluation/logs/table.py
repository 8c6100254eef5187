"""The one table of logged decisions that every format is read into and written from."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int

from rbmle.evaluation.errors import LogFileError
from rbmle.evaluation.logs.reading import Reading

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
        # with which each of them could be played, in the order of `eligible`; null: not known
        ("probabilities", pa.list_(pa.float64())),
        ("baseline", pa.string()),  # the id of what would have been played without a model
        ("preferred", pa.string()),  # what an apprentice would have played; null: it decided
    ]
)
NEEDED = ("context", "actions", "arm", "reward")
BATCH = 16_384  # rows that are read at once


class LogBatch(NamedTuple):
    """Some rows of a log, with the columns of SCHEMA or fewer, and where they stand in the file."""

    table: pa.RecordBatch
    numbers: Int[np.ndarray, " rows"]
    unit: str = "row"  # what is counted: rows or lines


class Log(Protocol):
    """Logged decisions that can be read again and again, a batch at a time."""

    @property
    def name(self) -> str:
        """Return how messages call it."""
        ...

    def batches(self, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[LogBatch]:
        """Yield all rows in their order, with all columns of SCHEMA or those that are named."""
        ...


class TableLog:
    """A table in memory: a pyarrow Table, a data frame or a dictionary of columns."""

    def __init__(self, given: Any, name: str = "the table") -> None:
        """Raise LogFileError for columns that are missing."""
        if isinstance(given, pa.Table | pa.RecordBatch):
            self._table = pa.table(given) if isinstance(given, pa.RecordBatch) else given
        elif hasattr(given, "columns"):
            self._table = pa.Table.from_pandas(given, preserve_index=False)
        else:
            self._table = pa.table(given)
        self.name = name
        check_columns(self._table.column_names, name)

    def batches(self, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[LogBatch]:
        """Yield the rows of the table."""
        yield from conformed_all(self._table.to_batches(max_chunksize=BATCH), reading, columns)


def check_columns(names: Sequence[str], name: str) -> None:
    """Raise LogFileError if a column is missing that every log has."""
    missing = [column for column in NEEDED if column not in names]
    if missing:
        raise LogFileError(
            f"{name} has no column {', '.join(missing)}; a log has the columns event_id, context, actions, "
            f"arm, propensity and reward, as rbmle log export writes them, and this has {', '.join(names)}"
        )


def conformed_all(
    batches: Iterator[pa.RecordBatch] | Sequence[pa.RecordBatch],
    reading: Reading,
    columns: Sequence[str] | None,
) -> Iterator[LogBatch]:
    """Yield record batches, of any types that can be read, as SCHEMA has them."""
    first = 0
    for batch in batches:
        numbers = np.arange(first + 1, first + 1 + len(batch))
        first += len(batch)
        yield conformed(batch, numbers, reading, columns)


def conformed(
    given: pa.RecordBatch,
    numbers: Int[np.ndarray, " rows"],
    reading: Reading,
    columns: Sequence[str] | None = None,
) -> LogBatch:
    """Return a record batch as SCHEMA has it; rows that tell nothing are left out, bad ones are told.

    In exports of the service, `final_reward` is what counts, the default reward among it; where it is
    null, the decision was never shown, or let go. `slot_features` are part of the context.
    """
    names = given.schema.names
    is_good = np.ones(len(given), bool)
    found: dict[str, pa.Array] = {}
    for field in SCHEMA:
        if columns is not None and field.name not in columns:
            continue
        if field.name not in names:
            missing = pa.nulls(len(given), field.type)
            is_id = field.name == "event_id"
            found[field.name] = pc.cast(pa.array(numbers), pa.string()) if is_id else missing
            continue
        column, faults = _cast(given[field.name], field.type)
        for row, value in faults:
            if is_good[row]:
                reading.fault(
                    f"row {numbers[row]}", f"the {field.name} is {value!r}, {_EXPECTED[field.type]}"
                )
                is_good[row] = False
        found[field.name] = column
    if "final_reward" in names and "reward" in found:
        final = pc.cast(given["final_reward"], pa.float64())
        found["reward"] = pc.coalesce(found["reward"], final)
        is_told = np.asarray(pc.is_valid(found["reward"]))
        reading.unlabelled += int((is_good & ~is_told).sum())
        is_good &= is_told
    if "slot_features" in names and "context" in found:
        found["context"] = _with_slots(found["context"], given["slot_features"])
    table = pa.record_batch(found)
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
    """Return a column of another type, null where that cannot be, and what stood there."""
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
    """Return a list of ids, given as one or as JSON."""
    found = msgspec.json.decode(value) if isinstance(value, str) else value
    if not isinstance(found, list):
        raise ValueError
    return [str(id) for id in found]


def _numbers(value: Any) -> list[float]:
    """Return a list of numbers, given as one or as JSON."""
    found = msgspec.json.decode(value) if isinstance(value, str) else value
    return [float(number) for number in found]


def _text(value: Any) -> str:
    """Return a text as it is, and other values as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_CONVERT: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.float64(): float,
    pa.string(): _text,
    TIME: lambda value: pa.scalar(value).cast(TIME).as_py(),
    pa.list_(pa.string()): _ids,
    pa.list_(pa.float64()): _numbers,
}


def _with_slots(context: pa.Array, slots: pa.Array) -> pa.Array:
    """Return contexts with the features of their slot, both of them JSON arrays."""
    if pc.all(pc.equal(pc.fill_null(slots, "[]"), "[]")).as_py():
        return context
    pairs = zip(context.to_pylist(), slots.to_pylist(), strict=True)
    return pa.array([_joined(one, other) for one, other in pairs], pa.string())


def _joined(context: str | None, slot: str | None) -> str | None:
    """Return two JSON arrays as one."""
    if context is None or slot is None or slot == "[]":
        return context
    if context == "[]":
        return slot
    return f"{context.rstrip()[:-1]}, {slot.lstrip()[1:]}"
