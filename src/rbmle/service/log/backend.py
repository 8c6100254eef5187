"""What SQLite and PostgreSQL logs share: rows with checksums, a pool of connections, a fenced lease.

The lock alone is enough for a process that ends, however it ends. A process that is stopped, or hangs, keeps
its lock, so another one may take over by the token: it writes the next token into the log. From then on
whatever the earlier holder appends or publishes with its own token is refused, should it ever go on.
"""

import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from rbmle.service.log.base import (
    ERASED_ROW,
    Base,
    DuplicateRequest,
    Extent,
    LeaseLost,
    LogDamaged,
    LogUnavailable,
    Row,
    Stored,
)
from rbmle.service.log.writer import Outage

COLUMNS = ("seq", "kind", "event", "request", "time", "payload", "checksum")
HEAD = struct.Struct("<qqqqqq")
NO_REQUEST = -1  # its length; an empty request has length 0
CHUNK = 64  # rows in one read, so that reads are short and take little memory


# seq, kind, event, request, time, payload, checksum. Texts are UTF-8 bytes, so that every text can be
# stored whatever a database thinks of characters, and damaged ones can be read and reported.
EncodedRow = tuple[int, bytes, bytes, bytes | None, int, bytes, int]


def encode_rows(first: int, rows: Sequence[Row]) -> list[EncodedRow]:
    """Return the values of rows that are numbered from `first` on."""
    encoded = []
    for seq, row in enumerate(rows, first):
        request = None if row.request is None else row.request.encode()
        values = (seq, row.kind.encode(), row.event.encode(), request, row.time, row.payload)
        encoded.append((*values, _checksum((*values, 0))))
    return encoded


def decode_row(encoded: EncodedRow) -> Stored:
    """Return the row that has these values; raise LogDamaged if they differ from what was stored."""
    seq, kind, event, request, time, payload, checksum = encoded
    try:
        is_sound = checksum == _checksum(encoded)
    except (TypeError, struct.error):  # damage can make any value one of another type
        is_sound = False
    if not is_sound:
        raise LogDamaged(
            f"row {seq} of the log is damaged: it does not have the checksum it was stored with; "
            f"restore the log from a copy",
            seq,
        )
    texts = kind.decode(), event.decode(), None if request is None else request.decode()
    return Stored(seq, Row(*texts, time, payload))


def _checksum(encoded: EncodedRow) -> int:
    """Return the CRC-32 of all values but the last, each with its length."""
    seq, kind, event, request, time, payload, _ = encoded
    request_length = NO_REQUEST if request is None else len(request)
    head = HEAD.pack(seq, time, len(kind), len(event), request_length, len(payload))
    return zlib.crc32(payload, zlib.crc32(head + kind + event + (request or b"")))


def find_problems(entries: Iterable[EncodedRow], deleted: int = 0) -> list[str]:
    """Return the damaged rows of a whole log, read in order, and the gaps after row `deleted`."""
    problems = []
    last = 0
    for entry in entries:
        seq = entry[0]
        if seq != last + 1 and seq > deleted + 1:
            problems.append(f"row {last + 1} should follow row {last}, but row {seq} does")
        last = seq
        try:
            decode_row(entry)
        except LogDamaged as damage:
            problems.append(str(damage))
    return problems


def requests_of(rows: Sequence[Row]) -> list[bytes]:
    return [row.request.encode() for row in rows if row.request is not None]


def duplicate_error(rows: Sequence[Row], known: Iterable[bytes]) -> DuplicateRequest:
    """Return the refusal of a batch; `known` are those of its requests that were stored before."""
    seen = set(known)
    places = []
    for place, row in enumerate(rows):
        request = None if row.request is None else row.request.encode()
        if request in seen:
            places.append(place)
        elif request is not None:
            seen.add(request)
    again = ", ".join(repr(rows[place].request) for place in places)
    return DuplicateRequest(f"stored before, or twice in one batch: request {again}", places)


class Fence(NamedTuple):
    """What a log knows of its holder."""

    token: int = 0  # of the newest holder; 0: no one has held it
    has_lock: bool = True  # False: it took over from one that hung, and that still had the lock


class LeaseLock(Protocol):
    """A lock that one process at most has at a time, until it releases it or ends."""

    def take(self) -> bool:
        """Return whether this process has it now; it does not wait for another one."""
        ...

    def is_held(self) -> bool:
        """Return whether this process still has it; a lost connection loses it."""
        ...

    def release(self) -> None: ...


Execute = Callable[..., list[tuple[Any, ...]]]  # a statement and its values to rows


class DatabaseLog(ABC):
    """A log in a table of a database, with a fence; see `Log`. A subclass knows the database and its SQL."""

    BY_EVENT: ClassVar[str]  # a query for the rows of an event
    BY_REQUEST: ClassVar[str]
    NEXT: ClassVar[str]  # a query for so many rows after a seq
    TABLE: ClassVar[str]
    BASE_TABLE: ClassVar[str]
    HAS_BASE: ClassVar[str]  # a query that has a row with a true value if there is that table
    CREATE_BASE: ClassVar[str]
    TEXT: ClassVar[str] = "?"  # a parameter for a text

    def append(self, rows: Sequence[Row]) -> int:
        return self._append(rows, None)

    def append_as(self, token: int, rows: Sequence[Row]) -> int:
        """Append as the holder with a token, or raise LeaseLost if there is a newer one."""
        return self._append(rows, token)

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        return map(decode_row, self._read_encoded(after, limit))

    def of_event(self, event: str) -> list[Stored]:
        return [decode_row(encoded) for encoded in self._query(self.BY_EVENT, event.encode())]

    def of_request(self, request: str) -> Stored | None:
        rows = self._query(self.BY_REQUEST, request.encode())
        return decode_row(rows[0]) if rows else None

    def verify(self) -> list[str]:
        return find_problems(self._read_encoded(), self.extent().deleted)

    def extent(self) -> Extent:
        with self._reading() as execute:
            return self._extent(execute)

    def base(self) -> Base | None:
        with self._reading() as execute:
            if not self._extent(execute).deleted:
                return None
            ((seq, needed, content),) = execute(
                f"SELECT seq, needed, content FROM {self.BASE_TABLE}"
            )
        return Base(seq, msgspec.msgpack.decode(needed, type=tuple[int, ...]), bytes(content))

    def rebase(self, before: Extent, base: Base) -> bool:
        check_base(base, self.last())
        with self._changing() as execute:
            if self._extent(execute) != before:
                return False
            self._put_base(execute, before.erasures, base)
        return True

    def discard(self, after: int, limit: int, kept: Collection[str]) -> int | None:
        base = self.base()
        if base is None:
            return None
        kept_events, needed = {event.encode() for event in kept}, set(base.needed)
        looked = (
            f"SELECT seq, event FROM {self.TABLE} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        )
        with self._reading() as execute:
            rows = [
                (seq, _as_bytes(event)) for seq, event in execute(looked, after, base.seq, limit)
            ]
        if not rows:
            return None
        last = rows[-1][0]
        stay = [seq for seq, event in rows if event in kept_events or seq in needed]
        if len(stay) < len(rows):
            others = f" AND seq NOT IN ({', '.join(map(str, stay))})" if stay else ""
            with self._changing(is_appending=False) as execute:
                execute(f"DELETE FROM {self.TABLE} WHERE seq > ? AND seq <= ?{others}", after, last)
        return last

    def erase(self, before: Extent, seqs: Sequence[int], base: Base | None) -> bool:
        update = (
            f"UPDATE {self.TABLE} SET kind = {self.TEXT}, event = {self.TEXT}, request = NULL, time = ?,"
            " payload = ?, checksum = ? WHERE seq = ?"
        )
        with self._changing() as execute:
            if self._extent(execute) != before:
                return False
            for seq in seqs:
                ((_, kind, event, _, time, payload, checksum),) = encode_rows(seq, [ERASED_ROW])
                execute(update, kind, event, time, payload, checksum, seq)
            self._put_base(execute, before.erasures + 1, base)
        self._forget_old_rows()
        return True

    def restore_base(self, base: Base | None, erasures: int) -> None:
        """Store the base of a log that is being restored."""
        with self._changing() as execute:
            self._put_base(execute, erasures, base)

    def reclaim(self) -> bool:
        return False

    def _extent(self, execute: "Execute") -> Extent:
        if not any(row[0] for row in execute(self.HAS_BASE)):
            return Extent()
        rows = execute(f"SELECT seq, erasures FROM {self.BASE_TABLE}")
        return Extent(*rows[0]) if rows else Extent()

    def _put_base(self, execute: "Execute", erasures: int, base: Base | None) -> None:
        base = base or Base(0)
        execute(self.CREATE_BASE)
        execute(f"DELETE FROM {self.BASE_TABLE}")
        needed = msgspec.msgpack.encode(base.needed)
        execute(
            f"INSERT INTO {self.BASE_TABLE} VALUES (?, ?, ?, ?)",
            base.seq,
            erasures,
            needed,
            base.content,
        )

    @abstractmethod
    def _reading(self) -> "AbstractContextManager[Execute]":
        """Lend a connection for reading, as a function that executes a statement; ? is a parameter."""

    @abstractmethod
    def _changing(self, *, is_appending: bool = True) -> "AbstractContextManager[Execute]":
        """Begin a transaction in which nobody else appends, if `is_appending`; it ends with the context."""

    @abstractmethod
    def _forget_old_rows(self) -> None:
        """Remove what the database still has of rows that were changed."""

    @abstractmethod
    def last(self) -> int: ...

    @abstractmethod
    def fence(self) -> Fence:
        """Return the fence as it is now."""

    @abstractmethod
    def move_fence(self, before: int, after: Fence) -> bool:
        """Replace the fence if its token is still `before`; return whether it was."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _append(self, rows: Sequence[Row], token: int | None) -> int:
        """Store rows in one transaction; raise LeaseLost in it if there is a token that is not the fence's."""

    @abstractmethod
    def _query(self, query: str, *values: int | bytes) -> list[EncodedRow]: ...

    def _read_encoded(self, after: int = 0, limit: int | None = None) -> Iterator[EncodedRow]:
        """Yield rows in their order, from short reads."""
        while limit is None or limit > 0:
            size = CHUNK if limit is None else min(limit, CHUNK)
            chunk = self._query(self.NEXT, after, size)
            yield from chunk
            if len(chunk) < size:
                return
            after = chunk[-1][0]
            limit = None if limit is None else limit - size


def check_base(base: Base, last: int) -> None:
    """Raise ValueError if the log would not know the number of its last record once others are deleted."""
    if not 0 < base.seq < last:
        raise ValueError(
            f"the base is {base.seq}; it must be above 0 and below {last}, the last record"
        )


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def check_token(token: int, fence: Fence) -> None:
    """Raise LeaseLost if another process has taken over from the holder with a token."""
    if token != fence.token:
        raise LeaseLost(token, fence.token)


class FencedLease:
    """A lease by a lock and a fence, with its own connection to the log."""

    def __init__(self, lock: LeaseLock, open_log: Callable[[], DatabaseLog]) -> None:
        self.token = 0
        self._lock = lock
        self._open_log = open_log
        self._opened: DatabaseLog | None = None
        self._taking = Outage("take the lease")

    def take(self, *, over: int | None = None) -> bool:
        """Return whether this process has it now; it does not wait for another one."""
        if self.token:
            return self.is_held()
        has_lock = self._lock.take()
        if not has_lock and over is None:
            return False
        with self._taking.watch(LogUnavailable):
            fence = self._log.fence()
            is_free = has_lock and fence.has_lock
            if is_free or fence.token == over:
                after = Fence(fence.token + 1, has_lock)
                self.token = after.token if self._log.move_fence(fence.token, after) else 0
        if not self.token:
            self._lock.release()
        return self.token > 0

    def is_free(self) -> bool:
        if self.token or not self._lock.take():
            return False
        try:
            return self._log.fence().has_lock
        except LogUnavailable:
            return False
        finally:
            self._lock.release()

    def is_held(self) -> bool:
        """Return whether this process has it, and no other one has taken over."""
        if not self.token:
            return False
        try:
            fence = self._log.fence()
            if fence.token == self.token and not fence.has_lock and self._lock.take():
                self._log.move_fence(self.token, Fence(self.token, has_lock=True))
                return True
            is_held = fence.token == self.token and (self._lock.is_held() or not fence.has_lock)
        except LogUnavailable:  # nothing can be appended either
            is_held = self._lock.is_held()
        if not is_held:
            self._drop()
        return is_held

    def outbid(self, token: int) -> bool:
        after = Fence(token + 1, self._lock.is_held())
        if not self.token or not self._log.move_fence(self.token, after):
            return False
        self.token = after.token
        return True

    def append(self, rows: Sequence[Row]) -> int:
        return self._log.append_as(self.token, rows)

    def release(self) -> None:
        token, self.token = self.token, 0
        if token and not self._lock.is_held():
            with suppress(LogUnavailable):
                if self._log.fence() == Fence(token, has_lock=False):
                    self._log.move_fence(token, Fence(token))
        self._drop()

    def _drop(self) -> None:
        self.token = 0
        self._lock.release()
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    @property
    def _log(self) -> DatabaseLog:
        if self._opened is None:
            self._opened = self._open_log()
        return self._opened


class Closable(Protocol):
    """A connection of a pool."""

    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closable)


class Pool(Generic[Connection]):
    """As many connections as there were borrowers at the same time."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._is_closed = False
        self._lock = Lock()

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Lend a connection; one that its borrower failed with is not lent again."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def clear(self) -> None:
        """Close the connections that are not lent."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        self._is_closed = True
        self.clear()

    def _take(self) -> Connection:
        with self._lock:
            if self._is_closed:
                raise LogUnavailable("the log is closed; open it again to read it")
            if self._idle:
                return self._idle.pop()
        return self._connect()
