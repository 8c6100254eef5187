"""The log of a service as logged decisions, for judging other policies on it."""

from collections.abc import Iterator, Sequence

import numpy as np

from rbmle.evaluation.logs import LogBatch, Reading
from rbmle.evaluation.logs.table import conformed
from rbmle.service.exports.parquet import RowGroup
from rbmle.service.exports.rows import ExportRow, entries
from rbmle.service.log.base import TIME_LIMIT, Log


class ServiceLog:
    """Settled decisions of a log, up to its last record of now; pending ones are left out.

    With a start and an end, in milliseconds, those that were made from the one until before the other.
    """

    def __init__(
        self, log: Log, name: str, start: int = -TIME_LIMIT, end: int = TIME_LIMIT
    ) -> None:
        self._log, self._last, self.name = log, log.last(), name
        self._start, self._end = start, end

    def rows(self) -> Iterator[ExportRow]:
        """Yield them as they are."""
        for entry in entries(self._log, self._last):
            if self._start <= entry.stored.row.time < self._end:
                yield entry

    def batches(self, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[LogBatch]:
        """Yield them in the order in which rewards became final."""
        group, first = RowGroup(), 0
        for entry in self.rows():
            group.add(entry)
            if group.is_full:
                yield from _batches(group, first, reading, columns)
                first, group = first + len(group.table()), RowGroup()
        yield from _batches(group, first, reading, columns)


def _batches(
    group: RowGroup, first: int, reading: Reading, columns: Sequence[str] | None
) -> Iterator[LogBatch]:
    for batch in group.table().to_batches():
        numbers = np.arange(first + 1, first + 1 + len(batch))
        yield conformed(batch, numbers, reading, columns)
