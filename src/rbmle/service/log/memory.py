"""A log in memory, for tests: it keeps every promise except durability."""

from collections.abc import Iterator, Sequence

from rbmle.service.log.backend import (
    EncodedRow,
    decode_row,
    duplicate_error,
    encode_rows,
    find_problems,
    requests_of,
)
from rbmle.service.log.base import Lease, LogUnavailable, Row, Stored


class MemoryLog:
    """Rows in a list. Logs that share one list are the same log, opened again.

    Appends fail while `is_unavailable` is set, as on a full disk.
    """

    def __init__(self, kept: list[EncodedRow] | None = None) -> None:
        self._kept = [] if kept is None else kept
        self._places = _places(self._kept)
        self._is_closed = False
        self.is_unavailable = False

    def append(self, rows: Sequence[Row]) -> int:
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        self._check_open()
        if self.is_unavailable:
            raise LogUnavailable("the log in memory is set to fail")
        requests = requests_of(rows)
        known = self._places.keys() & requests
        if known or len(set(requests)) < len(requests):
            raise duplicate_error(rows, known)
        first = self.last() + 1
        batch = encode_rows(first, rows)
        self._places.update(_places(batch))
        self._kept.extend(batch)  # one step to other threads
        return first

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        self._check_open()
        end = None if limit is None else after + limit
        while after != end and after < len(self._kept):
            yield decode_row(self._kept[after])
            after += 1

    def of_event(self, event: str) -> list[Stored]:
        self._check_open()
        return [decode_row(encoded) for encoded in self._kept[:] if encoded[2] == event.encode()]

    def of_request(self, request: str) -> Stored | None:
        self._check_open()
        place = self._places.get(request.encode())
        return None if place is None or place >= self.last() else decode_row(self._kept[place])

    def last(self) -> int:
        self._check_open()
        return len(self._kept)

    def size(self) -> int:
        self._check_open()
        return sum(len(payload) for *_, payload, _ in self._kept[:])

    def verify(self) -> list[str]:
        self._check_open()
        return find_problems(self._kept[:])

    def lease(self) -> Lease:
        return _Held(self)

    def close(self) -> None:
        self._is_closed = True

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


def _places(batch: Sequence[EncodedRow]) -> dict[bytes, int]:
    return {request: seq - 1 for seq, _, _, request, *_ in batch if request is not None}
