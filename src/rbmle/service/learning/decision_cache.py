"""Decisions that are read from the log again, the last of them from memory."""

from collections.abc import Iterator, Sequence

from rbmle.service.log.base import Log, Stored
from rbmle.service.log.records import Decided, decoded

REMEMBERED = 4096  # decisions
APART = 16  # records between two decisions that are read with them, rather than in another read

DecisionRow = tuple[Stored, Decided]


class DecisionCache:
    """The last decisions: most rewards are for one of them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ring: list[DecisionRow | None] = [None] * REMEMBERED

    def add(self, decision: DecisionRow) -> None:
        """Remember a decision in the place of an old one."""
        self._ring[decision[0].seq % len(self._ring)] = decision

    def at(self, seq: int) -> DecisionRow:
        """Return the decision of a record, from the log if it is an old one."""
        found = self._ring[seq % len(self._ring)]
        if found is not None and found[0].seq == seq:
            return found
        return decisions_at(self._log, [seq])[seq]


def decisions_at(log: Log, seqs: Sequence[int]) -> dict[int, DecisionRow]:
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
    record = decoded(stored.row.kind, stored.row.payload)
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
