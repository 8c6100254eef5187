"""From the thread that writes to the loop that answers: one wake for all that one transaction stored."""

import asyncio
from collections import deque
from concurrent.futures import Future

Ready = tuple["asyncio.Future[int]", "Future[int]"]


class Waiting:
    """Lets coroutines of one loop wait for futures of other threads, for a limited time."""

    def __init__(self, seconds: float) -> None:
        """Make it in the loop; who waits longer than `seconds` gets a TimeoutError."""
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Ready] = deque()
        self._is_woken = False
        self._deadlines: deque[tuple[float, asyncio.Future[int]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, stored: "Future[int]") -> "asyncio.Future[int]":
        """Return a future of the loop."""
        waiter: asyncio.Future[int] = self._loop.create_future()
        stored.add_done_callback(lambda done: self._arrive((waiter, done)))
        self._deadlines.append((self._loop.time() + self.seconds, waiter))
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._expire)
        return waiter

    def _arrive(self, ready: Ready) -> None:
        """Pass a result on; in any thread."""
        self._ready.append(ready)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Wake all whose result is there."""
        self._is_woken = False
        while self._ready:
            waiter, done = self._ready.popleft()
            if waiter.done():
                continue
            error = done.exception()
            if error is None:
                waiter.set_result(done.result())
            else:
                waiter.set_exception(error)

    def _expire(self) -> None:
        """Let go of those who waited too long."""
        now = self._loop.time()
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][1].done()):
            _, waiter = self._deadlines.popleft()
            if not waiter.done():
                waiter.set_exception(TimeoutError())
        self._timer = None
        if self._deadlines:
            self._timer = self._loop.call_at(self._deadlines[0][0], self._expire)
