"""A log, and what is published beside it, by the address of the log."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from rbmle.service.log.base import Log
from rbmle.service.log.publications import FilePublications, Publications

LOG_FILE = "log.db"  # in the folder of a service


def open_log(url: str, *, is_read_only: bool = False) -> Log:
    """Return the log at "sqlite:///path", a plain path, "postgresql://…", or "memory:".

    As in URLs of databases elsewhere, sqlite:///log.db is a relative path and sqlite:////data/log.db
    an absolute one. Libraries of databases are imported when they are asked for.

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
    """Return what is published beside the log at an address."""
    if _kind(url) == "postgresql":
        from rbmle.service.log.postgres_publications import PostgresPublications

        return PostgresPublications(url)
    return FilePublications(_path(url).absolute().parent)


def is_postgres(url: str) -> bool:
    """Return whether an address is that of a PostgreSQL database.

    >>> is_postgres("postgresql://me@host/data"), is_postgres("log.db")
    (True, False)
    """
    return _kind(url) == "postgresql"


def _kind(url: str) -> str:
    """Return memory, postgresql or sqlite."""
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
    """Return the file of an address."""
    if not url.startswith("sqlite:"):
        return Path(url)
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"{url!r} names no file; give sqlite:///path/to/log.db")
    return Path(unquote(parts.path[1:]))
