"""A log in a SQLite file, through apsw: write-ahead log, synced at each commit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

import apsw

from rbmle.service.log import sqlite_file
from rbmle.service.log.base import Lease, Row, Stored
from rbmle.service.log.errors import LeaseLost, LogDamaged, LogRefused, LogUnavailable
from rbmle.service.log.lease import Fence, FencedLease
from rbmle.service.log.pool import Pool
from rbmle.service.log.row_codec import (
    EncodedRow,
    duplicate,
    encoded_rows,
    in_chunks,
    problems_of,
    requests_of,
    stored,
)

# Bytes go in and out, so that a damaged text can be read; in the file they are text, for people.
ROW = "(?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?)"
SELECT = (
    "SELECT seq, CAST(kind AS BLOB), CAST(event AS BLOB), CAST(request AS BLOB),"
    " time, payload, checksum FROM log "
)
MOST_ROWS = 64  # in one statement: for each, other threads wait for this one, and it for them
# Our statements are always the same, so one that SQLite does not understand meets damaged tables.
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)


class SQLiteLog:
    """A log in one file (and its `-wal`, `-shm` and `-lease`), for the processes of one machine.

    `vfs` names the file system that apsw is to use.
    `synchronous="NORMAL"` breaks the promise of a power cut; it is the control of its test.
    """

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
        self._readers = Pool(lambda: sqlite_file.connect_reader(self._path, vfs))
        self._is_writable = not is_read_only
        self._writer: apsw.Connection | None = None
        with self._failures("open"):
            if is_read_only:
                with self._readers.lent() as connection:
                    if sqlite_file.check_format(connection, self._path):
                        raise LogRefused(f"{self._path} is empty; a writer has to make the log")
                return
            sqlite_file.make_private(self._path)
            self._writer = sqlite_file.connect_writer(self._path, *self._settings)

    def append(self, rows: Sequence[Row]) -> int:
        """Store rows in one transaction, all or none; return the seq of the first."""
        return self._append(rows, lambda _: None)

    def _append(self, rows: Sequence[Row], check: Callable[[apsw.Connection], None]) -> int:
        """Store rows; `check` looks at the log in the same transaction, and may raise an error."""
        if not rows:
            raise ValueError("there is no row to append; give one or more")
        is_committing = False
        connection = self._writing()
        try:
            connection.execute("BEGIN IMMEDIATE")
            check(connection)
            first = _last(connection) + 1
            encoded = encoded_rows(first, rows)
            for start in range(0, len(encoded), MOST_ROWS):
                some = encoded[start : start + MOST_ROWS]
                connection.execute(_insert(len(some)), list(chain.from_iterable(some)))
            is_committing = True
            connection.execute("COMMIT")
        except apsw.ConstraintError:
            self._roll_back(connection)
            raise duplicate(rows, self._known(rows)) from None
        except DAMAGE as error:
            self._roll_back(connection)
            raise self._damaged(error) from error
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

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        """Yield rows with seq > after in their order, from short reads of CHUNK rows."""
        return (stored(encoded) for encoded in self._encoded(after, limit))

    def of_event(self, event: str) -> list[Stored]:
        """Return the rows of an event in their order."""
        found = self._ask(SELECT + "WHERE event = CAST(? AS TEXT) ORDER BY seq", (event.encode(),))
        return [stored(encoded) for encoded in found]

    def of_request(self, request: str) -> Stored | None:
        """Return the row with this request, or None."""
        found = self._ask(SELECT + "WHERE request = CAST(? AS TEXT)", (request.encode(),))
        return stored(found[0]) if found else None

    def last(self) -> int:
        """Return the seq of the last row."""
        with self._failures("read"), self._readers.lent() as connection:
            return _last(connection)

    def size(self) -> int:
        """Return the bytes of the file and of its write-ahead log."""
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
            problems += problems_of(self._encoded(0, None))
        except LogDamaged as damage:
            problems.append(str(damage))
        return problems

    def lease(self) -> Lease:
        """Return a lease by a lock on a file beside the log."""
        vfs, synchronous, pages = self._settings
        return FencedLease(
            sqlite_file.FileLock(self._path),
            lambda: SQLiteLog(self._path, vfs=vfs, synchronous=synchronous, checkpoint_pages=pages),
        )

    def fence(self) -> Fence:
        """Return the fence as it is now."""
        with self._failures("read"), self._readers.lent() as connection:
            return _fence(connection)

    def move_fence(self, before: int, after: Fence) -> bool:
        """Replace the fence if its token is still `before`; return whether it was."""
        connection = self._writing()
        with self._failures("write"):
            try:
                connection.execute("BEGIN IMMEDIATE")
                is_same = _fence(connection).token == before
                if is_same:
                    connection.execute(f"{sqlite_file.FENCE}; DELETE FROM fence")
                    connection.execute("INSERT INTO fence VALUES (?, ?)", after)
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
        return is_same

    def append_as(self, token: int, rows: Sequence[Row]) -> int:
        """Append as the holder with a token, or raise LeaseLost if there is a newer one."""

        def check(connection: apsw.Connection) -> None:
            if (newest := _fence(connection).token) != token:
                raise LeaseLost(token, newest)

        return self._append(rows, check)

    def close(self) -> None:
        """Let go of the file."""
        self._is_writable = False
        self._readers.close()
        if self._writer is not None:
            with suppress(apsw.Error):  # of the last checkpoint; rows stay in the -wal file
                self._writer.close()
        self._writer = None

    def _encoded(self, after: int, limit: int | None) -> Iterator[EncodedRow]:
        """Yield rows in their order, as they are."""
        query = SELECT + "WHERE seq > ? ORDER BY seq LIMIT ?"
        return in_chunks(lambda *range_: self._ask(query, range_), after, limit)

    def _ask(self, query: str, values: tuple[int | bytes, ...]) -> list[EncodedRow]:
        with self._failures("read"), self._readers.lent() as connection:
            return list(connection.execute(query, values))

    def _known(self, rows: Sequence[Row]) -> list[bytes]:
        """Return those of the requests that are stored."""
        query = "SELECT 1 FROM log WHERE request = CAST(? AS TEXT)"
        with self._failures("read"), self._readers.lent() as connection:
            return [r for r in requests_of(rows) if list(connection.execute(query, (r,)))]

    def _writing(self) -> apsw.Connection:
        """Return the connection that writes; a new one if the old one had to be given up."""
        if not self._is_writable:
            raise LogUnavailable(f"the log {self._path} is closed, or open for reading only")
        if self._writer is None:
            with self._failures("open"):
                self._writer = sqlite_file.connect_writer(self._path, *self._settings)
        return self._writer

    def _roll_back(self, connection: apsw.Connection) -> None:
        """Undo what an append began; SQLite itself does so after some errors."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            connection.close(True)
            self._writer = None

    @contextmanager
    def _failures(self, action: str) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except DAMAGE as error:
            raise self._damaged(error) from error
        except (apsw.Error, OSError) as error:
            raise LogUnavailable(f"cannot {action} the log {self._path}: {_text(error)}") from error

    def _damaged(self, error: Exception) -> LogDamaged:
        return LogDamaged(
            f"the log {self._path} is damaged: {_text(error)}; restore it from a copy"
        )


@cache
def _insert(rows: int) -> str:
    """Return the statement that stores some rows at once."""
    return "INSERT INTO log VALUES " + ", ".join([ROW] * rows)


def _last(connection: apsw.Connection) -> int:
    ((last,),) = connection.execute("SELECT coalesce(max(seq), 0) FROM log")
    return int(last)


def _fence(connection: apsw.Connection) -> Fence:
    if not list(connection.execute(sqlite_file.HAS_FENCE)):
        return Fence()
    found = [Fence(token, bool(lock)) for token, lock in connection.execute("SELECT * FROM fence")]
    return found[0] if found else Fence()


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
