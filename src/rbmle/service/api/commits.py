"""Commits: the writer's thread stores rows, and wakes the event loop once for each transaction."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from rbmle.service.log.base import LogUnavailable, Row
from rbmle.service.log.writer import Writer

Outcome = int | BaseException  # the seq of the row, or why it was not stored
Then = Callable[[Outcome], None]  # is called once, in the loop


class Commit:
    """A row that is being stored; the writer calls its setters in its own thread."""

    __slots__ = ("_commits", "then")

    def __init__(self, commits: "Commits", then: Then) -> None:
        self._commits = commits
        self.then: Then | None = then  # None: it was called

    def set_result(self, first: int) -> None:
        """Accept the seq of the row."""
        self._commits.finish(self, first)

    def set_exception(self, error: BaseException | None) -> None:
        """Accept why the row was not stored."""
        assert error is not None
        self._commits.finish(self, error)


class Commits:
    """Waits in one loop, each time for a limited time, until rows are stored."""

    def __init__(self, writer: Writer, seconds: float) -> None:
        """Create it in the loop; a commit that takes longer than `seconds` ends with LogUnavailable."""
        self.seconds = seconds
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._finished: deque[tuple[Commit, Outcome]] = deque()
        self._is_woken = False
        self._deadlines: deque[tuple[float, Commit]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def append(self, row: Row, then: Then) -> None:
        """Store a row, then call `then`."""
        self._writer.submit([row], self._begin(then))

    async def wait(self, stored: "Future[int]") -> int:
        """Return the seq of a row that is being stored elsewhere, or raise why it is not stored."""
        future: asyncio.Future[int] = self._loop.create_future()
        commit = self._begin(lambda outcome: _resolve(future, outcome))
        stored.add_done_callback(
            lambda done: self.finish(commit, done.exception() or done.result())
        )
        return await future

    def finish(self, commit: Commit, outcome: Outcome) -> None:
        """Pass an outcome to the loop; callable from any thread."""
        self._finished.append((commit, outcome))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._deliver)

    def _begin(self, then: Then) -> Commit:
        commit = Commit(self, then)
        # The loop's own clock does not advance during one turn of the loop.
        self._deadlines.append((time.monotonic() + self.seconds, commit))
        if self._timer is None:
            self._timer = self._loop.call_later(self.seconds, self._expire)
        return commit

    def _deliver(self) -> None:
        self._is_woken = False
        while self._finished:
            self._end(*self._finished.popleft())

    def _end(self, commit: Commit, outcome: Outcome) -> None:
        """Call `then` unless it was called; an error in it harms no other commit."""
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
        """End the commits whose deadline is over."""
        self._deliver()
        now = time.monotonic()
        while self._deadlines and (self._deadlines[0][0] <= now or not self._deadlines[0][1].then):
            late = LogUnavailable(
                f"the log did not answer within {self.seconds:g} s; send the same request again",
                may_be_stored=True,
                is_public=True,
            )
            self._end(self._deadlines.popleft()[1], late)
        self._timer = None
        if self._deadlines:
            seconds = max(0.0, self._deadlines[0][0] - time.monotonic())
            self._timer = self._loop.call_later(seconds, self._expire)


def _resolve(future: "asyncio.Future[int]", outcome: Outcome) -> None:
    if future.done():  # it was cancelled
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
