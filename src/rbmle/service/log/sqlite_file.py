"""The file of a SQLite log: made for its owner only, marked as ours, and written by one process."""

import os
from pathlib import Path

import apsw

from rbmle.service.log.errors import LogRefused

MARK = 0x52424D4C  # SQLite's application_id: "RBML"
VERSION = 1  # SQLite's user_version
BUSY_MILLISECONDS = 5000  # while another connection opens or closes
SCHEMA = """
CREATE TABLE log (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    request TEXT,
    time INTEGER NOT NULL,
    payload BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX log_event ON log (event);
CREATE UNIQUE INDEX log_request ON log (request) WHERE request IS NOT NULL;
"""


def make_private(path: Path) -> None:
    """Make a file and its folder for the owner only, if there are none, and to survive a power cut.

    An existing file is not even opened: to close it would drop the locks of this process on it.
    """
    _make_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    _sync_folder(path.parent)


def lock(path: Path) -> apsw.Connection:
    """Return what keeps every other writer away until it is closed or its process ends.

    The lock is SQLite's own, on an empty file beside the log, whose readers it leaves alone.
    """
    beside = path.with_name(f"{path.name}-lock")
    make_private(beside)
    connection = apsw.Connection(str(beside))
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        connection.close()
        raise LogRefused(
            f"the log {path} has a writer already; stop it first, or choose another folder"
        ) from None
    return connection


def connect_writer(path: Path, vfs: str | None, synchronous: str, pages: int) -> apsw.Connection:
    """Return a connection that writes a log, which is made if the file is empty."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        is_new = check_format(connection, path)
        connection.pragma("synchronous", synchronous)
        connection.pragma("fullfsync", True)  # on macOS, fsync alone leaves data in the drive
        connection.pragma("checkpoint_fullfsync", True)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise LogRefused(f"the file system of {path} has no shared memory, which WAL needs")
        connection.wal_autocheckpoint(pages)
        if is_new:
            with connection:
                connection.execute(SCHEMA)
                connection.pragma("application_id", MARK)
                connection.pragma("user_version", VERSION)
        settle(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def settle(connection: apsw.Connection) -> None:
    """Put on disk what can be read: a killed process may have written rows and not yet synced them.

    Without this, a service that starts again would answer by rows that a power cut still takes.
    """
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def connect_reader(path: Path, vfs: str | None) -> apsw.Connection:
    """Return a connection that cannot write."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def check_format(connection: apsw.Connection, path: Path) -> bool:
    """Return whether the file is empty; raise LogRefused if it is neither that nor a log we know."""
    try:
        mark, version = connection.pragma("application_id"), connection.pragma("user_version")
        is_empty = not list(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))
    except apsw.NotADBError:
        raise LogRefused(f"{path} is no SQLite file, so no log; choose another path") from None
    if is_empty and mark == version == 0:
        return True
    if mark != MARK:
        raise LogRefused(f"{path} is a SQLite file of another program; choose another path")
    if version != VERSION:
        raise LogRefused(
            f"the log {path} has format {version}, but this version of rbmle knows {VERSION}; "
            f"install the version of rbmle that wrote it, or a later one"
        )
    return False


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
