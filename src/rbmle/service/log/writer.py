"""Group commit: many callers, one thread that writes, one transaction for all that waits."""

import itertools
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol, overload

from rbmle.service.log.base import Log, Row
from rbmle.service.log.errors import DuplicateRequest
from rbmle.service.log.outage import Failure, Outage
from rbmle.service.log.timings import Timings

MOST = 256  # calls in one transaction


class Done(Protocol):
    """Who is told how a call ended, in the thread that writes; a Future is one."""

    def set_result(self, first: int, /) -> None:
        """Take the seq of the first row."""
        ...

    def set_exception(self, error: BaseException | None, /) -> None:
        """Take why the rows were not stored."""
        ...


Submission = tuple[Sequence[Row], Done]


class Writer:
    """The only thread of a process that appends to the log; what it has answered is on disk."""

    def __init__(self, log: Log, timings: Timings | None = None) -> None:
        """Start the thread."""
        self.log = log
        self._outage = Outage("write the log")
        self.timings = timings or Timings()  # of transactions, in seconds
        self.last = log.last()  # the seq of the last row
        self.writing_since: float | None = (
            None  # by time.monotonic(); None while it waits for calls
        )
        self._calls: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="rbmle-writer", daemon=True)
        self._thread.start()

    @overload
    def submit(self, rows: Sequence[Row]) -> "Future[int]": ...
    @overload
    def submit(self, rows: Sequence[Row], done: Done) -> Done: ...
    def submit(self, rows: Sequence[Row], done: Done | None = None) -> Done:
        """Return who is told the seq of the first of some rows once all are on disk: a Future, or `done`."""
        if not rows:
            raise ValueError("there are no rows to write; submit at least one")
        awaited: Done = Future() if done is None else done
        self._calls.put((rows, awaited))
        return awaited

    @property
    def failure(self) -> Failure | None:
        """Return since when and why the log does not take anything; None if it does."""
        return self._outage.failure

    @property
    def waiting(self) -> int:
        """Return how many calls are queued."""
        return self._calls.qsize()

    def close(self) -> None:
        """Write what is queued, and stop."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Take all calls that wait, until there are no more to come."""
        while (call := self._calls.get()) is not None:
            calls = [call]
            last = False
            while len(calls) < MOST and not self._calls.empty():
                if (more := self._calls.get()) is None:
                    last = True
                    break
                calls.append(more)
            self.writing_since = time.monotonic()
            self._write(calls)
            self.writing_since = None
            if last:
                return

    def _write(self, calls: list[Submission]) -> None:
        """Store some calls in one transaction; those that were stored before are left out of it."""
        rows = [row for some, _ in calls for row in some]
        begun = time.perf_counter()
        try:
            first = self.log.append(rows)
        except DuplicateRequest as error:
            self._write_others(calls, error)
            return
        except Exception as error:  # whatever it is, those who wait must hear of it
            self._outage.failed(str(error))
            for _, done in calls:
                done.set_exception(error)
            return
        self._outage.worked()
        self.last = first + len(rows) - 1
        self.timings.add(time.perf_counter() - begun)
        for some, done in calls:
            done.set_result(first)
            first += len(some)

    def _write_others(self, calls: list[Submission], error: DuplicateRequest) -> None:
        """Refuse the calls that have a duplicate, and store the others."""
        ends = itertools.accumulate(len(rows) for rows, _ in calls)
        others: list[Submission] = []
        repeated: list[Submission] = []
        for call, end in zip(calls, ends, strict=True):
            start = end - len(call[0])
            if any(start <= place < end for place in error.places):
                repeated.append(call)
            else:
                others.append(call)
        if others:
            self._write(others)
        for _, done in repeated:  # now, since what they repeat may be among the others
            done.set_exception(error)
