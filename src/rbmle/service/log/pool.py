"""Connections that are lent to one borrower at a time, so that any thread can read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Generic, Protocol, TypeVar

from rbmle.service.log.errors import LogUnavailable


class Closable(Protocol):
    """A connection, as far as a pool knows it."""

    def close(self) -> None:
        """Let go of it."""
        ...


Pooled = TypeVar("Pooled", bound=Closable)


class Pool(Generic[Pooled]):
    """As many connections as there were borrowers at the same time."""

    def __init__(self, connect: Callable[[], Pooled]) -> None:
        self._connect = connect
        self._idle: list[Pooled] = []
        self._is_closed = False
        self._lock = Lock()

    @contextmanager
    def lent(self) -> Iterator[Pooled]:
        """Lend a connection; one that its borrower failed with is not lent again."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def clear(self) -> None:
        """Close the connections that nobody borrows."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Lend nothing any more; what is lent is closed when it comes back."""
        self._is_closed = True
        self.clear()

    def _take(self) -> Pooled:
        with self._lock:
            if self._is_closed:
                raise LogUnavailable("the log is closed; open it again to read it")
            if self._idle:
                return self._idle.pop()
        return self._connect()
