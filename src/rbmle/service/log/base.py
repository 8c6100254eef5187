"""What a log promises: rows in one order, stored all or none, and never lost once acknowledged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

KEY_BYTES = 2048  # PostgreSQL indexes keys of up to 2704 bytes
TIME_LIMIT = 2**63  # times are stored in 64 bits


@dataclass(frozen=True, slots=True)
class Row:
    """One fact to remember; what its payload means is its writer's affair.

    A request is the idempotency key of the call that brought the row: no two rows of a log have
    the same. None means that the row has no such key, and any number of rows may have none.
    """

    kind: str
    event: str  # its id; at most KEY_BYTES in UTF-8, as is the request
    request: str | None
    time: int  # milliseconds since the epoch
    payload: bytes

    def __post_init__(self) -> None:
        for name, text in (("kind", self.kind), ("event", self.event), ("request", self.request)):
            if text is None or (text.isascii() and len(text) <= KEY_BYTES):
                continue
            try:
                size = len(text.encode())
            except UnicodeEncodeError:
                raise ValueError(
                    f"{name} {text!r} has half of a surrogate pair; give text that UTF-8 can say"
                ) from None
            if size > KEY_BYTES:
                raise ValueError(f"{name} is {size} bytes long, but may be {KEY_BYTES} at most")
        if not -TIME_LIMIT <= self.time < TIME_LIMIT:
            raise ValueError(f"time {self.time} is no number of 64 bits; give milliseconds")


@dataclass(frozen=True, slots=True)
class Stored:
    """A row and its number in the log: 1, 2, …, without gaps."""

    seq: int
    row: Row


class Log(Protocol):
    """Rows in one total order.

    One thread of a log appends; other logs, in other processes, may append to the same place, and
    then rows are numbered in the order in which they become visible. Any thread reads, at any time.
    A read sees whole batches only, only what a power cut leaves, and no row after a later one.
    """

    def append(self, rows: Sequence[Row]) -> int:
        """Store rows in one transaction, all or none; return the seq of the first.

        When it returns, they survive kill -9 and a power cut. Raise DuplicateRequest if the request
        of a row was stored before, LogUnavailable if the rows could not be stored: then the log
        is as it was, and a later append may succeed. Where it cannot be known whether they were
        stored, LogUnavailable says so. A batch of no rows is a ValueError.
        """
        ...

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        """Yield rows with seq > after in their order, `limit` at most.

        Nothing is held between two rows: a slow or abandoned reader is in nobody's way, and one
        that arrives at the end has seen every row appended until then. Raise LogDamaged at
        a row that is not what was stored.
        """
        ...

    def of_event(self, event: str) -> list[Stored]:
        """Return the rows of an event in their order."""
        ...

    def of_request(self, request: str) -> Stored | None:
        """Return the row with this request, or None if none was stored."""
        ...

    def last(self) -> int:
        """Return the seq of the last row; 0 if there is none."""
        ...

    def size(self) -> int:
        """Return how many bytes the log takes where it is kept."""
        ...

    def verify(self) -> list[str]:
        """Return every problem found by reading it all: gaps, damaged rows; none if it is sound."""
        ...

    def lease(self) -> "Lease":
        """Return a lease on the right to learn from this log; nobody has it before it is taken."""
        ...

    def close(self) -> None:
        """Let go of the log. Closing twice is allowed; any other call is then LogUnavailable."""
        ...


class Lease(Protocol):
    """A right that one process at most has at a time, until it lets go, ends, or hangs and is taken over."""

    token: (
        int  # the fencing token of this process, above those of all before it; 0: it has no lease
    )

    def take(self, *, over: int | None = None) -> bool:
        """Return whether this process has it now; it does not wait for another one.

        `over` is the token of a holder that hangs: it is taken over from that one, which has not let go.
        """
        ...

    def is_free(self) -> bool:
        """Return whether nobody has it."""
        ...

    def is_held(self) -> bool:
        """Return whether this process still has it; a lost connection loses it, as does a takeover."""
        ...

    def outbid(self, token: int) -> bool:
        """Get a token above one that is not of this log; return False if another process has taken over."""
        ...

    def append(self, rows: Sequence[Row]) -> int:
        """Append to the log as `Log.append` does; raise LeaseLost if another process has taken over."""
        ...

    def release(self) -> None:
        """Let another process have it."""
        ...
