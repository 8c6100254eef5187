"""Group commit: one thread writes the rows of many callers, all that wait in one transaction."""

import itertools
import queue
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, MutableSequence, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np
import structlog

from rbmle.service.log.base import DuplicateRequest, Log, Row

EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # seconds
LATELY = 2048  # durations

MOST = 256  # calls in one transaction


class Histogram:
    """A histogram of durations; one thread adds, any thread reads.

    Its values are the counts up to each edge and beyond the last, and the sum of all durations. They may be in
    memory that other processes read.
    """

    __slots__ = ("values",)

    def __init__(self, values: MutableSequence[float] | None = None) -> None:
        self.values = [0.0] * (len(EDGES) + 2) if values is None else values

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.values[bisect_left(EDGES, seconds)] += 1
        self.values[-1] += seconds


class Timings:
    """The last durations in a ring, and all of them in a histogram; one thread adds, any thread reads."""

    def __init__(self, histogram: Histogram | None = None) -> None:
        self._seconds = np.full(LATELY, np.nan)
        self.count = 0  # ever added
        self.histogram = Histogram() if histogram is None else histogram

    def add(self, seconds: float) -> None:
        self._seconds[self.count % len(self._seconds)] = seconds
        self.count += 1
        self.histogram.add(seconds)

    def quantile(self, q: float) -> float | None:
        """Return a quantile of the durations; None if there are none.

        >>> timings = Timings()
        >>> timings.add(0.1)
        >>> timings.quantile(0.99)
        0.1
        """
        known = self._seconds[: min(self.count, len(self._seconds))]
        return float(np.quantile(known, q)) if len(known) else None


_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failure:
    """Since when something fails, and why."""

    since: float  # seconds since the epoch
    why: str


class Outage:
    """Whether an action works, such as "write the log"; logs the start and the end of an outage once."""

    def __init__(self, action: str) -> None:
        self.failure: Failure | None = None  # while it does not work
        self._action = action

    @contextmanager
    def watch(self, *errors: type[Exception]) -> Iterator[None]:
        """Note whether what is done in this context works; these errors are noted, and not raised."""
        try:
            yield
        except errors as error:
            self.note_failure(str(error))
        else:
            self.note_success()

    def note_failure(self, why: str) -> None:
        if self.failure is None:
            self.failure = Failure(time.time(), why)
            _log.error(f"cannot {self._action}", why=why)

    def note_success(self) -> None:
        if self.failure is not None:
            seconds = round(time.time() - self.failure.since, 3)
            self.failure = None
            _log.info(f"can {self._action} again", after_seconds=seconds)


class Done(Protocol):
    """Hears, in the thread that writes, the seq of the first row of a call, or its error; like a Future."""

    def set_result(self, first: int, /) -> None: ...

    def set_exception(self, error: BaseException | None, /) -> None: ...


Submission = tuple[Sequence[Row], Done]


class Writer:
    """The only thread of a process that appends to the log; what it has confirmed is on disk."""

    def __init__(self, log: Log, timings: Timings | None = None) -> None:
        self.log = log
        self._outage = Outage("write the log")
        self.timings = timings or Timings()  # of transactions, in seconds
        self.last = log.last()  # the seq of the last row
        self.writing_since: float | None = None  # by time.monotonic(); None: it waits for calls
        self._calls: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="rbmle-writer", daemon=True)
        self._thread.start()

    @overload
    def submit(self, rows: Sequence[Row]) -> "Future[int]": ...
    @overload
    def submit(self, rows: Sequence[Row], done: Done) -> Done: ...
    def submit(self, rows: Sequence[Row], done: Done | None = None) -> Done:
        """Queue rows; `done`, or a Future, gets the seq of the first once all are on disk."""
        if not rows:
            raise ValueError("there are no rows to write; submit at least one")
        awaited: Done = Future() if done is None else done
        self._calls.put((rows, awaited))
        return awaited

    @property
    def failure(self) -> Failure | None:
        """Return since when and why nothing can be stored; None if it can."""
        return self._outage.failure

    @property
    def waiting(self) -> int:
        return self._calls.qsize()

    def close(self) -> None:
        """Write what is queued, and stop."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
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
        except Exception as error:  # whatever it is, the callers have to hear of it
            self._outage.note_failure(str(error))
            for _, done in calls:
                done.set_exception(error)
            return
        self._outage.note_success()
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
        for _, done in repeated:  # after the others, which may have the rows that they repeat
            done.set_exception(error)
