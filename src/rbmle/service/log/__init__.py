"""Where the service keeps what happened: one durable, totally ordered log, in SQLite or PostgreSQL."""

import threading
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rbmle.service.log.base import (
    DuplicateRequest,
    LeaseLost,
    Log,
    LogDamaged,
    LogError,
    LogRefused,
    LogUnavailable,
    Row,
    Stored,
)
from rbmle.service.log.publications import FilePublications, Publications

__all__ = [
    "LOG_FILE",
    "DuplicateRequest",
    "LeaseLost",
    "Log",
    "LogDamaged",
    "LogError",
    "LogRefused",
    "LogUnavailable",
    "LogWatcher",
    "Row",
    "Stored",
    "is_postgres",
    "open_log",
    "open_publications",
]

LOG_FILE = "log.db"  # in the folder of a service


def open_log(url: str, *, is_read_only: bool = False) -> Log:
    """Return the log at "sqlite:///path", a plain path, "postgresql://…", or "memory:".

    As in other database URLs, sqlite:///log.db is a relative path and sqlite:////data/log.db an absolute one.
    The library of a database is imported only if it is needed.

    >>> open_log("memory:").last()
    0
    """
    match _kind(url):
        case "memory":
            from rbmle.service.log.memory import MemoryLog

            return MemoryLog()
        case "postgresql":
            from rbmle.service.log.postgres import PostgresLog

            return PostgresLog(url, is_read_only=is_read_only)
        case _:
            from rbmle.service.log.sqlite import SQLiteLog

            return SQLiteLog(_path(url), is_read_only=is_read_only)


def open_publications(url: str) -> Publications:
    """Return the publications beside the log at an address."""
    if _kind(url) == "postgresql":
        from rbmle.service.log.postgres import PostgresPublications

        return PostgresPublications(url)
    return FilePublications(_path(url).absolute().parent)


def is_postgres(url: str) -> bool:
    """Return whether a log is in PostgreSQL.

    >>> is_postgres("postgresql://me@host/data"), is_postgres("log.db")
    (True, False)
    """
    return _kind(url) == "postgresql"


class LogWatcher(threading.Thread):
    """Looks at a log from time to time, and opens it again after it was unavailable.

    What a look has started ends with the watcher, in `_end`.
    """

    def __init__(self, name: str, address: str, seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._address, self._seconds = address, seconds
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopping.is_set():
            with suppress(LogUnavailable), closing(open_log(self._address)) as log:
                while not self._stopping.wait(self._seconds):
                    self._look(log)
            self._stopping.wait(self._seconds)
        self._end()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def _look(self, log: Log) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


def _kind(url: str) -> str:
    scheme, colon, _ = url.partition(":")
    match scheme if colon else "":
        case "memory" | "sqlite":
            return scheme
        case "postgresql" | "postgres":
            return "postgresql"
        case _ if "://" in url:
            raise ValueError(
                f"no log is kept at {scheme}://; give a path, sqlite:/// or postgresql://"
            )
    return "sqlite"


def _path(url: str) -> Path:
    if not url.startswith("sqlite:"):
        return Path(url)
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"{url!r} names no file; give sqlite:///path/to/log.db")
    return Path(unquote(parts.path[1:]))
