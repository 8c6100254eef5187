"""A log in memory, for tests: it keeps every promise except durability."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter

from rbmle.service.log.backend import (
    EncodedRow,
    check_base,
    decode_row,
    duplicate_error,
    encode_rows,
    find_problems,
    requests_of,
)
from rbmle.service.log.base import (
    ERASED_ROW,
    Base,
    Extent,
    Lease,
    LogUnavailable,
    Row,
    Stored,
)


class MemoryRows(list[EncodedRow]):
    """Rows, and what has left them."""

    extent, base = Extent(), Base(0)


class MemoryLog:
    """Rows in a list. Logs that share one list are the same log, opened again.

    Appends fail while `is_unavailable` is set, as on a full disk.
    """

    def __init__(self, kept: list[EncodedRow] | None = None) -> None:
        self._kept = kept if isinstance(kept, MemoryRows) else MemoryRows(kept or ())
        self._seqs = _seqs(self._kept)
        self._is_closed = False
        self.is_unavailable = False

    def append(self, rows: Sequence[Row]) -> int:
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        self._check_open()
        if self.is_unavailable:
            raise LogUnavailable("the log in memory is set to fail")
        requests = requests_of(rows)
        known = self._seqs.keys() & requests
        if known or len(set(requests)) < len(requests):
            raise duplicate_error(rows, known)
        first = self.last() + 1
        batch = encode_rows(first, rows)
        self._seqs.update(_seqs(batch))
        self._kept.extend(batch)  # one step to other threads
        return first

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        self._check_open()
        count = 0
        while limit is None or count < limit:
            place = self._place_after(after)
            if place >= len(self._kept):
                return
            stored = decode_row(self._kept[place])
            yield stored
            after, count = stored.seq, count + 1

    def of_event(self, event: str) -> list[Stored]:
        self._check_open()
        return [decode_row(encoded) for encoded in self._kept[:] if encoded[2] == event.encode()]

    def of_request(self, request: str) -> Stored | None:
        self._check_open()
        seq = self._seqs.get(request.encode())
        if seq is None or seq > self.last():
            return None
        return decode_row(self._kept[self._place_after(seq - 1)])

    def last(self) -> int:
        self._check_open()
        return self._kept[-1][0] if self._kept else 0

    def size(self) -> int:
        self._check_open()
        return sum(len(payload) for *_, payload, _ in self._kept[:])

    def verify(self) -> list[str]:
        self._check_open()
        return find_problems(self._kept[:], self._kept.extent.deleted)

    def extent(self) -> Extent:
        self._check_open()
        return self._kept.extent

    def base(self) -> Base | None:
        self._check_open()
        return self._kept.base if self._kept.extent.deleted else None

    def rebase(self, before: Extent, base: Base) -> bool:
        check_base(base, self.last())
        if self._kept.extent != before:
            return False
        self._kept.base, self._kept.extent = base, Extent(base.seq, before.erasures)
        return True

    def discard(self, after: int, limit: int, kept: Collection[str]) -> int | None:
        self._check_open()
        rows = [r for r in self._kept if after < r[0] <= self._kept.base.seq][:limit]
        for row in rows:
            if row[2].decode() not in kept and row[0] not in self._kept.base.needed:
                self._kept.remove(row)
                if row[3] is not None:
                    del self._seqs[row[3]]
        return rows[-1][0] if rows else None

    def erase(self, before: Extent, seqs: Sequence[int], base: Base | None) -> bool:
        self._check_open()
        if self._kept.extent != before:
            return False
        for seq in seqs:
            place = self._place_after(seq - 1)
            (self._kept[place],) = encode_rows(seq, [ERASED_ROW])
        self._seqs = _seqs(self._kept)
        self._kept.base = base or Base(0)
        self._kept.extent = Extent(self._kept.base.seq, before.erasures + 1)
        return True

    def reclaim(self) -> bool:
        return False

    def compact(self) -> None:
        pass

    def lease(self) -> Lease:
        return _Held(self)

    def close(self) -> None:
        self._is_closed = True

    def _place_after(self, seq: int) -> int:
        """Return the place of the first row after a seq."""
        return bisect_right(self._kept, seq, key=itemgetter(0))

    def _check_open(self) -> None:
        if self._is_closed:
            raise LogUnavailable("the log is closed; open it again to use it")


class _Held:
    """A lease without competitors."""

    def __init__(self, log: MemoryLog) -> None:
        self.token = 1
        self.append = log.append

    def outbid(self, token: int) -> bool:
        """Return True."""
        self.token = token + 1
        return True

    def take(self, *, over: int | None = None) -> bool:
        return True

    def is_free(self) -> bool:
        return True

    def is_held(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _seqs(batch: Sequence[EncodedRow]) -> dict[bytes, int]:
    return {request: seq for seq, _, _, request, *_ in batch if request is not None}
