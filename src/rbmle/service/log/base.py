"""The interface of a log: rows in one total order, stored atomically, and never lost once acknowledged.

Records leave a log in two ways only. Retention deletes the oldest ones, once the log has a `Base`: what a fold
knew after the last of them. An erasure replaces the records of some events by empty ones.

LogError
├── LogUnavailable     a disk or a server that does not serve at the moment; try again later
├── LogChanged         records were erased or deleted that the caller still wanted
├── DuplicateRequest   rows whose request was stored before
├── LeaseLost          another learner has taken over; nothing was stored
├── LogDamaged         a row that differs from what was stored
└── LogRefused         a log that must not be opened: in use, foreign, or from a later version
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from rbmle.core.errors import RBMLEError

PUBLIC_MESSAGE = "the log is not available at the moment; send the same request again"  # to clients
_PASSWORD = re.compile(r"(?i)(postgres(?:ql)?://[^\s:/@]*):\S*@|(password=)[^\s&]*")

KEY_BYTES = 2048  # PostgreSQL indexes keys of up to 2704 bytes
TIME_LIMIT = 2**63  # times are stored in 64 bits
ERASED = "\x1d"  # the event of erased records


class LogError(RBMLEError):
    """The root of the tree."""


class LogUnavailable(LogError):
    """A full disk, a failed read, write or sync, a lost connection, or a closed log.

    The log stays usable, and the same call may be repeated. `may_be_stored` says that an append failed so late
    that all of its rows may turn out to be stored: at once for another connection, or after a restart. The same
    log stores the same rows only once if the append is repeated; others look with `of_request`.

    The message is for the operator, and may name files and hosts; clients see it only if it `is_public`.
    """

    def __init__(
        self, message: str, *, may_be_stored: bool = False, is_public: bool = False
    ) -> None:
        LogError.__init__(self, message)
        self.may_be_stored = may_be_stored
        self.public_message = message if is_public else PUBLIC_MESSAGE


class DuplicateRequest(LogError):
    """A request that was stored before, or is twice in one batch; nothing of the batch is stored.

    `places` are those of the repeated rows in the batch; the rest can be stored without them.
    """

    def __init__(self, message: str, places: Sequence[int]) -> None:
        LogError.__init__(self, message)
        self.places = tuple(places)


class LeaseLost(LogError):
    """A learner tried to write after another one had taken over; nothing is stored."""

    def __init__(self, token: int, newer: int) -> None:
        self.newer = newer
        LogError.__init__(self, f"the lease {token} is over: another learner has the lease {newer}")


class LogChanged(LogError):
    """Records were erased or deleted meanwhile; fold the log again, from its base."""


class LogDamaged(LogError):
    """A row that differs from what was stored; `seq` is its number, or None if it is unknown."""

    def __init__(self, message: str, seq: int | None = None) -> None:
        LogError.__init__(self, message)
        self.seq = seq


class LogRefused(LogError):
    """A log that must not be opened: in use by another writer, foreign, or from a later version."""


def mask_passwords(text: str) -> str:
    """Return a text with the passwords in database URLs masked.

    >>> mask_passwords("postgresql://me:secret@host/data?sslpassword=secret")
    'postgresql://me:***@host/data?sslpassword=***'
    """
    return _PASSWORD.sub(lambda match: f"{match[1]}:***@" if match[1] else f"{match[2]}***", text)


@dataclass(frozen=True, slots=True)
class Row:
    """One fact to remember; the log does not look into its payload.

    A request is the idempotency key of the call that brought the row: no two rows of a log have the same one.
    Any number of rows may have none.
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
            raise ValueError(f"time {self.time} does not fit in 64 bits; give milliseconds")


@dataclass(frozen=True, slots=True)
class Stored:
    """A row and its number in the log: 1, 2, …, with gaps only up to `Extent.deleted`."""

    seq: int
    row: Row


@dataclass(frozen=True, slots=True)
class Extent:
    """What has left a log."""

    deleted: int = 0  # records up to this one may be missing: retention has deleted them
    erasures: int = 0  # how often records of events were erased


@dataclass(frozen=True, slots=True)
class Base:
    """What a fold knew after the last record that retention has deleted: the fold begins here."""

    seq: int  # of that record
    needed: tuple[
        int, ...
    ] = ()  # records up to it that stay: the decisions that the fold waits for
    content: bytes = b""  # as `learner.checkpoints` writes it; empty: forget all earlier records


ERASED_ROW = Row("erased", ERASED, None, 0, b"{}")  # what stays of an erased row, and its number


class Log(Protocol):
    """Rows in one total order.

    One thread of a log appends; other logs, in other processes, may append to the same place, and
    then rows are numbered in the order in which they become visible. Any thread reads, at any time.
    A read sees whole batches only, only rows that survive a power cut, and rows in their order.
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

        Nothing is locked between two rows, so a slow or abandoned reader blocks nobody, and a reader that
        arrives at the end has seen every row appended until then. Raise LogDamaged at a damaged row.
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

    def extent(self) -> Extent:
        """Return what has left the log."""
        ...

    def base(self) -> Base | None:
        """Return where a fold of the log begins; None if that is its first record."""
        ...

    def rebase(self, before: Extent, base: Base) -> bool:
        """Let folds begin later; return False, and do nothing, if the extent is not `before` any more.

        From then on records up to the base may be deleted, by `discard`. A base that is not before the last
        record is a ValueError.
        """
        ...

    def discard(self, after: int, limit: int, kept: Collection[str]) -> int | None:
        """Delete some records after a seq that the base covers, but not those of the events `kept`.

        At most `limit` are looked at, in one short transaction. Return the seq of the last of these, to go on
        after; None if there are no more.
        """
        ...

    def erase(self, before: Extent, seqs: Sequence[int], base: Base | None) -> bool:
        """Replace records by empty ones, and the base by another; return False as `rebase` does.

        All of it happens in one transaction, or nothing.
        """
        ...

    def reclaim(self) -> bool:
        """Return some of the space of deleted records to the system; return whether there may be more."""
        ...

    def compact(self) -> None:
        """Return all free space to the system, and remove what is left of deleted rows; it may block others."""
        ...

    def verify(self) -> list[str]:
        """Read the whole log, and return every problem: gaps and damaged rows."""
        ...

    def lease(self) -> "Lease":
        """Return a lease on learning from this log; nobody has it before it is taken."""
        ...

    def close(self) -> None:
        """Close the log; any call after that, except another `close`, raises LogUnavailable."""
        ...


class Lease(Protocol):
    """A lease: one process at most has it, until it releases it, ends, or hangs and is taken over."""

    token: int  # the fencing token of this process, above all earlier ones; 0: it has no lease

    def take(self, *, over: int | None = None) -> bool:
        """Return whether this process has it now; it does not wait for another one.

        `over` is the token of a holder that hangs, and from which the lease may be taken.
        """
        ...

    def is_free(self) -> bool:
        """Return whether nobody has it."""
        ...

    def is_held(self) -> bool:
        """Return whether this process still has it; a lost connection loses it, as does a takeover."""
        ...

    def outbid(self, token: int) -> bool:
        """Take a token above another log's, whose publications are there; return False if the lease is lost."""
        ...

    def append(self, rows: Sequence[Row]) -> int:
        """Append to the log as `Log.append` does; raise LeaseLost if another process has taken over."""
        ...

    def release(self) -> None:
        """Give up the lease, so that another process can take it."""
        ...


def origin_of(log: Log) -> str:
    """Return an id of a log: a digest of its first record, which has the seed of its model, and its erasures.

    So what was made of a log before an erasure is recognised, wherever it is kept; see `is_same_log`.
    """
    erasures = log.extent().erasures  # first: an erasure in between is then noticed
    first = next(iter(log.read(0, 1)), None)
    if first is None:
        return ""
    digest = blake2b(b"%d/" % first.row.time + first.row.payload, digest_size=16).hexdigest()
    return f"{digest}.{erasures}" if erasures else digest


def is_same_log(origin: str, other: str) -> bool:
    """Return whether two origins are of one log, maybe before and after an erasure.

    >>> is_same_log("ab", "ab.2"), is_same_log("ab", "cd")
    (True, False)
    """
    return origin.partition(".")[0] == other.partition(".")[0]
