"""The file of a SQLite log: made for its owner only, and marked as ours; and the lease beside it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from rbmle.service.log.errors import LogRefused

MARK = 0x52424D4C  # SQLite's application_id: "RBML"
Result = TypeVar("Result")

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
FENCE = "CREATE TABLE IF NOT EXISTS fence (token INTEGER NOT NULL, has_lock INTEGER NOT NULL)"
HAS_FENCE = "SELECT 1 FROM sqlite_schema WHERE name = 'fence'"
# In one statement: another process may be making the tables.
FORMAT = """
SELECT application_id, user_version, NOT EXISTS (SELECT 1 FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
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


class FileLock:
    """SQLite's own lock, on an empty file beside the log, whose users it leaves alone."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-lease")
        self._connection: apsw.Connection | None = None

    def take(self) -> bool:
        """Return whether this process has it now."""
        if self._connection is not None:
            return True
        make_private(self._path)
        connection = apsw.Connection(str(self._path))
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            connection.close()
            return False
        self._connection = connection
        return True

    def is_held(self) -> bool:
        """Return whether this process has it: only its end could take it away."""
        return self._connection is not None

    def release(self) -> None:
        """Let another process have it."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def connect_writer(path: Path, vfs: str | None, synchronous: str, pages: int) -> apsw.Connection:
    """Return a connection that writes a log, which is made if the file is empty."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        check_format(connection, path)
        connection.pragma("synchronous", synchronous)
        connection.pragma("fullfsync", True)  # on macOS, fsync alone leaves data in the drive
        connection.pragma("checkpoint_fullfsync", True)
        if _patiently(lambda: connection.pragma("journal_mode", "wal")) != "wal":
            raise LogRefused(f"the file system of {path} has no shared memory, which WAL needs")
        connection.wal_autocheckpoint(pages)
        make_tables(connection, path)
        settle(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(action: Callable[[], Result]) -> Result:
    """Do what SQLite does not wait for while another process does the same."""
    end = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            return action()
        except apsw.BusyError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def make_tables(connection: apsw.Connection, path: Path) -> None:
    """Make the tables of a log in an empty file, unless another process is faster."""
    if not check_format(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if check_format(connection, path):
            connection.execute(SCHEMA)
            connection.pragma("application_id", MARK)
            connection.pragma("user_version", VERSION)
    connection.execute("COMMIT")


def settle(connection: apsw.Connection) -> None:
    """Put on disk what can be read: a killed process may have written rows and not yet synced them.

    Without this, a service that starts again would answer by rows that a power cut still takes.
    """
    _patiently(lambda: connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))


def connect_reader(path: Path, vfs: str | None) -> apsw.Connection:
    """Return a connection that cannot write."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def check_format(connection: apsw.Connection, path: Path) -> bool:
    """Return whether the file is empty; raise LogRefused if it is neither that nor a log we know."""
    try:
        ((mark, version, is_empty),) = connection.execute(FORMAT)
    except apsw.NotADBError:
        raise LogRefused(f"{path} is not an SQLite file; choose another path") from None
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
