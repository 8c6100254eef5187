"""The lease on learning: a lock that ends with its holder, and a fencing token for a holder that hangs.

The lock alone is enough for a process that ends, however it ends. A process that is stopped, or hangs, keeps
its lock, so another one may take over by the token: it writes the next token into the log. From then on
whatever the earlier holder appends or publishes with its own token is refused, should it ever go on.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from rbmle.service.log.base import Row
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.outage import Outage


class Fence(NamedTuple):
    """What a log knows of its holder."""

    token: int = 0  # of the newest holder; 0: there was none
    has_lock: bool = True  # False: it took over from one that hung, and that still had the lock


class Lock(Protocol):
    """What one process at most has at a time, until it lets go or ends."""

    def take(self) -> bool:
        """Return whether this process has it now; it does not wait for another one."""
        ...

    def is_held(self) -> bool:
        """Return whether this process still has it; a lost connection loses it."""
        ...

    def release(self) -> None:
        """Let another process have it."""
        ...


class FencedLog(Protocol):
    """A log that keeps a fence; for one thread at a time."""

    def fence(self) -> Fence:
        """Return the fence as it is now."""
        ...

    def move_fence(self, before: int, after: Fence) -> bool:
        """Replace the fence if its token is still `before`; return whether it was."""
        ...

    def append_as(self, token: int, rows: Sequence[Row]) -> int:
        """Append as the holder with a token, or raise LeaseLost if there is a newer one."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class FencedLease:
    """A lease by a lock and a fence, with a connection to the log of its own."""

    def __init__(self, lock: Lock, open_log: Callable[[], FencedLog]) -> None:
        self.token = 0
        self._lock = lock
        self._open_log = open_log
        self._opened: FencedLog | None = None
        self._taking = Outage("take the lease")

    def take(self, *, over: int | None = None) -> bool:
        """Return whether this process has it now; it does not wait for another one."""
        if self.token:
            return self.is_held()
        has_lock = self._lock.take()
        if not has_lock and over is None:
            return False
        try:
            fence = self._log.fence()
            is_free = has_lock and fence.has_lock
            if is_free or fence.token == over:
                after = Fence(fence.token + 1, has_lock)
                self.token = after.token if self._log.move_fence(fence.token, after) else 0
            self._taking.worked()
        except LogUnavailable as error:
            self._taking.failed(str(error))
        if not self.token:
            self._lock.release()
        return self.token > 0

    def is_free(self) -> bool:
        """Return whether nobody has it, as one who has ended."""
        if self.token or not self._lock.take():
            return False
        try:
            return self._log.fence().has_lock
        except LogUnavailable:
            return False
        finally:
            self._lock.release()

    def is_held(self) -> bool:
        """Return whether this process has it, and nobody has taken over."""
        if not self.token:
            return False
        try:
            fence = self._log.fence()
            if fence.token == self.token and not fence.has_lock and self._lock.take():
                self._log.move_fence(self.token, Fence(self.token, has_lock=True))
                return True
            is_held = fence.token == self.token and (self._lock.is_held() or not fence.has_lock)
        except LogUnavailable:  # nothing can be appended either
            is_held = self._lock.is_held()
        if not is_held:
            self._let_go()
        return is_held

    def outbid(self, token: int) -> bool:
        """Get a token above one that is not of this log, as what is published may be older than a backup."""
        after = Fence(token + 1, self._lock.is_held())
        if not self.token or not self._log.move_fence(self.token, after):
            return False
        self.token = after.token
        return True

    def append(self, rows: Sequence[Row]) -> int:
        """Append to the log as its holder; raise LeaseLost if another process has taken over."""
        return self._log.append_as(self.token, rows)

    def release(self) -> None:
        """Let another process have it, at once."""
        token, self.token = self.token, 0
        if token and not self._lock.is_held():
            with suppress(LogUnavailable):
                if self._log.fence() == Fence(token, has_lock=False):
                    self._log.move_fence(token, Fence(token))
        self._let_go()

    def _let_go(self) -> None:
        self.token = 0
        self._lock.release()
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    @property
    def _log(self) -> FencedLog:
        if self._opened is None:
            self._opened = self._open_log()
        return self._opened
