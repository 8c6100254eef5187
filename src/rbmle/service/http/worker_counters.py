"""Counters that all workers of a service can read, and that outlive a worker.

The supervisor makes one anonymous file with a page for each worker and gives it to every worker that it
starts. A worker counts in its own page and reads all of them, so any worker can answer with the sum. A worker
that is started again finds the page of the one before and counts on, so a sum never falls while the
supervisor lives. The file has no name and ends with the last process that holds it.

A page is a table. Each entry has a name and `WIDTH` numbers: a histogram with its sum, or a single counter in
the first place. Numbers are 8-byte floats, aligned, with a single writer each, so that a reader in another
process sees the old or the new value and nothing between. A name is written once and never changes.
"""

import mmap
import struct
import tempfile
from collections.abc import MutableSequence
from typing import IO

from rbmle.service.log.timings import EDGES

WIDTH = len(EDGES) + 2  # counts up to each edge and beyond the last, and the sum
NAME_BYTES = 96
ENTRY_BYTES = NAME_BYTES + 8 * WIDTH
ENTRIES = 1365  # of a page; names are of operations and statuses, which are some hundred
PAGE_BYTES = mmap.ALLOCATIONGRANULARITY * -(-ENTRIES * ENTRY_BYTES // mmap.ALLOCATIONGRANULARITY)
WARM = "warm"  # the name of an entry that is 1 once a worker can decide
BETWEEN = "\x1f"  # the parts of a name


class WorkerCounters:
    """The counters of one worker, and a view of those of its siblings."""

    def __init__(self, descriptor: int | None = None, worker: int = 0, workers: int = 1) -> None:
        """Count in the page of a worker; without a file, in memory of this process only."""
        size = PAGE_BYTES * workers
        self._memory = mmap.mmap(-1 if descriptor is None else descriptor, size)
        self._numbers = memoryview(self._memory).cast("d")
        self.worker = worker
        self.workers = workers
        self._places = dict(_names(self._page(worker), worker))

    def values(self, *name: str) -> MutableSequence[float]:
        """Return the numbers of an entry of this worker, to add to; a new entry begins with zeros.

        >>> counters = WorkerCounters()
        >>> counters.values("requests", "rank", "201")[0] += 1
        >>> counters.total()
        {('requests', 'rank', '201'): [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
        """
        joined = BETWEEN.join(name)
        if joined not in self._places:
            place = self.worker * PAGE_BYTES + len(self._places) * ENTRY_BYTES
            written = joined.encode()
            if len(self._places) >= ENTRIES or len(written) > NAME_BYTES:
                return [0.0] * WIDTH  # no room: it is counted nowhere, and harms nothing
            # The first byte makes an entry visible, so it comes last.
            self._memory[place + 1 : place + NAME_BYTES] = written.ljust(NAME_BYTES, b"\0")[1:]
            self._memory[place] = written[0]
            self._places[joined] = place
        first = (self._places[joined] + NAME_BYTES) // 8
        return self._numbers[first : first + WIDTH]  # type: ignore[return-value]  # a memoryview of floats

    def note_warm(self) -> None:
        """Tell the others that this worker can decide without loading anything first.

        A worker that is started again loads all before it listens, so what was true of it stays true.
        """
        self.values(WARM)[0] = 1.0

    @property
    def others_are_warm(self) -> bool:
        """Return whether every other worker has noted that it can decide."""
        others = (self.of_worker(n) for n in range(self.workers) if n != self.worker)
        return all(page.get((WARM,), [0.0])[0] > 0 for page in others)

    def of_worker(self, worker: int) -> dict[tuple[str, ...], list[float]]:
        """Return the entries of a worker by name."""
        page = self._page(worker)
        return {
            tuple(name.split(BETWEEN)): list(
                struct.unpack_from(f"={WIDTH}d", page, place - worker * PAGE_BYTES + NAME_BYTES)
            )
            for name, place in _names(page, worker)
        }

    def total(self) -> dict[tuple[str, ...], list[float]]:
        """Return the sums over all workers, by name."""
        sums: dict[tuple[str, ...], list[float]] = {}
        for worker in range(self.workers):
            for name, values in self.of_worker(worker).items():
                known = sums.get(name, [0.0] * WIDTH)
                sums[name] = [a + b for a, b in zip(known, values, strict=True)]
        return sums

    def _page(self, worker: int) -> memoryview:
        return memoryview(self._memory)[worker * PAGE_BYTES : (worker + 1) * PAGE_BYTES]


def counters_file(workers: int) -> IO[bytes]:
    """Return an empty file without a name for so many workers."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.truncate(PAGE_BYTES * workers)
    return file


def _names(page: memoryview, worker: int) -> list[tuple[str, int]]:
    """Return the names in a page, and where in the file their entries begin."""
    found = []
    for start in range(0, ENTRIES * ENTRY_BYTES, ENTRY_BYTES):
        if not page[start]:
            break
        name = bytes(page[start : start + NAME_BYTES]).rstrip(b"\0").decode()
        found.append((name, worker * PAGE_BYTES + start))
    return found
