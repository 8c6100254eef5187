"""Connections to the PostgreSQL server of a log, its tables, and its locks."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rbmle.service.log.base import Row
from rbmle.service.log.errors import LogRefused, LogUnavailable, masked
from rbmle.service.log.row_codec import encoded_rows

VERSION = 1
# "RBML", "RBMM": the first halves of the numbers of two locks; the second half is the schema's.
APPENDING, LEARNING = 0x52424D4C, 0x52424D4D
# What a URL may say otherwise. A server out of reach is noticed within seconds.
PATIENCE = {
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "application_name": "rbmle",
}
# Commits wait for the disk. Names mean one schema, the lock's. And the server, too, notices soon
# that we are gone, so that the lock is free when we come back.
SESSION = """
SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
SELECT set_config('search_path', quote_ident(current_schema()), false)
    WHERE current_schema() IS NOT NULL;
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
"""
# A machine that vanished with the lease has lost it after three seconds.
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
# By a query: what to_regclass knows is of the start of a transaction, before it waited for a lock.
PRESENT = """
SELECT current_schema() IS NOT NULL, 'rbmle_log' = ANY(names), 'rbmle_log_format' = ANY(names)
FROM (SELECT array_agg(relname) || ARRAY['']::name[] AS names FROM pg_class
      JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = ANY(current_schemas(false)) AND starts_with(relname::text, 'rbmle_log')) AS found
"""
LOCK = f"SELECT pg_advisory_xact_lock({APPENDING}, hashtext(current_schema()))"
LAST = "SELECT coalesce(max(seq), 0) FROM rbmle_log"
FENCE = "CREATE TABLE IF NOT EXISTS rbmle_fence (token bigint NOT NULL, has_lock boolean NOT NULL)"
HAS_FENCE = "SELECT to_regclass('rbmle_fence') IS NOT NULL"

COPY = "COPY rbmle_log FROM STDIN (FORMAT BINARY)"
COPIED = ("int8", "bytea", "bytea", "bytea", "int8", "bytea", "int8")
EMPTY_PUBLISHED = """
DO $$ BEGIN
    IF to_regclass('rbmle_published') IS NOT NULL THEN DELETE FROM rbmle_published; END IF;
END $$
"""

ServerSession = psycopg.Connection[tuple[object, ...]]


def place(url: str) -> str:
    """Return where a log is, without the password; raise LogRefused if the URL cannot be read."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise LogRefused(
            f"{masked(url)} is not the address of a PostgreSQL database: {masked(str(error).strip())}; "
            "give postgresql://user@host/database"
        ) from None
    return f"{parts.get('dbname') or 'postgres'} at {parts.get('host') or 'localhost'}"


def connect(url: str) -> ServerSession:
    """Return a connection, in which each statement is a transaction."""
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    connection = psycopg.connect(make_conninfo(**(PATIENCE | given)), autocommit=True)
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
        # Nobody else can append meanwhile, so a process that is stopped in a transaction loses it soon.
        patience = int(1000 * lock_seconds)
        connection.execute(f"SET lock_timeout = {patience}")
        connection.execute(f"SET idle_in_transaction_session_timeout = {patience}")
        if is_empty(connection, url):
            with connection.transaction():
                connection.execute(LOCK)
                if is_empty(connection, url):  # nobody was faster
                    connection.execute(TABLES)
    except BaseException:
        connection.close()
        raise
    return connection


def begin_appending(connection: ServerSession) -> int:
    """Begin a transaction in which no other one appends; return the seq of the last row.

    A seq is given under the lock, and the lock is let go when the rows are visible. So nobody sees a
    row before one with a smaller seq, and what a lost session was storing is there, or never will be.
    """
    found = connection.execute(f"BEGIN; {LOCK}; {LAST}")
    while found.nextset():
        pass
    ((last,),) = found.fetchall()
    return int(str(last))


class ServerLock:
    """An advisory lock of a session: it ends with the session, wherever that breaks."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: ServerSession | None = None
        self._is_taken = False

    def take(self) -> bool:
        """Return whether this process has it now; False too if the server is out of reach.

        The session stays, so that to ask again costs one trip.
        """
        if self._is_taken:
            return self.is_held()
        try:
            if self._connection is None:
                self._connection = connect(self._url)
                self._connection.execute(SOON_GONE)
            found = self._connection.execute(f"SELECT pg_try_advisory_lock({_LEARNING})").fetchone()
        except psycopg.Error:
            self.release()
            return False
        self._is_taken = found == (True,)
        return self._is_taken

    def is_held(self) -> bool:
        """Return whether this process has it, and the session of it still lives."""
        if not self._is_taken or self._connection is None:
            return False
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self.release()
            return False
        return True

    def release(self) -> None:
        """End the session; what it has is free at once, and not when the server notices that."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                if self._is_taken:
                    self._connection.execute(f"SELECT pg_advisory_unlock({_LEARNING})")
            self._connection.close()
        self._connection, self._is_taken = None, False


def is_empty(connection: ServerSession, url: str) -> bool:
    """Return whether there are no tables; raise LogRefused if they are not those we know."""
    found = connection.execute(PRESENT).fetchone()
    match found:
        case (False, _, _):
            raise LogRefused(f"the search_path of {place(url)} names no schema; create it first")
        case (_, False, False):
            return True
        case (_, True, True):
            (version,) = connection.execute("SELECT version FROM rbmle_log_format").fetchone() or ()
            if version == VERSION:
                return False
            raise LogRefused(
                f"the log in {place(url)} has format {version}, but this version of rbmle knows "
                f"{VERSION}; install the version of rbmle that wrote it, or a later one"
            )
        case _:
            raise LogRefused(f"{place(url)} has tables named rbmle_log… of another program")


def replace_rows(url: str, batches: Iterable[Sequence[Row]], *, overwrites: bool) -> None:
    """Fill the log with these rows in one transaction, all or none.

    Raise LogRefused if it has rows, unless they are to be overwritten.
    """
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
                            f"there is a log in {place(url)} already; give an empty database or schema, or "
                            "--overwrite, which deletes it"
                        )
                    cursor.execute("DELETE FROM rbmle_log")
                cursor.execute(EMPTY_PUBLISHED)
                first = 1
                with cursor.copy(COPY) as copy:
                    copy.set_types(COPIED)
                    for rows in batches:
                        for encoded in encoded_rows(first, rows):
                            copy.write_row(encoded)
                        first += len(rows)
        finally:
            connection.close()
    except psycopg.Error as error:
        raise LogUnavailable(
            f"the log in {place(url)} could not be filled, and is as it was: {masked(str(error).strip())}"
        ) from error
