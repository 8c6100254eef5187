"""From the thread that commits to the loop that replies: one wake-up for all that one transaction stored."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from rbmle.service.log.base import Row
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.writer import Writer

Outcome = int | BaseException  # the seq of what was stored, or why nothing was
Then = Callable[[Outcome], None]  # is called once, in the loop


class Commit:
    """Something that is being stored; the writer tells it, in its own thread, how that ended."""

    __slots__ = ("_commits", "then")

    def __init__(self, commits: "Commits", then: Then) -> None:
        self._commits = commits
        self.then: Then | None = then  # None: it was called

    def set_result(self, first: int) -> None:
        """Take the seq of what was stored."""
        self._commits.arrive(self, first)

    def set_exception(self, error: BaseException | None) -> None:
        """Take why it was not stored."""
        assert error is not None
        self._commits.arrive(self, error)


class Commits:
    """What is being stored and awaited in one loop, each for a limited time."""

    def __init__(self, writer: Writer, seconds: float) -> None:
        """Make it in the loop; what takes longer than `seconds` ends with LogUnavailable."""
        self.seconds = seconds
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[tuple[Commit, Outcome]] = deque()
        self._is_woken = False
        self._deadlines: deque[tuple[float, Commit]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def append(self, row: Row, then: Then) -> None:
        """Store a row, then call `then`."""
        self._writer.submit([row], self._awaited(then))

    async def wait(self, stored: "Future[int]") -> int:
        """Return the seq of what another call stores, or raise why it is not stored."""
        future: asyncio.Future[int] = self._loop.create_future()
        commit = self._awaited(lambda outcome: _resolve(future, outcome))
        stored.add_done_callback(
            lambda done: self.arrive(commit, done.exception() or done.result())
        )
        return await future

    def arrive(self, commit: Commit, outcome: Outcome) -> None:
        """Pass an outcome to the loop; in any thread."""
        self._arrived.append((commit, outcome))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver)

    def _awaited(self, then: Then) -> Commit:
        commit = Commit(self, then)
        # The loop's own clock stands still while one of its turns lasts.
        self._deadlines.append((time.monotonic() + self.seconds, commit))
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._expire)
        return commit

    def _deliver(self) -> None:
        """Pass on all that arrived."""
        self._is_woken = False
        while self._arrived:
            self._end(*self._arrived.popleft())

    def _end(self, commit: Commit, outcome: Outcome) -> None:
        """Pass an outcome on, unless one was before; an error harms no other commit."""
        then, commit.then = commit.then, None
        if then is None:
            return
        try:
            then(outcome)
        except Exception as error:
            self._loop.call_exception_handler(
                {"message": "a request could not be replied to", "exception": error}
            )

    def _expire(self) -> None:
        """End what was not stored in time."""
        self._deliver()
        now = time.monotonic()
        while self._deadlines and (self._deadlines[0][0] <= now or not self._deadlines[0][1].then):
            self._end(self._deadlines.popleft()[1], self._late())
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


def _resolve(future: "asyncio.Future[int]", outcome: Outcome) -> None:
    if future.done():  # it was cancelled
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
