"""What the rows of the log say, and decisions that are read from it again."""

from collections.abc import Iterator, Sequence

from rbmle.service.logs.base import Log, Stored
from rbmle.service.records import Decided, Record, decoded

APART = 16  # records between two decisions that are read with them, rather than in another read

Decision = tuple[Stored, Decided]


def record_of(stored: Stored) -> Record:
    """Return what a row of the log says."""
    record = stored.row.record
    if isinstance(record, Record):
        return record
    return decoded(stored.row.kind, stored.row.payload)


def decisions_at(log: Log, seqs: Sequence[int]) -> dict[int, Decision]:
    """Return the decisions of some records, whose numbers ascend, in few reads."""
    wanted = set(seqs)
    return {
        stored.seq: (stored, _decided(stored))
        for first, last in _ranges(seqs)
        for stored in log.read(first - 1, last - first + 1)
        if stored.seq in wanted
    }


def _decided(stored: Stored) -> Decided:
    """Return the decision in a row."""
    record = record_of(stored)
    assert isinstance(record, Decided)
    return record


def _ranges(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that are close together.

    >>> list(_ranges([1, 2, 5, 100]))
    [(1, 5), (100, 100)]
    """
    start = 0
    for place, seq in enumerate(seqs):
        is_last = place + 1 == len(seqs)
        if is_last or seqs[place + 1] - seq > APART:
            yield seqs[start], seq
            start = place + 1
