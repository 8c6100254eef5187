"""Text formats, in which a decision is one line or a few: convert them from and to the table."""

import bz2
import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from rbmle.evaluation.logs.table import SCHEMA, LogBatch, LogReading

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
ROWS = 2_048  # of a batch; rows of text may be long
TOLERANCE = 1e-3  # of probabilities, which some writers round


class TextRow(NamedTuple):
    """A decision, with its features as Python objects."""

    event_id: str
    time: Any  # a datetime; None: not known
    context: Any
    actions: list[dict[str, Any]]  # {"id": …, "features": …}
    arm: str
    propensity: float | None
    reward: float | None
    probabilities: list[float] | None = None  # of the actions, in their order; None: not known


Parsed = Iterator[tuple[int, TextRow]]  # the number of the line, and its decision


class TextLog:
    """A text file, perhaps compressed, with a parser for its format."""

    def __init__(self, path: Path, parse: Callable[[Iterable[bytes], LogReading], Parsed]) -> None:
        self.path, self.name, self._parse = path, str(path), parse

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        kept: list[tuple[int, TextRow]] = []
        with open_file(self.path) as file:
            for item in self._parse(file, reading):
                kept.append(item)
                if len(kept) == ROWS:
                    yield _batch(kept, columns)
                    kept = []
        if kept:
            yield _batch(kept, columns)


def open_file(path: Path) -> BinaryIO:
    return OPENERS.get(path.suffix, open)(path, "rb")


def table_of(rows: Sequence[TextRow]) -> pa.RecordBatch:
    """Return rows as a batch of the table."""
    json = msgspec.json.Encoder().encode
    return pa.record_batch(
        [
            pa.array([row.event_id for row in rows], pa.string()),
            pa.array([row.time for row in rows], SCHEMA.field("time").type),
            pa.array([json(row.context).decode() for row in rows], pa.string()),
            pa.array([json(row.actions).decode() for row in rows], pa.string()),
            pa.array([row.arm for row in rows], pa.string()),
            pa.array([row.propensity for row in rows], pa.float64()),
            pa.array([row.reward for row in rows], pa.float64()),
            pa.nulls(len(rows), SCHEMA.field("eligible").type),
            pa.array([row.probabilities for row in rows], SCHEMA.field("probabilities").type),
            pa.nulls(len(rows), pa.string()),
            pa.nulls(len(rows), pa.string()),
        ],
        schema=SCHEMA,
    )


def rows_of(batch: pa.RecordBatch) -> Iterator[TextRow]:
    """Yield the rows of a table, with the actions that were eligible."""
    for row in batch.to_pylist():
        actions = [
            {"id": action, "features": []}
            if isinstance(action, str)
            else {"id": str(action["id"]), "features": action.get("features") or []}
            for action in msgspec.json.decode(row["actions"])
        ]
        eligible, chances = row.get("eligible"), row.get("probabilities")
        some = [action for action in actions if eligible is None or action["id"] in eligible]
        if chances is not None:
            order = eligible or [action["id"] for action in actions]
            by_id = dict(zip(order, chances, strict=False))
            chances = (
                [by_id[action["id"]] for action in some] if len(by_id) == len(chances) else None
            )
        yield TextRow(
            event_id=row["event_id"],
            time=row["time"],
            context=msgspec.json.decode(row["context"]),
            actions=some,
            arm=row["arm"],
            propensity=row["propensity"],
            reward=row["reward"],
            probabilities=chances,
        )


def do_fit(chances: Sequence[float], played: float, propensity: float | None) -> bool:
    """Return whether probabilities sum to 1, and that of the played arm is its propensity.

    >>> do_fit([0.2, 0.8], 0.8, 0.8), do_fit([0.2, 0.2], 0.2, 0.2), do_fit([0.2, 0.8], 0.2, 0.8)
    (True, False, False)
    """
    known = played if propensity is None else propensity
    return (
        min(chances) >= 0
        and abs(sum(chances) - 1) <= TOLERANCE
        and abs(played - known) <= TOLERANCE * known
    )


def objects(features: Any) -> list[dict[str, Any]]:
    """Return features as a list of dictionaries; an array of numbers gets the name x.

    >>> objects({"age": 31}), objects([0.5, 1.0]), objects(None)
    ([{'age': 31}], [{'x': [0.5, 1.0]}], [])
    """
    if not features:
        return []
    if isinstance(features, dict):
        return [features]
    return features if isinstance(features[0], dict) else [{"x": features}]


def distinct(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the ids of actions distinct: logs of Personalizer may offer the same article twice.

    >>> [action["id"] for action in distinct([{"id": "a"}, {"id": "b"}, {"id": "a"}])]
    ['a', 'b', 'a#2']
    """
    seen: Counter[str] = Counter()
    renamed = []
    for action in actions:
        id = action["id"]
        seen[id] += 1
        renamed.append(action if seen[id] == 1 else {**action, "id": f"{id}#{seen[id]}"})
    return renamed


def _batch(kept: list[tuple[int, TextRow]], columns: Sequence[str] | None) -> LogBatch:
    numbers = np.array([number for number, _ in kept])
    table = table_of([row for _, row in kept])
    return LogBatch(table if columns is None else table.select(list(columns)), numbers, "line")
