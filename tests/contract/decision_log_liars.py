"""Logs of decisions that break one promise each."""

from collections.abc import Iterator, Sequence

import numpy as np

from rbmle.evaluation import TableLog
from rbmle.evaluation.logs import LogBatch, LogReading
from tests.evaluation.samples import table


class Honest:
    """What the liars are made of."""

    name = "a liar"

    def __init__(self) -> None:
        self._own = TableLog(table())

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        yield from self._own.batches(reading, columns)


class OneShot(Honest):
    """A generator that is used up by the first reading."""

    def __init__(self) -> None:
        self._left = list(TableLog(table()).batches(LogReading()))

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        while self._left:
            yield self._left.pop()


class Narrow(Honest):
    """It knows nothing of times."""

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        for batch in self._own.batches(reading, columns):
            names = [name for name in batch.table.schema.names if name != "time"]
            yield batch._replace(table=batch.table.select(names))


class Whole(Honest):
    """It gives all columns, whatever is asked for."""

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        yield from self._own.batches(reading)


class Unnumbered(Honest):
    """Each row is the first."""

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        for batch in self._own.batches(reading, columns):
            yield batch._replace(numbers=np.ones(len(batch.table), np.int64))


class Silent(Honest):
    """It leaves bad rows out, and tells nobody."""

    def __init__(self) -> None:
        self._own = TableLog(table(reward=["1", "often", "0"]))

    def batches(
        self, reading: LogReading, columns: Sequence[str] | None = None
    ) -> Iterator[LogBatch]:
        yield from self._own.batches(LogReading(skips_bad=True), columns)
