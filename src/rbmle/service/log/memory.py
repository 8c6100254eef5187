"""A log in memory, for tests: it keeps every promise but to be there tomorrow."""

from collections.abc import Iterator, Sequence

from rbmle.service.log.base import Lease, Row, Stored
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.row_codec import (
    EncodedRow,
    duplicate,
    encoded_rows,
    problems_of,
    requests_of,
    stored,
)


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
        """Store rows, all or none; return the seq of the first."""
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        self._check_open()
        if self.is_unavailable:
            raise LogUnavailable("the log in memory is set to fail")
        requests = requests_of(rows)
        known = self._places.keys() & requests
        if known or len(set(requests)) < len(requests):
            raise duplicate(rows, known)
        first = self.last() + 1
        batch = encoded_rows(first, rows)
        self._places.update(_places(batch))
        self._kept.extend(batch)  # one step to other threads
        return first

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        """Yield rows with seq > after in their order."""
        self._check_open()
        end = None if limit is None else after + limit
        while after != end and after < len(self._kept):
            yield stored(self._kept[after])
            after += 1

    def of_event(self, event: str) -> list[Stored]:
        """Return the rows of an event in their order."""
        self._check_open()
        return [stored(encoded) for encoded in self._kept[:] if encoded[2] == event.encode()]

    def of_request(self, request: str) -> Stored | None:
        """Return the row with this request, or None."""
        self._check_open()
        place = self._places.get(request.encode())
        return None if place is None or place >= self.last() else stored(self._kept[place])

    def last(self) -> int:
        """Return the seq of the last row."""
        self._check_open()
        return len(self._kept)

    def size(self) -> int:
        """Return the bytes of all payloads."""
        self._check_open()
        return sum(len(payload) for *_, payload, _ in self._kept[:])

    def verify(self) -> list[str]:
        """Return every problem found by reading it all."""
        self._check_open()
        return problems_of(self._kept[:])

    def lease(self) -> Lease:
        """Return a lease; the list is of this process alone."""
        return _Held(self)

    def close(self) -> None:
        """Answer no more."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise LogUnavailable("the log is closed; open it again to use it")


class _Held:
    """A lease that nobody else wants."""

    def __init__(self, log: MemoryLog) -> None:
        self.token = 1
        self.append = log.append

    def outbid(self, token: int) -> bool:
        """Return True."""
        self.token = token + 1
        return True

    def take(self, *, over: int | None = None) -> bool:
        """Return True."""
        return True

    def is_free(self) -> bool:
        """Return True."""
        return True

    def is_held(self) -> bool:
        """Return True."""
        return True

    def release(self) -> None:
        """Do nothing."""


def _places(batch: Sequence[EncodedRow]) -> dict[bytes, int]:
    """Return where in the list the row of each request is."""
    return {request: seq - 1 for seq, _, _, request, *_ in batch if request is not None}
