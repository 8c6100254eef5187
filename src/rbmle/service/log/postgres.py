"""A log in PostgreSQL, through psycopg: one statement a batch, and no doubt about lost answers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from rbmle.service.log import postgres_server as server
from rbmle.service.log.base import Lease, Row, Stored
from rbmle.service.log.errors import LeaseLost, LogRefused, LogUnavailable, masked
from rbmle.service.log.lease import Fence, FencedLease
from rbmle.service.log.pool import Pool
from rbmle.service.log.row_codec import (
    COLUMNS,
    EncodedRow,
    duplicate,
    encoded_rows,
    in_chunks,
    problems_of,
    requests_of,
    stored,
)

INSERT = (
    "INSERT INTO rbmle_log SELECT * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[],"
    " %b::bytea[], %b::bigint[], %b::bytea[], %b::bigint[])"
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM rbmle_log "


FENCE = "SELECT token, has_lock FROM rbmle_fence"
Check = Callable[[server.ServerSession], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBatch:
    """Rows that were sent, and whose answer never came."""

    first: int
    rows: tuple[Row, ...]


class PostgresLog:
    """A log in the first schema of a URL's search path, for any number of processes.

    Lost connections are made again. It needs sessions of its own: no pooler of transactions.
    `lock_seconds` is how long to wait for what others are appending.
    """

    def __init__(self, url: str, *, is_read_only: bool = False, lock_seconds: float = 5.0) -> None:
        server.place(url)  # else it is no URL
        self._url = url
        self._lock_seconds = lock_seconds
        self._is_read_only = is_read_only
        self._is_closed = False
        self._readers = Pool(lambda: server.connect_reader(url))
        self._writer: server.ServerSession | None = None
        self._unsettled: SentBatch | None = None
        try:
            if is_read_only:
                with self._readers.lent() as connection:
                    if server.is_empty(connection, url):
                        raise LogRefused(
                            f"there is no log in {self._place}; a writer has to make it"
                        )
            else:
                self._writing()
        except psycopg.Error as error:
            raise self._unavailable("open", error) from error

    def append(self, rows: Sequence[Row]) -> int:
        """Store rows in one statement, all or none; return the seq of the first.

        If the connection is lost before the answer, look on a new one whether the rows are there
        before trying again.
        """
        return self._append_patiently(rows, lambda _: None)

    def _append_patiently(self, rows: Sequence[Row], check: Check) -> int:
        """Store rows; `check` looks at the log in the same transaction, and may raise an error."""
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        if self._is_closed or self._is_read_only:
            raise LogUnavailable(f"the log in {self._place} is closed, or open for reading only")
        batch = tuple(rows)
        for is_last_try in (False, True):  # the first may meet a connection lost long ago
            try:
                return self._append(batch, check)
            except psycopg.errors.UniqueViolation as error:
                if error.diag.constraint_name != "rbmle_log_request":
                    raise self._unavailable("write", error, batch) from error
                raise duplicate(batch, self._known(batch)) from None
            except psycopg.Error as error:
                if is_last_try or not self._is_lost():
                    raise self._unavailable("write", error, batch) from error
            except LogRefused as error:  # the session before has not ended, or somebody came first
                raise self._unavailable("write", error, batch) from error
        raise AssertionError("the last try returns or raises")

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        """Yield rows with seq > after in their order, from short reads of CHUNK rows."""
        return (stored(encoded) for encoded in self._encoded(after, limit))

    def of_event(self, event: str) -> list[Stored]:
        """Return the rows of an event in their order."""
        found = self._ask(SELECT + "WHERE event = %s ORDER BY seq", event.encode())
        return [stored(encoded) for encoded in found]

    def of_request(self, request: str) -> Stored | None:
        """Return the row with this request, or None."""
        found = self._ask(SELECT + "WHERE request = %s", request.encode())
        return stored(found[0]) if found else None

    def last(self) -> int:
        """Return the seq of the last row."""
        return int(self._ask(server.LAST)[0][0])

    def size(self) -> int:
        """Return the bytes of the table and its indexes."""
        return int(self._ask("SELECT pg_total_relation_size('rbmle_log')")[0][0])

    def verify(self) -> list[str]:
        """Return the gaps and the damaged rows; the server itself checks no more when asked."""
        return problems_of(self._encoded(0, None))

    def lease(self) -> Lease:
        """Return a lease by an advisory lock."""
        return FencedLease(
            server.ServerLock(self._url),
            lambda: PostgresLog(self._url, lock_seconds=self._lock_seconds),
        )

    def fence(self) -> Fence:
        """Return the fence as it is now."""
        if self._ask(server.HAS_FENCE) != [(True,)]:
            return Fence()
        return _fence(self._ask(FENCE))

    def move_fence(self, before: int, after: Fence) -> bool:
        """Replace the fence if its token is still `before`; return whether it was."""
        try:
            connection = self._writing()
            with connection.transaction():
                connection.execute(server.LOCK)  # nobody appends meanwhile
                connection.execute(server.FENCE)
                if _fence(connection.execute(FENCE).fetchall()).token != before:
                    return False
                connection.execute("DELETE FROM rbmle_fence")
                connection.execute("INSERT INTO rbmle_fence VALUES (%s, %s)", after)
                return True
        except psycopg.Error as error:
            raise self._unavailable("write", error) from error

    def append_as(self, token: int, rows: Sequence[Row]) -> int:
        """Append as the holder with a token, or raise LeaseLost if there is a newer one."""

        def check(connection: server.ServerSession) -> None:
            newest = _fence(connection.execute(FENCE).fetchall()).token
            if newest != token:
                raise LeaseLost(token, newest)

        return self._append_patiently(rows, check)

    def close(self) -> None:
        """End all sessions."""
        self._is_closed = True
        self._readers.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def _place(self) -> str:
        return server.place(self._url)

    def _append(self, rows: tuple[Row, ...], check: Check) -> int:
        """Store a batch in one transaction, unless a try before has stored it."""
        connection = self._writing()
        before = self._unsettled
        if before is not None and before.rows != rows:
            before = self._unsettled = None
        is_sent = False
        try:
            last = server.begin_appending(connection)
            check(connection)
            if before is not None and before.first <= last and self._has(connection, before):
                first = before.first
                connection.execute("COMMIT")
            else:
                first = last + 1
                columns = [list(column) for column in zip(*encoded_rows(first, rows), strict=True)]
                self._unsettled, is_sent = SentBatch(first=first, rows=rows), True
                with connection.pipeline():  # what is prepared in one that fails is lost
                    connection.execute(INSERT, columns, prepare=False)
                    connection.execute("COMMIT", prepare=False)
        except (psycopg.Error, LeaseLost):
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
                self._unsettled = None if is_sent else before  # the server stored nothing just now
            raise
        self._unsettled = None
        return first

    def _has(self, connection: server.ServerSession, batch: SentBatch) -> bool:
        """Return whether these very rows stand where they would stand."""
        query = SELECT + "WHERE seq BETWEEN %s AND %s ORDER BY seq"
        last = batch.first + len(batch.rows) - 1
        found = connection.execute(query, (batch.first, last), binary=True).fetchall()
        return [tuple(row) for row in found] == encoded_rows(batch.first, batch.rows)

    def _writing(self) -> server.ServerSession:
        """Return the connection that writes; a new one if the old one is lost."""
        if self._writer is None or self._is_lost():
            self._writer = server.connect_writer(self._url, self._lock_seconds)
        return self._writer

    def _is_lost(self) -> bool:
        return self._writer is None or self._writer.closed

    def _encoded(self, after: int, limit: int | None) -> Iterator[EncodedRow]:
        """Yield rows in their order, as they are."""
        query = SELECT + "WHERE seq > %s ORDER BY seq LIMIT %s"
        return in_chunks(lambda *range_: self._ask(query, *range_), after, limit)

    def _ask(self, query: str, *values: int | bytes | list[bytes]) -> list[Any]:
        for is_last_try in (False, True):
            try:
                with self._readers.lent() as connection:
                    return connection.execute(query, values, binary=True).fetchall()
            except psycopg.OperationalError as error:
                self._readers.clear()
                if is_last_try:
                    raise self._unavailable("read", error) from error
            except psycopg.Error as error:
                raise self._unavailable("read", error) from error
        raise AssertionError("the last try returns or raises")

    def _known(self, rows: Sequence[Row]) -> list[bytes]:
        """Return those of the requests that are stored."""
        query = "SELECT request FROM rbmle_log WHERE request = ANY(%s)"
        return [request for (request,) in self._ask(query, requests_of(rows))]

    def _unavailable(
        self, action: str, error: Exception, rows: tuple[Row, ...] = ()
    ) -> LogUnavailable:
        return LogUnavailable(
            f"cannot {action} the log in {self._place}: {masked(str(error).strip())}; see that the server "
            f"runs, and try again",
            may_be_stored=self._unsettled is not None and self._unsettled.rows == rows,
        )


def _fence(found: Sequence[Sequence[Any]]) -> Fence:
    return Fence(*found[0]) if found else Fence()
