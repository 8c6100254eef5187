"""A log by its address."""

from urllib.parse import unquote, urlsplit

from rbmle.service.log.base import Log

LOG_FILE = "log.db"  # in the folder of a service


def open_log(url: str, *, is_read_only: bool = False) -> Log:
    """Return the log at "sqlite:///path", a plain path, "postgresql://…", or "memory:".

    As in URLs of databases elsewhere, sqlite:///log.db is a relative path and sqlite:////data/log.db
    an absolute one. `is_read_only` opens it beside a running writer. Libraries of databases are
    imported when they are asked for.

    >>> open_log("memory:").last()
    0
    """
    scheme, colon, _ = url.partition(":")
    match scheme if colon else "":
        case "memory":
            from rbmle.service.log.memory import MemoryLog

            return MemoryLog()
        case "postgresql" | "postgres":
            from rbmle.service.log.postgres import PostgresLog

            return PostgresLog(url, is_read_only=is_read_only)
        case "sqlite":
            parts = urlsplit(url)
            if parts.netloc or not parts.path.strip("/"):
                raise ValueError(f"{url!r} names no file; give sqlite:///path/to/log.db")
            return _sqlite(unquote(parts.path[1:]), is_read_only)
        case _:
            if "://" in url:
                raise ValueError(
                    f"no log is kept at {scheme}://; give a path, sqlite:/// or postgresql://"
                )
            return _sqlite(url, is_read_only)


def _sqlite(path: str, is_read_only: bool) -> Log:
    from rbmle.service.log.sqlite import SQLiteLog

    return SQLiteLog(path, is_read_only=is_read_only)
