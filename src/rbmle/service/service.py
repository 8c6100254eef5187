"""The service without its network: a log, a thread that writes, one that learns, and decisions between."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Self

import rbmle
from rbmle.core.errors import RBMLEError
from rbmle.engine.notice import seconds_compiled
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.deciding.decider import Decider, answer_of
from rbmle.service.deciding.requests import EventAnswer, StatusAnswer
from rbmle.service.learning.checkpoints import Checkpoints, Restored
from rbmle.service.learning.events import Pending, Settled
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.joining import Joiner
from rbmle.service.learning.learner import Learner
from rbmle.service.learning.model import Model, saved
from rbmle.service.learning.published import Published
from rbmle.service.log.base import Log, Row, Stored
from rbmle.service.log.opening import LOG_FILE, open_log
from rbmle.service.log.records import (
    Configured,
    Decided,
    Imported,
    Modelled,
    Reset,
    Ticked,
    decoded,
    encoded,
    kind_of,
)
from rbmle.service.log.writer import Writer
from rbmle.service.start import Start, begin, settings_of
from rbmle.service.statistics import Statistics

STUCK_SECONDS = 2.0  # after which a log that does not answer is a problem


class NotReadyError(RBMLEError):
    """A service that is still reading its log."""


class Service:
    """A log and the model that is its sum; `close` it, or kill it: nothing acknowledged is lost."""

    def __init__(self, start: Start, told: Callable[[str], None]) -> None:
        """Open the log, find a checkpoint, and begin to learn; `told` hears what is worth a line."""
        start.data.mkdir(parents=True, exist_ok=True)
        self.started = datetime.now(UTC)
        self._is_closed = False
        self.log = open_log(start.log or str(start.data / LOG_FILE))
        try:
            self._prepare(start, told)
        except BaseException:
            self.log.close()
            raise

    def _prepare(self, start: Start, told: Callable[[str], None]) -> None:
        checkpoints = Checkpoints(start.data)
        checkpoints.tidy()
        begin(self.log, start)
        settings = settings_of(self.log)
        assert settings.model is not None  # every log begins with one
        statistics = Statistics()
        fold = Fold(log=self.log, make=Model.from_json, watcher=statistics)
        with ThreadPoolExecutor(1) as beside:  # kernels are loaded while the checkpoint is read
            warm = beside.submit(_warm_up, settings.model)
            found = _restored(checkpoints, self.log, told)
            warm.result()
        if found is not None and found.state is not None and found.bandit is not None:
            statistics = found.state.statistics
            fold = Fold(log=self.log, make=Model.from_json, watcher=statistics)
            state = found.state
            fold.resume(state.settings, found.bandit, state.joined, state.budget)
        self._model = settings.model
        self.statistics = statistics
        self.writer = Writer(self.log, self._stored)
        self.decider = Decider(self.log, self.writer, self._published)
        self.decider.configuration = settings.configuration or ServiceConfiguration()
        self.learner = Learner(
            fold,
            statistics,
            checkpoints,
            prepare=settings.model.warm_up,
            tick=lambda: self.decider.append(Ticked()),
            is_refused=lambda: self.writer.failure is not None,
            caught_up=found is not None and settings.seq <= fold.seq,
            checkpoint_seconds=start.checkpoint_seconds,
        )
        self.learner.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is queued, a checkpoint, and let go; a second time does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self.writer.close()
        self.learner.close()
        self.log.close()

    @property
    def fold(self) -> Fold:
        """Return what is known; the learner's thread changes it."""
        return self.learner.fold

    @property
    def problem(self) -> str | None:
        """Return why the service cannot decide and learn now, or None."""
        if self.learner.broken is not None:
            return f"the learner has stopped: {self.learner.broken}"
        if self.writer.failure is not None:
            return f"the log takes nothing: {self.writer.failure.why}"
        since = self.writer.writing_since
        if since is not None and time.monotonic() - since > STUCK_SECONDS:
            return f"the log has not answered for {time.monotonic() - since:.0f} s"
        if self.learner.published is None:
            return "the log is still being read"
        return None

    def configure(self, configuration: ServiceConfiguration) -> "Future[int]":
        """Write a new configuration; decisions follow it once it is stored."""
        stored = self.decider.append(Configured(configuration=configuration.to_json()))
        stored.add_done_callback(
            lambda done: (
                None if done.exception() else setattr(self.decider, "configuration", configuration)
            )
        )
        return stored

    def remodel(self, model: Model) -> "Future[int]":
        """Begin another model here; it is that of the service once it is stored."""
        stored = self.decider.append(Modelled(settings=model.to_json()))
        stored.add_done_callback(
            lambda done: None if done.exception() else setattr(self, "_model", model)
        )
        return stored

    def reset(self) -> "Future[int]":
        """Begin the same model anew."""
        return self.decider.append(Reset())

    def import_model(self, model: bytes) -> "Future[int]":
        """Go on with a model that was exported before, or raise FileError."""
        self.model.load(model)
        return self.decider.append(Imported(model=model))

    def export_model(self) -> bytes:
        """Return the model as it is after the last record that was learned."""
        self._published()  # else there is none
        with self.learner.between_records:
            assert self.fold.bandit is not None
            return saved(self.fold.bandit)

    @property
    def model(self) -> Model:
        """Return the settings of the last model that was begun; as soon as it is learned, it decides."""
        return self._model

    def status(self) -> StatusAnswer:
        """Return how the service is."""
        published = self.learner.published
        return StatusAnswer(
            version=rbmle.__version__,
            records=self.writer.last,
            learned=self.fold.seq,
            observations=0 if published is None else published.bandit.round,
        )

    def log_times(self) -> tuple[int, int]:
        """Return the times of the first and the last record, in milliseconds."""
        first, last = next(self.log.read(0, 1)), next(self.log.read(self.log.last() - 1, 1))
        return first.row.time, last.row.time

    def event(self, event: str) -> EventAnswer | None:
        """Return what is known of an event, by its own records; None if it was never ranked."""
        rows = self.log.of_event(event)
        decision = next((stored for stored in rows if stored.row.kind == "decided"), None)
        if decision is None:
            return None
        decided = decoded("decided", decision.row.payload)
        assert isinstance(decided, Decided)
        joined = _Joined(self.log, self.decider.configuration)
        for stored in [*rows, _now()]:
            joined.take(stored)
        pending = joined.joiner.pending.get(event)
        waiting = {} if pending is None else {s: v for s, (v, _) in pending.values.items()}
        return EventAnswer(
            answer=answer_of(event, decided),
            time=datetime.fromtimestamp(decision.row.time / 1000, UTC),
            is_active=not decided.deferred or any(s.row.kind == "activated" for s in rows),
            rewards=joined.rewards | waiting,
            is_closed=pending is None,
        )

    def _stored(self, stored: list[Stored]) -> None:
        self.learner.take(stored)

    def _published(self) -> Published:
        if self.learner.published is None:
            raise NotReadyError("the log is still being read; try again in a moment")
        return self.learner.published


class _Joined:
    """Joins the records of one event alone."""

    def __init__(self, log: Log, configuration: ServiceConfiguration) -> None:
        self.joiner = Joiner(log=log, listener=self, configuration=configuration)
        self.rewards: dict[str, float] = {}

    def take(self, stored: Stored) -> None:
        """Take in a record as if the ones between were not there."""
        self.joiner.seq = stored.seq - 1
        self.joiner.apply(stored)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Remember rewards that came."""
        self.rewards |= {one.play.slot: one.reward for one in settled if one.is_joined}

    def leave(self, event: str, pending: Pending) -> None:
        """Forget an event that was not shown."""


def _now() -> Stored:
    """Return a record that says how late it is."""
    ticked = Ticked()
    return Stored(1, Row(kind_of(ticked), "", None, _milliseconds(), encoded(ticked)))


def _warm_up(model: Model) -> None:
    """Load the kernels that decide; if they had to be compiled, those that learn are too, before all else."""
    before = seconds_compiled()
    model.warm_up(is_learning=False)
    if seconds_compiled() > before:
        model.warm_up()


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def _restored(checkpoints: Checkpoints, log: Log, told: Callable[[str], None]) -> Restored | None:
    """Return the newest checkpoint that fits the log."""
    for found in checkpoints.restore(log):
        if found.state is not None:
            return found
        told(f"{found.path.name} is not used: {found.why}")
    return None
