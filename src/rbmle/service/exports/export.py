"""Exports the log of a service to a file, or as logged decisions for `rbmle evaluate`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import pyarrow as pa

from rbmle.core.files import written_whole
from rbmle.evaluation.logs import LogBatch, LogReading
from rbmle.evaluation.logs.dsjson import features_of, label_of, write_lines
from rbmle.evaluation.logs.files import write_parquet
from rbmle.evaluation.logs.table import conform
from rbmle.service.exports.rows import ExportRow, SettledRows, Step, ignore_step
from rbmle.service.log.base import TIME_LIMIT, Log
from rbmle.service.log.records import RawFeatures, unpack_features

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

GROUP_ROWS = 10_000
GROUP_CHARACTERS = 2**26  # of JSON in a row group; one event may have a million
TIME = pa.timestamp("ms", tz="UTC")

SUFFIXES = {".parquet": "parquet", ".dsjson": "dsjson", ".json": "dsjson"}


def line(entry: ExportRow) -> dict[str, Any]:
    """Return a row as a line of DSJSON, as `vw --dsjson --cb_explore_adf` reads it.

    Each slot of an event is a line, whose actions are those that were eligible in the slot: that is how it was
    decided and learned, and one command reads all lines. They are numbered from 1, with the chosen one first.

    The cost is minus the reward, or minus the default reward if none came in time, as the service learned it. A
    line whose event was not shown, or was dropped by a reset, has no label, and Vowpal Wabbit learns nothing
    from it. `o` lists the reward only if one came.
    """
    play, event = entry.play, entry.stored.row.event
    chances = play.probabilities
    chosen = play.eligible.index(play.chosen)
    order = sorted(range(len(chances)), key=lambda place: (place != chosen, -chances[place]))
    reward = entry.final_reward
    label = {} if reward is None else label_of(reward, entry.propensity, chosen)
    rewards = {} if entry.reward is None else {"o": [{"EventId": event, "v": entry.reward}]}
    slot = {"Slot": play.slot} if play.slot else {}
    actions = [entry.decided.actions[place] for place in play.eligible]
    return {
        **label,
        **rewards,
        "Timestamp": _timestamp(entry.stored.row.time),
        "Version": "1",
        "EventId": event,
        **slot,
        "a": [place + 1 for place in order],
        "c": features_of(
            [*_readable(entry.decided.context), *_readable(play.features)],
            [(action.id, _readable(action.features)) for action in actions],
        ),
        "p": [chances[place] for place in order],
        # Without it, rbmle evaluate does not take `p` for what the actions were played with.
        **({} if entry.probabilities is None else {"VWState": {"m": str(entry.decided.learned)}}),
    }


def _readable(features: RawFeatures) -> list[dict[str, Any]]:
    """Return features without names that begin with _, which the service ignores and VW interprets."""
    return [_object(item) for item in unpack_features(features)]


def _object(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object whose namespaces and arrays, which are namespaces to VW, have names VW can read."""
    readable: dict[str, Any] = {}
    for name, value in item.items():
        match value:
            case _ if name[:1] == "_":
                continue
            case dict():
                readable[_namespace(name)] = _object(value)
            case list():
                readable[_namespace(name)] = value
            case _:
                readable[name] = value
    return readable


def _namespace(name: str) -> str:
    """Return a name that begins with ASCII; with any other name VW 9 writes beyond its memory."""
    return name if name and name[0].isascii() else f"n{name}"


def _timestamp(time: int) -> str:
    date = EPOCH + timedelta(milliseconds=time)
    return date.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    "holdout": (pa.bool_(), lambda entry: entry.decided.is_held),
    "unit": (pa.string(), lambda entry: entry.unit),
    "reward_time": (TIME, lambda entry: entry.reward_time),
    "final_reward": (pa.float64(), lambda entry: entry.final_reward),
    "learned": (pa.int64(), lambda entry: entry.decided.learned),
    "seq": (pa.int64(), lambda entry: entry.stored.seq),
}
LONG_COLUMNS = ("context", "actions", "slot_features")
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


def row_groups(rows: Iterable[ExportRow]) -> Iterator[pa.Table]:
    """Yield rows as tables of a bounded size; the last one may be empty.

    `reward` is null if none came in time; `final_reward` is then the default reward, unless the event was
    dropped by a reset, or was not shown.
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    characters = 0
    for row in rows:
        for name, (_, value) in COLUMNS.items():
            columns[name].append(value(row))
        characters += sum(len(columns[name][-1]) for name in LONG_COLUMNS)
        if len(columns["seq"]) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
            yield pa.table(columns, schema=SCHEMA)
            columns, characters = {name: [] for name in COLUMNS}, 0
    yield pa.table(columns, schema=SCHEMA)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _actions(entry: ExportRow) -> list[dict[str, Any]]:
    return [{"id": offer.id, "features": offer.features} for offer in entry.decided.actions]


def _id(entry: ExportRow, place: int | None) -> str | None:
    return None if place is None else entry.decided.actions[place].id


FORMATS: dict[str, Callable[[Iterable[ExportRow], BinaryIO], int]] = {
    "parquet": lambda rows, file: write_parquet(row_groups(rows), file, SCHEMA),
    # without the holdout: whoever learns from the lines could not tell it from the policy's decisions
    "dsjson": lambda rows, file: write_lines(
        (line(row) for row in rows if not row.decided.is_held), file
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """How many rows were written, and how many events were left out."""

    rows: int
    pending: int  # events that are not settled yet


def export(log: Log, path: Path, format: str, step: Step = ignore_step) -> Exported:
    """Write every decision of the log whose reward is final now, and those that never get one.

    Pending events are left out, and so are records that are appended meanwhile. `step` is called with the seq
    of each record.
    """
    rows = SettledRows(log, log.last(), step)
    with written_whole(path) as file:
        return Exported(rows=FORMATS[format](rows, file), pending=rows.pending)


class ServiceLog:
    """The settled decisions of a log, up to its last record of now, made in [start, end) in milliseconds.

    Those of the holdout are left out: its units had no chance of another action, and are no part of what a
    policy is judged on.
    """

    def __init__(
        self, log: Log, name: str, start: int = -TIME_LIMIT, end: int = TIME_LIMIT
    ) -> None:
        self._log, self._last, self.name = log, log.last(), name
        self._start, self._end = start, end

    def rows(self) -> Iterator[ExportRow]:
        for row in SettledRows(self._log, self._last):
            if self._start <= row.stored.row.time < self._end and not row.decided.is_held:
                yield row

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        """Yield decisions in the order in which rewards became final."""
        first = 1
        for table in row_groups(self.rows()):
            for batch in table.to_batches():
                yield conform(batch, np.arange(first, first + len(batch)), reading, columns)
                first += len(batch)
