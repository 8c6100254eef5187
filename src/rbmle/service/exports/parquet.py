"""Decisions as Parquet: the columns, and row groups that are written as they fill."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rbmle.service.exports.rows import ExportRow, Take

GROUP_ROWS = 10_000
GROUP_CHARACTERS = 2**26  # of JSON in a row group; one event may have a million

TIME = pa.timestamp("ms", tz="UTC")

COLUMNS: dict[str, tuple[pa.DataType, Callable[[ExportRow], Any]]] = {
    "event_id": (pa.string(), lambda entry: entry.stored.row.event),
    "time": (TIME, lambda entry: entry.stored.row.time),
    "context": (pa.string(), lambda entry: _json(entry.decided.context)),
    "actions": (pa.string(), lambda entry: _json(_actions(entry))),
    "arm": (pa.string(), lambda entry: entry.arm),
    "propensity": (pa.float64(), lambda entry: entry.propensity),
    "reward": (pa.float64(), lambda entry: entry.reward),
    "arm_index": (pa.int32(), lambda entry: entry.play.chosen),
    "eligible": (pa.list_(pa.string()), lambda entry: entry.eligible),
    "probabilities": (pa.list_(pa.float64()), lambda entry: entry.probabilities),
    "slot": (pa.string(), lambda entry: entry.play.slot),
    "slot_features": (pa.string(), lambda entry: _json(entry.play.features)),
    "baseline": (pa.string(), lambda entry: _id(entry, entry.play.baseline)),
    "preferred": (pa.string(), lambda entry: _id(entry, entry.play.preferred)),
    "mode": (pa.string(), lambda entry: entry.decided.mode),
    "deferred": (pa.bool_(), lambda entry: entry.decided.deferred),
    "activated": (pa.bool_(), lambda entry: entry.is_activated),
    "reward_time": (TIME, lambda entry: entry.reward_time),
    "final_reward": (pa.float64(), lambda entry: entry.final_reward),
    "learned": (pa.int64(), lambda entry: entry.decided.learned),
    "seq": (pa.int64(), lambda entry: entry.stored.seq),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


@contextmanager
def parquet(file: BinaryIO) -> Iterator[Take]:
    """Yield what writes entries to a file; the last of them are written when it is left.

    `reward` is null where none came in time; `final_reward` is then the default one, unless the
    event was let go by a reset, or was never shown.
    """
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        group = RowGroup()

        def take(entry: ExportRow) -> None:
            nonlocal group
            group.add(entry)
            if group.is_full:
                writer.write_table(group.table())
                group = RowGroup()

        yield take
        writer.write_table(group.table())


class RowGroup:
    """Rows that wait to be written, column by column."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._characters = 0

    def add(self, entry: ExportRow) -> None:
        """Take one more."""
        for name, (_, value) in COLUMNS.items():
            self._columns[name].append(value(entry))
        self._characters += sum(
            len(self._columns[name][-1]) for name in ("context", "actions", "slot_features")
        )

    @property
    def is_full(self) -> bool:
        """Return whether it is time to write them."""
        return len(self._columns["seq"]) >= GROUP_ROWS or self._characters >= GROUP_CHARACTERS

    def table(self) -> pa.Table:
        """Return the rows."""
        return pa.table(self._columns, schema=SCHEMA)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _actions(entry: ExportRow) -> list[dict[str, Any]]:
    return [{"id": offer.id, "features": offer.features} for offer in entry.decided.actions]


def _id(entry: ExportRow, place: int | None) -> str | None:
    return None if place is None else entry.decided.actions[place].id
