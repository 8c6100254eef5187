"""The learner's heartbeat: published twice a second by a thread, so that others see when it stops.

A process that ends lets go of its lease at once. One that is stopped (SIGSTOP), or whose work hangs, does not:
its heartbeat stops, and after SILENT_SECONDS another learner takes over, see `rbmle.service.log.lease`.
Times of several machines are never compared: who looks measures, by its own steady clock, for how long the
heartbeat has not changed.
"""

import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress

import msgspec

from rbmle.service.log.errors import LeaseLost, LogUnavailable
from rbmle.service.log.publications import Publications, PublicationVersion

HEARTBEAT = "heartbeat"  # the name of the publication
BEAT_SECONDS = 0.5
SILENT_SECONDS = 5.0  # without a beat, after which a learner counts as hung
STUCK_SECONDS = 300.0  # of work without any progress, after which a learner does not beat any more
GAP_SECONDS = 2.0  # between two looks: whoever was held up for so long itself cannot judge others


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life."""

    token: int  # the fencing token of who has the lease
    count: int
    learner: str  # the machine, the folder and the process


class Heart:
    """Beats from `start` to `stop`, as long as `progress` returns something new now and then."""

    def __init__(
        self, publications: Publications, learner: str, progress: Callable[[], Hashable]
    ) -> None:
        self._publications = publications
        self._learner = learner
        self._progress = progress
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, token: Callable[[], int]) -> None:
        """Beat once, and from then on, with the fencing token of each moment."""
        self.stop()
        self._stop = threading.Event()
        arguments = (token, self._stop)
        self._thread = threading.Thread(
            target=self._run, args=arguments, name="rbmle-heartbeat", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None

    def _run(self, token: Callable[[], int], stop: threading.Event) -> None:
        count, known, moved = 0, self._progress(), time.monotonic()
        while not stop.is_set():
            if (progress := self._progress()) != known:
                known, moved = progress, time.monotonic()
            if time.monotonic() - moved < STUCK_SECONDS and token():
                count += 1
                beat = Beat(token=token(), count=count, learner=self._learner)
                # The learner itself tells what it cannot publish, and notices when its lease is lost.
                with suppress(LogUnavailable, LeaseLost):
                    self._publications.put(HEARTBEAT, msgspec.msgpack.encode(beat), beat.token)
            stop.wait(BEAT_SECONDS)


class HeartbeatWatch:
    """Looks for the heartbeat, about every second at least."""

    def __init__(
        self, publications: Publications, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self.beat: Beat | None = None  # the last one; None: there was none so far
        self.has_changed = False  # it was seen to beat, and not only what it left behind
        self._publications = publications
        self._steady = steady
        self._version: PublicationVersion = None
        self._since = self._looked = steady()

    def look(self) -> None:
        """Look once; raise LogUnavailable if that cannot be done."""
        now = self._steady()
        if now - self._looked > GAP_SECONDS:
            self._since = now
        self._looked = now
        try:
            found = self._publications.newer(HEARTBEAT, self._version)
        except LogUnavailable:
            self._since = now
            raise
        if found is not None:
            self._version, content = found
            beat = msgspec.msgpack.decode(content, type=Beat)
            self.has_changed |= self.beat is not None and beat != self.beat
            self.beat, self._since = beat, now

    @property
    def silent_seconds(self) -> float:
        """Return for how long there was no beat, while this process looked."""
        return self._steady() - self._since

    def silent_token(self, seconds: float = SILENT_SECONDS) -> int | None:
        """Return the token of a learner that has not beaten for so long; None if there is no such one."""
        if self.beat is None or self.silent_seconds <= seconds:
            return None
        return self.beat.token
