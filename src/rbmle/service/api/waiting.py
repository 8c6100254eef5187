"""From the thread that writes to the loop that answers: one wake for all that one transaction stored."""

import asyncio
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress

from rbmle.service.log.errors import LogUnavailable

Outcome = int | BaseException  # a seq, or why there is none


class Slip:
    """Who waits until something is on disk; a writer tells it, in its own thread, how that ended."""

    __slots__ = ("is_over", "waiting")

    def __init__(self, waiting: "Waiting") -> None:
        self.waiting = waiting
        self.is_over = False

    def set_result(self, first: int) -> None:
        """Take the seq of what was stored."""
        self.waiting.arrive(self, first)

    def set_exception(self, error: BaseException | None) -> None:
        """Take why it was not stored."""
        assert error is not None
        self.waiting.arrive(self, error)

    def end(self, outcome: Outcome) -> None:
        """Go on, in the loop; this is called once."""
        raise NotImplementedError


class _Awaited(Slip):
    """A coroutine that waits."""

    __slots__ = ("future",)

    def __init__(self, waiting: "Waiting", future: "asyncio.Future[int]") -> None:
        super().__init__(waiting)
        self.future = future

    def end(self, outcome: Outcome) -> None:
        if self.future.done():  # it was cancelled
            return
        if isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Waiting:
    """Lets what runs in one loop wait for other threads, for a limited time."""

    def __init__(self, seconds: float) -> None:
        """Make it in the loop; for who waits longer than `seconds`, the log is unavailable."""
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[tuple[Slip, Outcome]] = deque()
        self._is_woken = False
        self._deadlines: deque[tuple[float, Slip]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, stored: "Future[int]") -> "asyncio.Future[int]":
        """Return a future of the loop."""
        awaited = _Awaited(self, self._loop.create_future())
        self.watch(awaited)
        stored.add_done_callback(
            lambda done: self.arrive(awaited, done.exception() or done.result())
        )
        return awaited.future

    def watch(self, slip: Slip) -> None:
        """End a slip when its time is over, if nothing has come for it."""
        # The loop's own clock stands still while a turn lasts.
        self._deadlines.append((time.monotonic() + self.seconds, slip))
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._expire)

    def arrive(self, slip: Slip, outcome: Outcome) -> None:
        """Pass on how something ended; in any thread."""
        self._arrived.append((slip, outcome))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver)

    def finish(self, slip: Slip, outcome: Outcome) -> None:
        """End a slip, unless it is over; what goes wrong with it harms no other."""
        if slip.is_over:
            return
        slip.is_over = True
        try:
            slip.end(outcome)
        except Exception as error:
            said = {"message": "a call could not be answered", "exception": error}
            self._loop.call_exception_handler(said)

    def _deliver(self) -> None:
        """End all for which something came."""
        self._is_woken = False
        while self._arrived:
            self.finish(*self._arrived.popleft())

    def _expire(self) -> None:
        """Let go of those who waited too long, for whom nothing has come."""
        self._deliver()
        now = time.monotonic()
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][1].is_over):
            self.finish(self._deadlines.popleft()[1], self._late())
        self._timer = None
        if self._deadlines:
            seconds = max(0.0, self._deadlines[0][0] - time.monotonic())
            self._timer = self._loop.call_later(seconds, self._expire)

    def _late(self) -> LogUnavailable:
        return LogUnavailable(
            f"the log did not answer within {self.seconds:g} s; send the same request again",
            may_be_stored=True,
            is_public=True,
        )
