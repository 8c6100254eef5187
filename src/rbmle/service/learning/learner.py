"""The thread that learns: it folds the log into the model, and publishes copies that decide."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from rbmle.core.bandit import Bandit
from rbmle.service.learning.checkpoints import Checkpoints
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.model import Model
from rbmle.service.learning.published import Published
from rbmle.service.log.base import Stored
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.writer import Failure
from rbmle.service.statistics import Statistics

BATCH = 256  # records that are fetched at a time
TOGETHER = 64  # records that are learned between two looks at the clock
INBOX = 10_000  # records that are held in memory; more wait in the log
PUBLISH_SECONDS = 0.1  # at least, between two copies
SHARE = 20  # the copies take no more than one part in this many of the time
TICK_SECONDS = 1.0
GATHER_SECONDS, GATHERED = 0.1, 1_024  # between two looks at what came, if it is less than so much
RETRY_SECONDS = 0.2


class Learner:
    """Folds what is in the log, one record after the other, and never keeps a decision waiting."""

    def __init__(
        self,
        fold: Fold,
        statistics: Statistics,
        checkpoints: Checkpoints,
        *,
        prepare: Callable[[], object],
        tick: Callable[[], object],
        is_refused: Callable[[], bool],
        caught_up: bool,
        checkpoint_seconds: float,
    ) -> None:
        """Make the thread; `prepare` is done in it first.

        `tick` writes that time has passed, `is_refused` tells if the last write failed.

        A model that is not `caught_up` is not published before it has read the whole log once.
        """
        self.fold = fold
        self.statistics = statistics
        self.published: Published | None = None
        self.failure: Failure | None = None  # while the log cannot be read
        self.broken: str | None = None  # why it has stopped, and will not go on
        self.lock = threading.Lock()  # of fold and statistics, never held for long
        self.between_records = threading.Lock()  # for who wants the model of whole records
        self.log_bytes = 0  # as of a short time ago
        self._checkpoints = checkpoints
        self._prepare = prepare
        self._tick = tick
        self._is_refused = is_refused
        self._interval = checkpoint_seconds
        self._inbox: deque[Stored] = deque()
        self._last = fold.log.last()  # the last record that is known to be in the log
        self._wake = threading.Event()
        self._stop = False
        self._known: tuple[int, Bandit | None] = (-1, None)  # of the last copy: rounds, and whose
        self._next = 0.0  # when the next copy may be made
        self._is_whole = True  # False: the log could not be read in the midst of a record
        self._saved = fold.seq
        self._save_at = time.monotonic() + checkpoint_seconds
        self._tick_at = 0.0
        self._measure_at = 0.0
        self._thread = threading.Thread(target=self._run, name="rbmle-learner", daemon=True)
        if caught_up:
            self._publish()

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()

    def take(self, stored: list[Stored]) -> None:
        """Take what was stored just now; what does not fit here is read from the log."""
        if len(self._inbox) < INBOX:
            self._inbox.extend(stored)
        self._last = stored[-1].seq
        self._wake.set()

    def close(self) -> None:
        """Stop after the record at hand, and write a checkpoint."""
        self._stop = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.broken is None:
            self._save()

    def _run(self) -> None:
        """Learn until stopped, or say why that cannot go on."""
        try:
            self._prepare()
            self._go_on()
        except Exception as error:
            self.broken = f"{type(error).__name__}: {error}"
            raise

    def _go_on(self) -> None:
        """Learn what comes, publish it, and save it now and then."""
        while not self._stop:
            try:
                self._gather()
                is_behind = self._learn()
                self._save_if_due()
                self._measure()
                if is_behind:
                    continue
                self.failure = None
                self._publish_if_due(force=self.published is None)
                self._pass_time()
            except LogUnavailable as error:
                self.failure = self.failure or Failure(time.time(), str(error))
                time.sleep(RETRY_SECONDS)
                continue
            self._wake.wait(PUBLISH_SECONDS if self._is_stale else TICK_SECONDS)
            self._wake.clear()

    def _gather(self) -> None:
        """Wait a moment, unless much is there: what comes together costs less, and decisions less time."""
        if self.published is not None and self._last - self.fold.seq < GATHERED:
            time.sleep(GATHER_SECONDS)

    def _learn(self) -> bool:
        """Take in some records; return whether there were any."""
        seq, records = self.fold.seq, iter(self._next_records())
        while some := list(islice(records, TOGETHER)):
            with self.between_records:
                self._take(some)
            if self.published is not None:
                self._publish_if_due()
            if self._stop:
                break
        return self.fold.seq > seq and not self._stop

    def _take(self, records: list[Stored]) -> None:
        """Take in records, each after all that it closes; others may look at the fold in between."""
        try:
            for stored in records:
                is_closing, self._is_whole = True, False
                while is_closing:
                    with self.lock:
                        is_closing = self.fold.joiner.close_some(stored.row.time)
                with self.lock:
                    self.fold.take(stored)
                self._is_whole = True
        finally:
            with self.lock:
                self.fold.learn()

    def _next_records(self) -> Iterable[Stored]:
        """Return the records that come next: from the inbox if they are there, else from the log."""
        seq = self.fold.seq
        while self._inbox and self._inbox[0].seq <= seq:
            self._inbox.popleft()
        found: list[Stored] = []
        while self._inbox and len(found) < BATCH and self._inbox[0].seq == seq + len(found) + 1:
            found.append(self._inbox.popleft())
        if found or seq >= self._last:
            return found
        return self.fold.log.read(seq, BATCH)

    @property
    def _is_stale(self) -> bool:
        """Return whether the last copy does not know all that was learned."""
        bandit, (round, known) = self.fold.bandit, self._known
        return bandit is not None and (round != bandit.round or known is not bandit)

    def _publish_if_due(self, *, force: bool = False) -> None:
        """Publish a copy, if there is something new and the last one is not too young."""
        if self._is_stale and (force or time.monotonic() >= self._next):
            self._publish()

    def _publish(self) -> None:
        """Let decisions be made by what was learned so far: one assignment."""
        bandit, model = self.fold.bandit, self.fold.model
        if bandit is None:
            return
        assert isinstance(model, Model)
        begun = time.monotonic()
        copy = bandit.snapshot()
        self._known = (bandit.round, bandit)
        self.published = Published(model, copy, self.fold.seq, self.fold.joiner.time)
        now = time.monotonic()
        self._next = now + max(PUBLISH_SECONDS, SHARE * (now - begun))

    def _pass_time(self) -> None:
        """Write that time has passed, if something waits for that, or to see if the log writes again."""
        deadline, now = self.fold.joiner.next_deadline, time.monotonic()
        if now < self._tick_at:
            return
        is_due = deadline is not None and deadline <= time.time_ns() // 1_000_000
        if is_due or self._is_refused():
            self._tick_at = now + TICK_SECONDS
            self._tick()

    def _measure(self) -> None:
        """Look at the size of the log now and then."""
        if time.monotonic() >= self._measure_at:
            self._measure_at = time.monotonic() + TICK_SECONDS
            self.log_bytes = self.fold.log.size()

    def _save_if_due(self) -> None:
        if time.monotonic() >= self._save_at:
            self._save()

    def _save(self) -> None:
        """Write a checkpoint; if the disk does not take it, the next one will do."""
        self._save_at = time.monotonic() + self._interval
        if self.fold.bandit is None or self.fold.seq == self._saved or not self._is_whole:
            return
        try:
            self._checkpoints.save(self.fold, self.statistics)
        except OSError as error:
            self.failure = Failure(time.time(), f"no checkpoint was written: {error}")
        else:
            self._saved = self.fold.seq
