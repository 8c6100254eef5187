"""The learner's heartbeat: a thread publishes it twice a second, so that others notice when it stops.

A process that ends releases its lease at once. One that is stopped (SIGSTOP), or whose work hangs, does not:
its heartbeat stops, and after SILENT_SECONDS another learner takes over, see `rbmle.service.log.backend`. Times
of different machines are never compared: a watcher measures with its own steady clock for how long the
heartbeat has not changed.
"""

import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress

import msgspec

from rbmle.service.log.base import LeaseLost, LogUnavailable
from rbmle.service.log.publications import HEARTBEAT, Publications, PublicationVersion

BEAT_SECONDS = 0.5
SILENT_SECONDS = 5.0  # without a beat, after which a learner counts as hung
STUCK_SECONDS = 300.0  # without progress, after which the heartbeat stops
GAP_SECONDS = (
    2.0  # between two looks, after which a watcher was held up itself and cannot judge others
)


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life."""

    token: int  # the fencing token of the lease
    count: int
    learner: str  # the machine, the folder and the process


class HeartbeatSender:
    """Publishes heartbeats from `start` to `stop`, as long as `progress` returns new values."""

    def __init__(
        self, publications: Publications, learner: str, progress: Callable[[], Hashable]
    ) -> None:
        self._publications = publications
        self._learner = learner
        self._progress = progress
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, token: Callable[[], int]) -> None:
        """Begin to publish, with the current fencing token each time."""
        self.stop()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(token, self._stop), name="rbmle-heartbeat", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
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
                beat = Heartbeat(token=token(), count=count, learner=self._learner)
                # The learner itself reports failures to publish, and notices when its lease is lost.
                with suppress(LogUnavailable, LeaseLost):
                    self._publications.put(HEARTBEAT, msgspec.msgpack.encode(beat), beat.token)
            stop.wait(BEAT_SECONDS)


class HeartbeatWatch:
    """Watches the heartbeat; call `look` at least once a second."""

    def __init__(
        self, publications: Publications, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self.beat: Heartbeat | None = None  # the last one
        self.has_changed = False  # a new heartbeat was seen, and not only an old one
        self._publications = publications
        self._steady = steady
        self._version: PublicationVersion = None
        self._since = self._looked = steady()

    def look(self) -> None:
        """Look once; raise LogUnavailable if that fails."""
        now = self._steady()
        if now - self._looked > GAP_SECONDS:
            self._since = now
        self._looked = now
        try:
            newest = self._publications.newer(HEARTBEAT, self._version)
        except LogUnavailable:
            self._since = now
            raise
        if newest is not None:
            self._version, content = newest
            beat = msgspec.msgpack.decode(content, type=Heartbeat)
            self.has_changed |= self.beat is not None and beat != self.beat
            self.beat, self._since = beat, now

    @property
    def silent_seconds(self) -> float:
        """Return for how long there was no heartbeat, while this process looked."""
        return self._steady() - self._since

    def silent_token(self, seconds: float = SILENT_SECONDS) -> int | None:
        """Return the token of a learner whose heartbeat has been silent for so long; else None."""
        if self.beat is None or self.silent_seconds <= seconds:
            return None
        return self.beat.token
