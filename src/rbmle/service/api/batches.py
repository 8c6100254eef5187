"""Rank requests that come together are decided together."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

MOST = 32  # requests in a batch; the log begins to write them while the next are decided
BUSY, BUSY_SECONDS = 4, 0.02  # so many in the last batch, so short a time ago
GATHER_SECONDS = 0.002  # in busy times; larger batches cost less, so replies come sooner

Item = TypeVar("Item")


class Batches(Generic[Item]):
    """Gathers what comes within one turn of the loop, and in busy times for a moment longer."""

    def __init__(self, decide: Callable[[list[Item]], None]) -> None:
        """Make it in the loop; `decide` is given each batch."""
        self._decide = decide
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Item] = []
        self._planned: asyncio.Handle  # of the next batch, while something is waiting
        self._last, self._decided = 0, 0.0  # the size of the last batch, and when it was decided

    def add(self, item: Item) -> None:
        """Let something be decided soon, with all that comes until then."""
        self._waiting.append(item)
        if len(self._waiting) == 1:
            self._plan()
        elif len(self._waiting) == MOST:
            self._planned.cancel()
            self._planned = self._loop.call_soon(self._next)

    def _plan(self) -> None:
        if self._last >= BUSY and self._loop.time() - self._decided < BUSY_SECONDS:
            self._planned = self._loop.call_later(GATHER_SECONDS, self._next)
        else:
            self._planned = self._loop.call_soon(self._next)

    def _next(self) -> None:
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._last, self._decided = len(batch), self._loop.time()
        if self._waiting:
            self._planned = self._loop.call_soon(self._next)
        self._decide(batch)
