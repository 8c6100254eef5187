"""A log in a SQLite file, through apsw: write-ahead log, synced at each commit."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from rbmle.service.log.backend import (
    DatabaseLog,
    EncodedRow,
    Execute,
    Fence,
    FencedLease,
    Pool,
    check_token,
    duplicate_error,
    encode_rows,
    requests_of,
)
from rbmle.service.log.base import Lease, LogDamaged, LogRefused, LogUnavailable, Row, Stored

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
FENCE = "CREATE TABLE IF NOT EXISTS fence (token INTEGER NOT NULL, has_lock INTEGER NOT NULL)"
CREATE_BASE = """
CREATE TABLE IF NOT EXISTS base (seq INTEGER NOT NULL, erasures INTEGER NOT NULL, needed BLOB, content BLOB)
"""
HAS_BASE = "SELECT 1 FROM sqlite_schema WHERE name = 'base'"
HAS_FENCE = "SELECT 1 FROM sqlite_schema WHERE name = 'fence'"
# In one statement: another process may be making the tables.
FORMAT = """
SELECT application_id, user_version, NOT EXISTS (SELECT 1 FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
"""

# Bytes go in and out, so that a damaged text can be read; in the file they are text, for people.
ROW = "(?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?)"
SELECT = (
    "SELECT seq, CAST(kind AS BLOB), CAST(event AS BLOB), CAST(request AS BLOB),"
    " time, payload, checksum FROM log "
)
INCREMENTAL = 2  # of auto_vacuum
RECLAIMED_PAGES = 128  # in one transaction: half a megabyte
TRUNCATE_SECONDS = 10.0  # for others to let the write-ahead log be emptied
MOST_ROWS = 64  # in one statement: each statement blocks other threads once
# Our statements never change, so SQLite rejects one only if the tables are damaged.
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)


Result = TypeVar("Result")


def make_private(path: Path) -> None:
    """Create a file and its folder for the owner only, synced to disk, unless they exist.

    An existing file is not even opened: to close it would drop the locks of this process on it.
    """
    _make_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    _sync_folder(path.parent)


class FileLock:
    """SQLite's own lock, on an empty file beside the log."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-lease")
        self._connection: apsw.Connection | None = None

    def take(self) -> bool:
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
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def connect_writer(path: Path, vfs: str | None, synchronous: str, pages: int) -> apsw.Connection:
    """Return a connection that writes a log, which is made if the file is empty."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        if check_format(connection, path):  # before anything is written
            connection.pragma("auto_vacuum", INCREMENTAL)
        connection.pragma("secure_delete", True)  # what is deleted is overwritten
        connection.pragma("synchronous", synchronous)
        connection.pragma("fullfsync", True)  # on macOS, fsync alone leaves data in the drive
        connection.pragma("checkpoint_fullfsync", True)
        if _patiently(lambda: connection.pragma("journal_mode", "wal")) != "wal":
            raise LogRefused(f"the file system of {path} has no shared memory, which WAL needs")
        connection.wal_autocheckpoint(pages)
        make_tables(connection, path)
        sync_readable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(action: Callable[[], Result]) -> Result:
    """Repeat an action while another process blocks it, for SQLite does not wait there by itself."""
    end = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            return action()
        except apsw.BusyError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def make_tables(connection: apsw.Connection, path: Path) -> None:
    """Create the tables of a log in an empty file, unless another process is faster."""
    if not check_format(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if check_format(connection, path):
            connection.execute(SCHEMA)
            connection.pragma("application_id", MARK)
            connection.pragma("user_version", VERSION)
    connection.execute("COMMIT")


def sync_readable(connection: apsw.Connection) -> None:
    """Sync all that can be read: a killed process may have written rows without syncing them.

    Without this, a restarted service could answer from rows that a power cut still takes.
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
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SQLiteLog(DatabaseLog):
    """A log in one file (and its `-wal`, `-shm` and `-lease`), for the processes of one machine.

    `vfs` names the file system for apsw. `synchronous="NORMAL"` may lose acknowledged rows in a power cut; it
    is the control of the test.
    """

    BY_EVENT = SELECT + "WHERE event = CAST(? AS TEXT) ORDER BY seq"
    BY_REQUEST = SELECT + "WHERE request = CAST(? AS TEXT)"
    NEXT = SELECT + "WHERE seq > ? ORDER BY seq LIMIT ?"
    TABLE, BASE_TABLE, CREATE_BASE, HAS_BASE = "log", "base", CREATE_BASE, HAS_BASE
    TEXT = "CAST(? AS TEXT)"

    def __init__(
        self,
        path: Path | str,
        *,
        is_read_only: bool = False,
        vfs: str | None = None,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        checkpoint_pages: int = 1000,
    ) -> None:
        self._path = Path(path).absolute()
        self._settings: tuple[str | None, Literal["FULL", "NORMAL"], int] = (
            vfs,
            synchronous,
            checkpoint_pages,
        )
        self._readers = Pool(lambda: connect_reader(self._path, vfs))
        self._is_writable = not is_read_only
        self._writer: apsw.Connection | None = None
        with self._failures("open"):
            if is_read_only:
                with self._readers.lent() as connection:
                    if check_format(connection, self._path):
                        raise LogRefused(f"{self._path} is empty; a writer has to make the log")
                return
            make_private(self._path)
            self._writer = connect_writer(self._path, *self._settings)

    def _append(self, rows: Sequence[Row], token: int | None) -> int:
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        is_committing = False
        connection = self._writing()
        try:
            connection.execute("BEGIN IMMEDIATE")
            if token is not None:
                check_token(token, _fence(connection.execute))
            first = _last(connection) + 1
            encoded = encode_rows(first, rows)
            for start in range(0, len(encoded), MOST_ROWS):
                some = encoded[start : start + MOST_ROWS]
                connection.execute(_insert(len(some)), list(chain.from_iterable(some)))
            is_committing = True
            connection.execute("COMMIT")
        except apsw.ConstraintError:
            self._roll_back(connection)
            raise duplicate_error(rows, self._stored_requests(rows)) from None
        except DAMAGE as error:
            self._roll_back(connection)
            raise self._damage_error(error) from error
        except (apsw.Error, OSError) as error:
            self._roll_back(connection)
            raise LogUnavailable(
                f"{len(rows)} rows could not be stored in {self._path}: {_text(error)}; "
                f"make room or mend the disk, and try again",
                may_be_stored=is_committing,  # the file may have them if the process ends now
            ) from error
        except BaseException:
            self._roll_back(connection)
            raise
        return first

    def last(self) -> int:
        with self._failures("read"), self._readers.lent() as connection:
            return _last(connection)

    def size(self) -> int:
        self.last()  # a closed log has none
        beside = self._path.with_name(f"{self._path.name}-wal")
        return sum(path.stat().st_size for path in (self._path, beside) if path.exists())

    def verify(self) -> list[str]:
        """Return every problem: of SQLite's structures and indexes, gaps, damaged rows."""
        problems: list[str] = []
        try:
            with self._failures("read"), self._readers.lent() as connection:
                lines = [str(line) for (line,) in connection.execute("PRAGMA integrity_check")]
            problems += [line for line in lines if line != "ok"]
            problems += super().verify()
        except LogDamaged as damage:
            problems.append(str(damage))
        return problems

    def fill(self, batch: Sequence[Stored]) -> None:
        """Store rows with their numbers, in a log that is being restored."""
        with self._changing() as execute:
            for stored in batch:
                execute(_insert(1), *encode_rows(stored.seq, [stored.row])[0])

    def reclaim(self) -> bool:
        """Move the last pages of the file to the place of free ones, and cut it off there."""
        connection = self._writing()
        with self._failures("shorten"):
            list(connection.execute(f"PRAGMA incremental_vacuum({RECLAIMED_PAGES})"))
            is_incremental = connection.pragma("auto_vacuum") == INCREMENTAL
            return is_incremental and connection.pragma("freelist_count") > 0

    def compact(self) -> None:
        """Write the file anew, which blocks others that write meanwhile, and empty the write-ahead log."""
        connection = self._writing()
        with self._failures("shorten"):
            connection.pragma("auto_vacuum", INCREMENTAL)
            connection.execute("VACUUM")
        self._forget_old_rows()

    def _forget_old_rows(self) -> None:
        """Empty the write-ahead log; in the file itself, old rows are overwritten."""
        connection, end = self._writing(), time.monotonic() + TRUNCATE_SECONDS
        with self._failures("shorten"):
            while True:
                try:
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                    return
                except apsw.BusyError:
                    if time.monotonic() > end:
                        raise

    def lease(self) -> Lease:
        vfs, synchronous, pages = self._settings
        return FencedLease(
            FileLock(self._path),
            lambda: SQLiteLog(self._path, vfs=vfs, synchronous=synchronous, checkpoint_pages=pages),
        )

    def fence(self) -> Fence:
        with self._reading() as execute:
            return _fence(execute)

    def move_fence(self, before: int, after: Fence) -> bool:
        with self._changing() as execute:
            is_same = _fence(execute).token == before
            if is_same:
                execute(f"{FENCE}; DELETE FROM fence")
                execute("INSERT INTO fence VALUES (?, ?)", *after)
        return is_same

    def close(self) -> None:
        self._is_writable = False
        self._readers.close()
        if self._writer is not None:
            with suppress(apsw.Error):  # of the last checkpoint; rows stay in the -wal file
                self._writer.close()
        self._writer = None

    def _query(self, query: str, *values: int | bytes) -> list[EncodedRow]:
        with self._failures("read"), self._readers.lent() as connection:
            return list(connection.execute(query, values))

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        with self._failures("read"), self._readers.lent() as connection:
            yield lambda statement, *values: list(connection.execute(statement, values))

    @contextmanager
    def _changing(self, *, is_appending: bool = True) -> Iterator[Execute]:
        connection = self._writing()
        with self._failures("write"):
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield lambda statement, *values: list(connection.execute(statement, values))
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise

    def _stored_requests(self, rows: Sequence[Row]) -> list[bytes]:
        query = "SELECT 1 FROM log WHERE request = CAST(? AS TEXT)"
        with self._failures("read"), self._readers.lent() as connection:
            return [r for r in requests_of(rows) if list(connection.execute(query, (r,)))]

    def _writing(self) -> apsw.Connection:
        if not self._is_writable:
            raise LogUnavailable(f"the log {self._path} is closed, or open for reading only")
        if self._writer is None:
            with self._failures("open"):
                self._writer = connect_writer(self._path, *self._settings)
        return self._writer

    def _roll_back(self, connection: apsw.Connection) -> None:
        """Undo what an append began, unless SQLite has done so itself."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            connection.close(True)
            self._writer = None

    @contextmanager
    def _failures(self, action: str) -> Iterator[None]:
        try:
            yield
        except DAMAGE as error:
            raise self._damage_error(error) from error
        except (apsw.Error, OSError) as error:
            raise LogUnavailable(f"cannot {action} the log {self._path}: {_text(error)}") from error

    def _damage_error(self, error: Exception) -> LogDamaged:
        return LogDamaged(
            f"the log {self._path} is damaged: {_text(error)}; restore it from a copy"
        )


@cache
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ", ".join([ROW] * rows)


def _last(connection: apsw.Connection) -> int:
    ((last,),) = connection.execute("SELECT coalesce(max(seq), 0) FROM log")
    return int(last)


def _fence(execute: Callable[[str], Iterable[tuple[Any, ...]]]) -> Fence:
    if not list(execute(HAS_FENCE)):
        return Fence()
    rows = [Fence(token, bool(lock)) for token, lock in execute("SELECT * FROM fence")]
    return rows[0] if rows else Fence()


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
