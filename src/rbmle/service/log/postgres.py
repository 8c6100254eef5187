"""A log in PostgreSQL, and publications beside it, through psycopg."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rbmle.service.log.backend import (
    COLUMNS,
    DatabaseLog,
    Execute,
    Fence,
    FencedLease,
    Pool,
    check_token,
    duplicate_error,
    encode_rows,
    requests_of,
)
from rbmle.service.log.base import (
    Lease,
    LeaseLost,
    LogRefused,
    LogUnavailable,
    Row,
    Stored,
    mask_passwords,
)
from rbmle.service.log.publications import PublicationVersion

VERSION = 1
# "RBML", "RBMM": the first halves of the numbers of two locks; the second half is the schema's.
APPENDING, LEARNING = 0x52424D4C, 0x52424D4D
# Defaults that a URL may override. They notice within seconds that a server is out of reach.
PATIENCE = {
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "application_name": "rbmle",
}
# Commits wait for the disk. Names refer to one schema, that of the lock. The server notices soon that a client
# is gone, so that the lock is free when the client comes back.
SESSION = """
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
SELECT set_config('search_path', quote_ident(current_schema()), false)
    WHERE current_schema() IS NOT NULL;
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
"""
# A machine that vanishes while it has the lease loses it after three seconds.
SOON_GONE = """
SET tcp_keepalives_idle = 1;
SET tcp_keepalives_interval = 1;
SET tcp_keepalives_count = 2;
"""
TABLES = f"""
CREATE TABLE rbmle_log (
    seq bigint PRIMARY KEY,
    kind bytea NOT NULL,
    event bytea NOT NULL,
    request bytea,
    time bigint NOT NULL,
    payload bytea NOT NULL,
    checksum bigint NOT NULL
);
CREATE INDEX rbmle_log_event ON rbmle_log (event);
CREATE UNIQUE INDEX rbmle_log_request ON rbmle_log (request) WHERE request IS NOT NULL;
CREATE TABLE rbmle_log_format (version integer NOT NULL);
INSERT INTO rbmle_log_format VALUES ({VERSION});
"""
_LEARNING = f"{LEARNING}, hashtext(current_schema())"
# A query, since to_regclass sees the state at the start of a transaction, before it waited for the lock.
PRESENT = """
SELECT current_schema() IS NOT NULL, 'rbmle_log' = ANY(names), 'rbmle_log_format' = ANY(names)
FROM (SELECT array_agg(relname) || ARRAY['']::name[] AS names FROM pg_class
      JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = ANY(current_schemas(false)) AND starts_with(relname::text, 'rbmle_log')) AS found
"""
LOCK = f"SELECT pg_advisory_xact_lock({APPENDING}, hashtext(current_schema()))"
LAST = "SELECT coalesce(max(seq), 0) FROM rbmle_log"
CREATE_FENCE = (
    "CREATE TABLE IF NOT EXISTS rbmle_fence (token bigint NOT NULL, has_lock boolean NOT NULL)"
)
CREATE_BASE = """
CREATE TABLE IF NOT EXISTS rbmle_base (
    seq bigint NOT NULL,
    erasures bigint NOT NULL,
    needed bytea,
    content bytea
)
"""
HAS_BASE = "SELECT to_regclass('rbmle_base') IS NOT NULL"
HAS_FENCE = "SELECT to_regclass('rbmle_fence') IS NOT NULL"
COPY = "COPY rbmle_log FROM STDIN (FORMAT BINARY)"
COPIED = ("int8", "bytea", "bytea", "bytea", "int8", "bytea", "int8")
EMPTY_BASE = """
DO $$ BEGIN
    IF to_regclass('rbmle_base') IS NOT NULL THEN DELETE FROM rbmle_base; END IF;
END $$
"""
EMPTY_PUBLISHED = """
DO $$ BEGIN
    IF to_regclass('rbmle_published') IS NOT NULL THEN DELETE FROM rbmle_published; END IF;
END $$
"""

INSERT = (
    "INSERT INTO rbmle_log SELECT * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[],"
    " %b::bytea[], %b::bigint[], %b::bytea[], %b::bigint[])"
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM rbmle_log "
FENCE = "SELECT token, has_lock FROM rbmle_fence"

TABLE = """
CREATE TABLE IF NOT EXISTS rbmle_published (
    name text PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
)
"""
TOKEN = "ALTER TABLE rbmle_published ADD COLUMN IF NOT EXISTS token bigint NOT NULL DEFAULT 0"
PUT = (
    "INSERT INTO rbmle_published (name, version, content, token) VALUES (%s, 1, %b, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = rbmle_published.version + 1,"
    " content = excluded.content, token = excluded.token"
    " WHERE rbmle_published.token <= excluded.token"
)
NEWEST = "SELECT token FROM rbmle_published WHERE name = %s"
NEWER = "SELECT version, content FROM rbmle_published WHERE name = %s AND version <> %s"
HAS_TABLE = "SELECT to_regclass('rbmle_published') IS NOT NULL"


ServerSession = psycopg.Connection[tuple[object, ...]]


def locate(url: str) -> str:
    """Return where a log is, without the password; raise LogRefused if the URL cannot be read."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise LogRefused(
            f"{mask_passwords(url)} is not the address of a PostgreSQL database: {_text(error)}; "
            "give postgresql://user@host/database"
        ) from None
    return f"{parts.get('dbname') or 'postgres'} at {parts.get('host') or 'localhost'}"


def connect(url: str) -> ServerSession:
    """Return a connection in autocommit mode."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    connection = psycopg.connect(make_conninfo(**(PATIENCE | parts)), autocommit=True)
    try:
        connection.execute(SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(url: str) -> ServerSession:
    """Return a connection that cannot write."""
    connection = connect(url)
    connection.execute("SET default_transaction_read_only = on")
    return connection


def connect_writer(url: str, lock_seconds: float) -> ServerSession:
    """Return a connection that may write; make the tables if there are none."""
    connection = connect(url)
    try:
        # A transaction blocks all other writers, so that of a stopped process is ended soon.
        patience = int(1000 * lock_seconds)
        connection.execute(f"SET lock_timeout = {patience}")
        connection.execute(f"SET idle_in_transaction_session_timeout = {patience}")
        if is_empty(connection, url):
            with connection.transaction():
                connection.execute(LOCK)
                if is_empty(connection, url):  # no other process was faster
                    connection.execute(TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def begin_appending(connection: ServerSession) -> int:
    """Begin a transaction in which no other one appends; return the seq of the last row.

    A seq is assigned under the lock, which is released when the rows are visible. So no reader sees a row
    before one with a smaller seq, and rows of a lost session are visible by then, or never will be.
    """
    cursor = connection.execute(f"BEGIN; {LOCK}; {LAST}")
    while cursor.nextset():
        pass
    ((last,),) = cursor.fetchall()
    return int(str(last))


class ServerLock:
    """An advisory lock of a session: it ends with the session, wherever that breaks."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: ServerSession | None = None
        self._is_taken = False

    def take(self) -> bool:
        """Return whether this process has it now; False too if the server is out of reach.

        The session stays open, so that asking again costs one round trip.
        """
        if self._is_taken:
            return self.is_held()
        try:
            if self._connection is None:
                self._connection = connect(self._url)
                self._connection.execute(SOON_GONE)
            row = self._connection.execute(f"SELECT pg_try_advisory_lock({_LEARNING})").fetchone()
        except psycopg.Error:
            self.release()
            return False
        self._is_taken = row == (True,)
        return self._is_taken

    def is_held(self) -> bool:
        if not self._is_taken or self._connection is None:
            return False
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self.release()
            return False
        return True

    def release(self) -> None:
        """End the session and free its lock at once, instead of when the server notices."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                if self._is_taken:
                    self._connection.execute(f"SELECT pg_advisory_unlock({_LEARNING})")
            self._connection.close()
        self._connection, self._is_taken = None, False


def is_empty(connection: ServerSession, url: str) -> bool:
    """Return whether there are no tables; raise LogRefused if they are not those we know."""
    match connection.execute(PRESENT).fetchone():
        case (False, _, _):
            raise LogRefused(f"the search_path of {locate(url)} names no schema; create it first")
        case (_, False, False):
            return True
        case (_, True, True):
            (version,) = connection.execute("SELECT version FROM rbmle_log_format").fetchone() or ()
            if version == VERSION:
                return False
            raise LogRefused(
                f"the log in {locate(url)} has format {version}, but this version of rbmle knows "
                f"{VERSION}; install the version of rbmle that wrote it, or a later one"
            )
        case _:
            raise LogRefused(f"{locate(url)} has tables named rbmle_log… of another program")


def replace_rows(url: str, batches: Iterable[Sequence[Stored]], *, overwrites: bool) -> None:
    """Fill the log with these rows in one transaction; raise LogRefused if it has rows, unless `overwrites`."""
    try:
        connection = connect_writer(url, lock_seconds=5.0)
        try:
            with connection.transaction(), connection.cursor() as cursor:
                begin = cursor.execute(f"{LOCK}; {LAST}")
                while begin.nextset():
                    pass
                if begin.fetchall() != [(0,)]:
                    if not overwrites:
                        raise LogRefused(
                            f"there is a log in {locate(url)} already; give an empty database or schema, or "
                            "--overwrite, which deletes it"
                        )
                    cursor.execute("DELETE FROM rbmle_log")
                cursor.execute(EMPTY_PUBLISHED)
                cursor.execute(EMPTY_BASE)
                with cursor.copy(COPY) as copy:
                    copy.set_types(COPIED)
                    for stored in chain.from_iterable(batches):
                        copy.write_row(encode_rows(stored.seq, [stored.row])[0])
        finally:
            connection.close()
    except psycopg.Error as error:
        raise LogUnavailable(
            f"the log in {locate(url)} could not be filled, and is as it was: {_text(error)}"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBatch:
    """Rows that were sent, and whose answer never came."""

    first: int
    rows: tuple[Row, ...]


class PostgresLog(DatabaseLog):
    """A log in the first schema of a URL's search path, for any number of processes.

    Lost connections are opened again. It needs sessions, so a pooler must not share them per transaction.
    `lock_seconds` is how long an append waits for others.
    """

    BY_EVENT = SELECT + "WHERE event = %s ORDER BY seq"
    BY_REQUEST = SELECT + "WHERE request = %s"
    NEXT = SELECT + "WHERE seq > %s ORDER BY seq LIMIT %s"
    TABLE, BASE_TABLE, CREATE_BASE, HAS_BASE = "rbmle_log", "rbmle_base", CREATE_BASE, HAS_BASE

    def __init__(self, url: str, *, is_read_only: bool = False, lock_seconds: float = 5.0) -> None:
        locate(url)  # else it is no URL
        self._url = url
        self._lock_seconds = lock_seconds
        self._is_read_only = is_read_only
        self._is_closed = False
        self._readers = Pool(lambda: connect_reader(url))
        self._writer: ServerSession | None = None
        self._unsettled: SentBatch | None = None
        try:
            if is_read_only:
                with self._readers.lent() as connection:
                    if is_empty(connection, url):
                        raise LogRefused(
                            f"there is no log in {self._location}; a writer has to make it"
                        )
            else:
                self._writing()
        except psycopg.Error as error:
            raise self._unavailable("open", error) from error

    def _append(self, rows: Sequence[Row], token: int | None) -> int:
        """Store rows; if the connection is lost before the answer, first look whether they are there."""
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        if self._is_closed or self._is_read_only:
            raise LogUnavailable(f"the log in {self._location} is closed, or open for reading only")
        batch = tuple(rows)
        for is_last_try in (False, True):  # the first may meet a connection lost long ago
            try:
                return self._store(batch, token)
            except psycopg.errors.UniqueViolation as error:
                if error.diag.constraint_name != "rbmle_log_request":
                    raise self._unavailable("write", error, batch) from error
                raise duplicate_error(batch, self._stored_requests(batch)) from None
            except psycopg.Error as error:
                if is_last_try or not self._is_lost():
                    raise self._unavailable("write", error, batch) from error
            except LogRefused as error:  # the session before has not ended, or somebody came first
                raise self._unavailable("write", error, batch) from error
        raise AssertionError("the last try returns or raises")

    def last(self) -> int:
        return int(self._query(LAST)[0][0])

    def size(self) -> int:
        """Return the bytes of the table and its indexes."""
        return int(self._query("SELECT pg_total_relation_size('rbmle_log')")[0][0])

    def compact(self) -> None:
        """Write the table anew, which blocks all others meanwhile."""
        try:
            self._writing().execute("SET lock_timeout = 0")
            self._writing().execute("VACUUM FULL rbmle_log")
        except psycopg.Error as error:
            raise self._unavailable("shorten", error) from error

    def reclaim(self) -> bool:
        """Let new rows take the space of deleted ones, beside others that read and write."""
        try:
            self._writing().execute("VACUUM rbmle_log")
            return False
        except psycopg.Error as error:
            raise self._unavailable("shorten", error) from error

    def _forget_old_rows(self) -> None:
        self.reclaim()

    def lease(self) -> Lease:
        return FencedLease(
            ServerLock(self._url),
            lambda: PostgresLog(self._url, lock_seconds=self._lock_seconds),
        )

    def fence(self) -> Fence:
        if self._query(HAS_FENCE) != [(True,)]:
            return Fence()
        return _fence(self._query(FENCE))

    def move_fence(self, before: int, after: Fence) -> bool:
        with self._changing() as execute:
            execute(CREATE_FENCE)
            if _fence(execute(FENCE)).token != before:
                return False
            execute("DELETE FROM rbmle_fence")
            execute("INSERT INTO rbmle_fence VALUES (?, ?)", *after)
        return True

    def close(self) -> None:
        self._is_closed = True
        self._readers.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def _location(self) -> str:
        return locate(self._url)

    def _store(self, rows: tuple[Row, ...], token: int | None) -> int:
        """Store a batch in one transaction, unless an earlier attempt has stored it."""
        connection = self._writing()
        before = self._unsettled
        if before is not None and before.rows != rows:
            before = self._unsettled = None
        is_sent = False
        try:
            last = begin_appending(connection)
            if token is not None:
                check_token(token, _fence(connection.execute(FENCE).fetchall()))
            if before is not None and before.first <= last and self._has(connection, before):
                first = before.first
                connection.execute("COMMIT")
            else:
                first = last + 1
                columns = [list(column) for column in zip(*encode_rows(first, rows), strict=True)]
                self._unsettled, is_sent = SentBatch(first=first, rows=rows), True
                with connection.pipeline():  # a statement prepared in a failed transaction is lost
                    connection.execute(INSERT, columns, prepare=False)
                    connection.execute("COMMIT", prepare=False)
        except (psycopg.Error, LeaseLost):
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
                self._unsettled = None if is_sent else before  # the server stored nothing just now
            raise
        self._unsettled = None
        return first

    def _has(self, connection: ServerSession, batch: SentBatch) -> bool:
        query = SELECT + "WHERE seq BETWEEN %s AND %s ORDER BY seq"
        last = batch.first + len(batch.rows) - 1
        rows = connection.execute(query, (batch.first, last), binary=True).fetchall()
        return [tuple(row) for row in rows] == encode_rows(batch.first, batch.rows)

    def _writing(self) -> ServerSession:
        if self._writer is None or self._is_lost():
            self._writer = connect_writer(self._url, self._lock_seconds)
        return self._writer

    def _is_lost(self) -> bool:
        return self._writer is None or self._writer.closed

    def _query(self, query: str, *values: int | bytes | list[bytes]) -> list[Any]:
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

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        yield lambda statement, *values: self._query(statement.replace("?", "%s"), *values)

    @contextmanager
    def _changing(self, *, is_appending: bool = True) -> Iterator[Execute]:
        try:
            connection = self._writing()
            with connection.transaction():
                if is_appending:
                    connection.execute(LOCK)  # no other process appends meanwhile
                yield partial(_execute, connection)
        except psycopg.Error as error:
            raise self._unavailable("write", error) from error

    def _stored_requests(self, rows: Sequence[Row]) -> list[bytes]:
        query = "SELECT request FROM rbmle_log WHERE request = ANY(%s)"
        return [request for (request,) in self._query(query, requests_of(rows))]

    def _unavailable(
        self, action: str, error: Exception, rows: tuple[Row, ...] = ()
    ) -> LogUnavailable:
        return LogUnavailable(
            f"cannot {action} the log in {self._location}: {_text(error)}; see that the server "
            f"runs, and try again",
            may_be_stored=self._unsettled is not None and self._unsettled.rows == rows,
        )


def _execute(connection: ServerSession, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Execute a statement with ? for each value; return its rows, if it has any."""
    cursor = connection.execute(statement.replace("?", "%b"), values)
    return cursor.fetchall() if cursor.description else []


def _fence(rows: Sequence[Sequence[Any]]) -> Fence:
    return Fence(*rows[0]) if rows else Fence()


def _text(error: Exception) -> str:
    return mask_passwords(str(error).strip())


class PostgresPublications:
    """Publications over one connection, which is made again when it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: ServerSession | None = None
        self._has_table = self._has_token = False
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        with self._use_connection() as connection:
            if not self._has_token:
                with connection.transaction():
                    connection.execute(LOCK)  # else two that make it at a time fail
                    connection.execute(TABLE)
                    connection.execute(TOKEN)
                self._has_token = True
            # Publications are made again after a crash, so this need not wait for the disk.
            connection.execute("SET synchronous_commit = off")
            newest = self._newest(connection, name) if token is None else token
            if not connection.execute(PUT, (name, content, newest)).rowcount:
                raise LeaseLost(newest, self._newest(connection, name))

    def newer(self, name: str, than: PublicationVersion) -> tuple[PublicationVersion, bytes] | None:
        with self._use_connection() as connection:
            if not self._has_table:
                self._has_table = connection.execute(HAS_TABLE).fetchone() == (True,)
            if not self._has_table:
                return None
            version = than if isinstance(than, int) else 0
            row = connection.execute(NEWER, (name, version), binary=True).fetchone()
        if row is None:
            return None
        newest, content = row
        assert isinstance(content, bytes)
        return newest, content

    def close(self) -> None:
        with self._lock:
            self._end()

    def _newest(self, connection: ServerSession, name: str) -> int:
        (token,) = connection.execute(NEWEST, (name,)).fetchone() or (0,)
        return int(str(token))

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _use_connection(self) -> Iterator[ServerSession]:
        try:
            with self._lock:
                if self._connection is None:
                    self._connection = connect(self._url)
                yield self._connection
        except psycopg.Error as error:
            self.close()
            raise LogUnavailable(
                f"cannot reach what is published in {locate(self._url)}: {str(error).strip()}"
            ) from error
