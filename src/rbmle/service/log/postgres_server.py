"""Connections to the PostgreSQL server of a log, its tables, and the lock of its writer."""

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rbmle.service.log.errors import LogRefused

VERSION = 1
LOCK = 0x52424D4C  # "RBML": the first half of the lock's number; the second is the schema's
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

Connection = psycopg.Connection[tuple[object, ...]]


def place(url: str) -> str:
    """Return where a log is, without the password."""
    parts = conninfo_to_dict(url)
    return f"{parts.get('dbname') or 'postgres'} at {parts.get('host') or 'localhost'}"


def connect(url: str) -> Connection:
    """Return a connection, in which each statement is a transaction."""
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    connection = psycopg.connect(make_conninfo(**(PATIENCE | given)), autocommit=True)
    try:
        connection.execute(SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(url: str) -> Connection:
    """Return a connection that cannot write."""
    connection = connect(url)
    connection.execute("SET default_transaction_read_only = on")
    return connection


def connect_writer(url: str, lock_seconds: float) -> Connection:
    """Return the one connection that may write; make the tables if there are none.

    The lock is the session's, and a session ends after its last transaction. So whoever has the
    lock knows that nothing is still being stored by the session that had it before.
    """
    connection = connect(url)
    try:
        connection.execute(f"SET lock_timeout = {int(1000 * lock_seconds)}")
        connection.execute(f"SELECT pg_advisory_lock({LOCK}, hashtext(current_schema()))")
        connection.execute("SET lock_timeout = 0")
        if is_empty(connection, url):
            with connection.transaction():
                connection.execute(TABLES)
    except errors.LockNotAvailable:
        connection.close()
        raise LogRefused(
            f"the log in {place(url)} has a writer already; stop it first, or choose another "
            f"database or schema"
        ) from None
    except BaseException:
        connection.close()
        raise
    return connection


def is_empty(connection: Connection, url: str) -> bool:
    """Return whether there are no tables; raise LogRefused if they are not those we know."""
    found = connection.execute(
        "SELECT current_schema() IS NOT NULL, to_regclass('rbmle_log') IS NOT NULL,"
        " to_regclass('rbmle_log_format') IS NOT NULL"
    ).fetchone()
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
