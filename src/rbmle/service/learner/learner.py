"""The learner: it folds the log into the model, and publishes the model that front ends decide with.

Only the learner that has the lease publishes. Others stand by: they fold the same log, and take over when the
lease is free, or when the heartbeat of its holder stops.
"""

import itertools
import os
import platform
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.engine.compiled import seconds_compiled
from rbmle.service.learner.checkpoints import Checkpoints, Restored, begin_fold
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.start import Start, begin
from rbmle.service.log.base import (
    Extent,
    LeaseLost,
    Log,
    LogChanged,
    LogUnavailable,
    Stored,
    origin_of,
)
from rbmle.service.log.clock import LogClockCheck, clock
from rbmle.service.log.publications import DAYS, MODEL, REPORT, Publications
from rbmle.service.log.records import CLOCK, ClockCorrected, Ticked, row_of
from rbmle.service.log.writer import Failure, Outage
from rbmle.service.model.heartbeat import SILENT_SECONDS, HeartbeatSender, HeartbeatWatch
from rbmle.service.model.published import Published, encode, initial_model, seq_of
from rbmle.service.model.report import (
    DAYS_SECONDS,
    Report,
    ShadowReport,
    losing_notices,
    reset_notices,
    reset_times,
)
from rbmle.service.model.settings import ModelSettings, WrittenSettings, settings_of
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.lift_intervals import (
    HoldoutLift,
    WindowLift,
    holdout_lift,
    window_lifts,
)
from rbmle.service.statistics.summary import Statistics

BATCH = 256  # records that are read at a time
TOGETHER = 64  # records that are learned between two looks at the clock
PUBLISH_SECONDS = 0.1  # at least, between two publications
SHARE = 20  # publications take no more than one part in this many of the time
POLL_SECONDS = 0.1  # between two looks for new records
REPORT_SECONDS = 0.25  # between two reports, if there is something new
TICK_SECONDS = 1.0  # between two records of the clock, and two reports at most
ORIGIN_SECONDS = 0.25  # between two looks whether records were erased
HELD_SECONDS = 0.5  # between two looks whether the lease is still held
FREE_SECONDS = 0.1  # between two looks whether the lease is free
YIELD_SECONDS = 3 * FREE_SECONDS  # for which a standby leaves a free lease to one that folds along
FAR_SECONDS = 2.0  # the same, if the newest checkpoint here is far behind
FAR = 20_000  # records
LOOK_EVERY = 10  # looks at the lease there is one at the report
RETRY_SECONDS = 0.2
LEARNED_SECONDS = 2.0  # of learning since the last checkpoint, after which there is another one
SAVE_SHARE = 20  # such checkpoints take no more than one part in this many of the time
MANY = 1_000  # unread records at the start, from which on the report shows progress
TELL_SECONDS = 10.0  # between two log lines about that progress


class LogLearner:
    """Folds the records of the log in their order, until it is stopped."""

    def __init__(
        self, log: Log, publications: Publications, start: Start, notify: Callable[[str], None]
    ) -> None:
        self.log = log
        self.publications = publications
        self.start = start
        self.notify = notify
        self.statistics = Statistics()
        self.fold = Fold(log=log, make=ModelSettings.from_json, watcher=self.statistics)
        self._reading, self._ticking = Outage("read the log"), Outage("write that time passes")
        self._publishing, self._saving = Outage("publish"), Outage("write a checkpoint")
        self.is_leading = False  # it has the lease
        self._lease = log.lease()
        self._heart = HeartbeatSender(publications, name_of(start.data), self._progress)
        self._heartbeat = HeartbeatWatch(publications)  # of the learner that leads
        self._steps = 0  # of `run`
        self._clock_check = LogClockCheck()
        self._checkpoints = Checkpoints(start.data)
        self._stop = threading.Event()
        self._is_caught_up = False  # it has read the whole log once, or restored all that matters
        self._is_reading_past = True  # it has not yet reached the end of the log since its start
        self._start_point = (0, time.monotonic())  # the record after which it started, and when
        self._may_publish_from = 0  # from this record on, a model is newer than the published one
        self._is_whole = True  # False: reading the log failed in the middle of a record
        self._known: tuple[int, Bandit | None, ServiceConfiguration | None, int]
        self._known = (-1, None, None, 0)
        self._snapshot: Bandit | None = None  # the model that was published last
        self._reported = -1  # the seq of the last report
        self._previous_report: Report | None = None  # of an earlier learner that knew more
        self._has_previous_report = False  # it was looked up since this learner leads
        self._saved = 0  # the seq of the last checkpoint
        self._learned_seconds = 0.0  # since then
        self._log_bytes = 0
        self._extent = Extent()
        self._oldest: int | None = None  # the time of the first record that is not deleted
        self._lifts: list[WindowLift] = []  # over the baseline action
        self._holdout: HoldoutLift | None = None
        self.find_shadows: Callable[[], list[ShadowReport]] = list  # none, unless a keeper has some
        self._resets = 0  # of the model, about which the operator was told
        self._origin = ""  # of the log
        self._due: dict[str, float] = {}  # when each periodic task is due again

    @property
    def failure(self) -> Failure | None:
        """Return since when and why something fails; None if nothing does."""
        outages = (self._reading, self._ticking, self._publishing, self._saving)
        return next((outage.failure for outage in outages if outage.failure is not None), None)

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Learn until stopped; if learning fails, report why and raise."""
        try:
            while not self._stop.is_set():
                self._step()
            self._save()
        except Exception as error:
            self._report(broken=f"{type(error).__name__}: {error}")
            raise
        finally:
            self.release()

    def release(self) -> None:
        """Give up the lease, so that another learner can take it at once."""
        self._heart.stop()
        self.is_leading, self._snapshot = False, None
        self._lease.release()

    def stand_by(self, *, is_spare: bool) -> None:
        """Wait for the lease, with kernels loaded and nothing learned; `prepare` has to follow.

        That takes memory and no time, where a learner that folds along does all the work a second time. One
        that is no spare returns without the lease, to fold along, if the learner that leads keeps its
        checkpoints elsewhere.
        """
        if self._lead():
            return
        is_warm = False
        for looks in itertools.count():
            if self._stop.wait(FREE_SECONDS):
                return
            is_warm = is_warm or self._warm_up()
            clock.now()  # which sees jumps if it is asked often
            if not is_spare and looks % LOOK_EVERY == 0 and self._is_led_elsewhere():
                return
            if self._lease.is_free() and not self._stop.wait(self._patience()) and self._lead():
                return
            with suppress(LogUnavailable, msgspec.MsgspecError):
                self._heartbeat.look()
            if self._heartbeat.silent_token() is not None:
                hung = self._heartbeat.silent_token(SILENT_SECONDS + self._patience())
                if hung is not None and self._lead(over=hung):
                    return

    def _warm_up(self) -> bool:
        """Load the kernels of the log's model; return whether it has one."""
        try:
            model = settings_of(self.log).model
        except LogUnavailable:
            return False
        if model is None:
            return False
        model.warm_up()
        self.notify("a learner stands by")
        return True

    def _patience(self) -> float:
        """Return for how many seconds a lease is left to a learner that has folded along."""
        try:
            is_far = self.log.last() > self._checkpoints.newest + FAR
        except LogUnavailable:
            is_far = True
        return FAR_SECONDS if is_far else YIELD_SECONDS

    def _is_led_elsewhere(self) -> bool:
        """Return whether the last report is of a learner whose checkpoints are elsewhere."""
        try:
            newest = self.publications.newer(REPORT, None)
        except LogUnavailable:
            return False
        leader = "" if newest is None else msgspec.msgpack.decode(newest[1], type=Report).learner
        here, _, _ = name_of(self.start.data).rpartition("/")
        return leader.rpartition("/")[0] not in {"", here}

    def prepare(self) -> None:
        """Wait until there is something to learn from, and go on from a checkpoint; `run` has to follow."""
        while not (self.is_leading or self._lead() or self.log.last()):
            if self._stop.wait(RETRY_SECONDS):
                return
        if self._stop.is_set():
            return
        self._begin_fold()

    def _begin_fold(self) -> None:
        """Go on from a checkpoint, or from the base of the log."""
        origin = origin_of(self.log)
        settings = settings_of(self.log)
        assert settings.model is not None  # every log begins with one
        if settings.model.notice is not None:
            self.notify(settings.model.notice)
        with ThreadPoolExecutor(1) as beside:  # kernels are loaded while a checkpoint is read
            warm = beside.submit(_prepare_model, settings.model)
            restored = self._checkpoints.restore(self.log, self.notify)
            warm.result()
        self._origin = origin
        if restored is not None:
            self._resume(restored, settings)
        else:
            self.fold, self.statistics = begin_fold(self.log, None)
        self._start_point = (self.fold.seq, time.monotonic())
        self._may_publish_from = max(settings.seq, known := self._published_seq())
        if known < 0 and self.fold.seq < settings.seq:  # until something is learned
            initial = initial_model(settings.model, settings.configuration)
            self._publish(MODEL, encode(initial, self._origin))

    def _begin_again(self, why: str) -> None:
        """Fold the log from a checkpoint or its base, as records were erased or deleted.

        Front ends keep the model that they have until this one knows as many records.
        """
        self.notify(f"the model is made again: {why}")
        self._origin = ""  # if this fails, it is done again at the next step
        self.statistics = Statistics()
        self.fold = Fold(log=self.log, make=ModelSettings.from_json, watcher=self.statistics)
        self._is_caught_up, self._is_reading_past, self._is_whole = False, True, True
        self._known = (-1, None, None, 0)
        self._snapshot, self._saved, self._resets = None, 0, 0
        self._has_previous_report = False
        self._begin_fold()

    def _published_seq(self) -> int:
        try:
            newest = self.publications.newer(MODEL, None)
            seq = -1 if newest is None else seq_of(newest[1], self._origin)
            return seq if seq <= self.log.last() else -1
        except (LogUnavailable, msgspec.MsgspecError):
            return -1

    def _lead(self, over: int | None = None) -> bool:
        """Take the lease if it is free, or from a learner that hangs, whose fencing token is `over`.

        The learner that gets it writes the first records of a new log.
        """
        if not self._lease.take(over=over):
            return False
        if over is not None and self._heartbeat.beat is not None:
            seconds, other = self._heartbeat.silent_seconds, self._heartbeat.beat.learner
            self.notify(
                f"the learner {other} has shown no sign of life for {seconds:.0f} s; this one takes over"
            )
        try:
            begin(self.log, self.start, self.notify, writer=self._lease)
        except LeaseLost:
            self._lose()
            return False
        except BaseException:
            self.release()
            raise
        self._heart.start(lambda: self._lease.token)
        self._checkpoints.tidy()
        self._has_previous_report = False
        self.is_leading = True
        return True

    def _lose(self) -> None:
        self.release()
        self.notify("the lease is lost; another learner may take over")

    def _progress(self) -> tuple[int, ...]:
        """Return numbers that change while the learner works."""
        joiner, bandit = self.fold.joiner, self.fold.bandit
        return (self._steps, joiner.seq, len(joiner.pending), 0 if bandit is None else bandit.round)

    def _resume(self, restored: Restored, settings: WrittenSettings) -> None:
        self.fold, self.statistics = begin_fold(self.log, restored)
        self._saved = self.fold.seq
        self._is_caught_up = settings.seq <= self.fold.seq
        self._resets = restored.bandit.resets

    def _step(self) -> None:
        clock.now()  # which sees jumps if it is asked often
        self._steps += 1
        is_behind = False
        with self._reading.watch(LogUnavailable):
            try:
                if self._is_due("origin", ORIGIN_SECONDS) and origin_of(self.log) != self._origin:
                    raise LogChanged("records of events were erased")
                is_behind = self._learn()
            except LogChanged as error:
                self._begin_again(str(error))
                is_behind = True
        is_at_end = not is_behind and self._reading.failure is None
        if is_at_end:
            self._is_caught_up, self._is_reading_past = True, False
        self._keep_lease()
        if self.is_leading:
            self._save_if_due()
            self._publish_if_due()
            self._report_if_due()
            if is_at_end:
                self._pass_time()
                self._correct_clock()
        if not is_behind:
            self._stop.wait(POLL_SECONDS if self._reading.failure is None else RETRY_SECONDS)

    def _learn(self) -> bool:
        """Learn some records; return whether there may be more."""
        records = list(self.log.read(self.fold.seq, BATCH))
        for at in range(0, len(records), TOGETHER):
            self._take(records[at : at + TOGETHER])
            if self.is_leading:
                self._publish_if_due()
        return len(records) == BATCH and not self._stop.is_set()

    def _take(self, records: list[Stored]) -> None:
        begun = time.thread_time()
        try:
            for stored in records:
                self._is_whole = False
                self.fold.take(stored)
                self._is_whole = True
        finally:
            self.fold.learn()
            self._learned_seconds += time.thread_time() - begun
            self._notify_of_resets()

    def _notify_of_resets(self) -> None:
        """Tell the operator of drift alarms, but not of those that the log had before this start."""
        bandit = self.fold.bandit
        resets = 0 if bandit is None else bandit.resets
        if bandit is not None and resets > self._resets and self._is_caught_up:
            self.notify(
                f"{bandit.events[-1]}; the model has started again, see docs/how-to/drift.md"
            )
        self._resets = resets

    def _keep_lease(self) -> None:
        """Check that the lease is still held, or take it once this learner has caught up."""
        if not self._is_due("lease", HELD_SECONDS if self.is_leading else FREE_SECONDS):
            return
        if self.is_leading:
            if not self._lease.is_held():
                self._lose()
            return
        with suppress(LogUnavailable):
            self._heartbeat.look()
        if not self._is_caught_up:
            return
        if self._lead() or ((hung := self._heartbeat.silent_token()) and self._lead(over=hung)):
            self.notify("this learner has the lease now, and publishes")

    def _publish_if_due(self) -> None:
        """Publish the model if it has changed and the last publication is long enough ago."""
        fold = self.fold
        if fold.bandit is None or fold.seq < self._may_publish_from:
            return
        guard = self.statistics.guard
        counted = 0 if guard is None else guard.guard.plays
        state = (fold.bandit.round, fold.bandit, fold.joiner.configuration, counted)
        if state == self._known or not self._is_due("publish", PUBLISH_SECONDS):
            return
        assert isinstance(fold.model, ModelSettings)
        begun = time.monotonic()
        # A snapshot copies the large arrays. The last one is kept until now, and freed before the next one is
        # made, so that this process always takes the memory of one instead of growing at each publication.
        self._snapshot = None
        self._snapshot = fold.bandit.snapshot()
        published = Published(
            model=fold.model,
            bandit=self._snapshot,
            configuration=fold.joiner.configuration,
            seq=fold.seq,
            time=fold.joiner.time,
            grant=None if guard is None else guard.grant(),
        )
        self._publish(MODEL, encode(published, self._origin))
        self._known = state
        seconds = time.monotonic() - begun
        self._due["publish"] = time.monotonic() + max(PUBLISH_SECONDS, SHARE * seconds)

    def _report_if_due(self) -> None:
        seconds = REPORT_SECONDS if self._reported != self.fold.seq else TICK_SECONDS
        if time.monotonic() >= self._due.get("report", 0.0) + seconds:
            self._due["report"] = time.monotonic()
            self._report()

    def _report(self, broken: str = "") -> None:
        fold, bandit, failure = self.fold, self.fold.bandit, self.failure
        records = fold.seq
        try:
            records = self.log.last()
            if self._is_due("size", TICK_SECONDS):
                self._log_bytes, self._extent = self.log.size(), self.log.extent()
                oldest = next(self.log.read(self._extent.deleted, 1), None)
                self._oldest = None if oldest is None else oldest.row.time or None
        except LogUnavailable as error:
            failure = failure or Failure(time.time(), str(error))
        previous, now = self._find_previous_report(), clock.now()
        summary = self.statistics.summary(now) if previous is None else previous.summary
        if self._is_due("lifts", TICK_SECONDS):
            self._lifts = window_lifts(summary, summary.ranges)
            holdout = holdout_lift(self.statistics.holdout)
            self._holdout = holdout if previous is None else previous.holdout
        report = Report(
            time=now,
            origin=self._origin,
            seq=fold.seq,
            counted=fold.seq if previous is None else previous.counted,
            records=records,
            observations=0 if bandit is None else bandit.round,
            is_catching_up=self._is_reading_past and records > fold.seq + MANY,
            seconds_left=self._seconds_left(records),
            pending=len(fold.joiner.pending),
            counts=fold.joiner.counts if previous is None else previous.counts,
            summary=summary,
            lifts=self._lifts,
            holdout=self._holdout,
            shadows=self.find_shadows(),
            guard=None if self.statistics.guard is None else self.statistics.guard.report(),
            log_bytes=self._log_bytes,
            deleted=self._extent.deleted,
            erasures=self._extent.erasures,
            oldest=self._oldest,
            unavailable_since=None if failure is None else int(failure.since * 1000),
            unavailable_why="" if failure is None else failure.why,
            broken=broken,
            has_slots=fold.has_slots,
            resets=0 if bandit is None else bandit.resets,
            reset_times=[] if bandit is None else reset_times(bandit),
            log_clock_ahead_seconds=self._clock_check.ahead_seconds,
            clock_corrections=self._clock_check.corrections,
            notices=[
                *losing_notices(self._lifts),
                *self._clock_check.notices,
                *clock.notices,
                *([] if bandit is None else reset_notices(bandit, now)),
            ],
            learner=name_of(self.start.data),
        )
        self._publish(REPORT, msgspec.msgpack.encode(report))
        self._reported = fold.seq
        if self._is_due("days", DAYS_SECONDS):
            self._publish(DAYS, msgspec.msgpack.encode(self.statistics.ranges.by_day()))

    def _seconds_left(self, records: int) -> float | None:
        """Return how long it takes to read the rest of the log after a start, and log it now and then.

        None if the end was reached once, or if it is too early to say.
        """
        first, begun = self._start_point
        done, seconds = self.fold.seq - first, time.monotonic() - begun
        if not self._is_reading_past or seconds < TELL_SECONDS / 5 or done <= 0:
            return None
        left = seconds * (records - self.fold.seq) / done
        if self._is_due("progress", TELL_SECONDS):
            self.notify(
                f"{self.fold.seq:,} of {records:,} records are read ({self.fold.seq / records:.0%}), "
                f"about {left:.0f} s are left"
            )
        return left

    def _find_previous_report(self) -> Report | None:
        """Return the last report of another learner while this one has not caught up with it.

        Its counts are reported until then: counters that fall look like a restart from zero to Prometheus.
        """
        if not self._has_previous_report:
            self._previous_report = None
            with suppress(LogUnavailable, msgspec.MsgspecError):
                if (newest := self.publications.newer(REPORT, None)) is not None:
                    self._previous_report = msgspec.msgpack.decode(newest[1], type=Report)
                self._has_previous_report = True
        report = self._previous_report
        if report and (report.origin != self._origin or report.counted <= self.fold.seq):
            self._previous_report = None
        return self._previous_report

    def _publish(self, name: str, content: bytes) -> None:
        if not self._lease.token:
            return  # it was lost just now
        with self._publishing.watch(LogUnavailable):
            try:
                self.publications.put(name, content, self._lease.token)
            except LeaseLost as error:
                if self._lease.outbid(error.newer):  # the newer token was of another log
                    self.publications.put(name, content, self._lease.token)
                else:
                    self._lose()

    def _pass_time(self) -> None:
        deadline, now = self.fold.joiner.next_deadline, clock.now()
        if deadline is not None and deadline <= now and self._is_due("tick", TICK_SECONDS):
            self._append(Ticked(), now)

    def _correct_clock(self) -> None:
        now = clock.now()
        is_due = self._clock_check.is_due(self.fold.joiner.time, now)
        if is_due and self._append(ClockCorrected(), now):
            self._clock_check.note_correction()

    def _append(self, record: Ticked | ClockCorrected, now: int) -> bool:
        """Write a record of the clock; return whether it is stored."""
        if not self._lease.token:
            return False  # it was lost just now
        with self._ticking.watch(LogUnavailable):
            try:
                self._lease.append([row_of(record, CLOCK, now)])
                return True
            except LeaseLost:
                self._lose()
        return False

    def _save_if_due(self) -> None:
        is_much = self._learned_seconds > LEARNED_SECONDS and self._is_due("save more", 0.0)
        if self._is_due("save", self.start.checkpoint_seconds, is_first=False) or is_much:
            begun = time.monotonic()
            self._save()
            now = time.monotonic()
            self._due["save more"] = now + SAVE_SHARE * (now - begun)
            self._learned_seconds = 0.0

    def _save(self) -> None:
        fold = self.fold
        is_new = fold.bandit is not None and fold.seq != self._saved
        if self.is_leading and self._is_whole and is_new:
            with self._saving.watch(OSError):
                self._checkpoints.save(fold, self.statistics, self._origin)
                self._saved = fold.seq

    def _is_due(self, what: str, seconds: float, *, is_first: bool = True) -> bool:
        """Return whether a periodic task is due; if so, it is due again after so many seconds."""
        now = time.monotonic()
        due = self._due.setdefault(what, now if is_first else now + seconds)
        if now < due:
            return False
        self._due[what] = now + seconds
        return True


def name_of(data: Path) -> str:
    """Return the name of this process as a learner: the folder of its checkpoints, and its number."""
    return f"{platform.node()}:{data.absolute()}/{os.getpid()}"


def _prepare_model(model: ModelSettings) -> None:
    """Load the kernels that decide; if they had to be compiled, compile those that learn as well.

    The initial model, which every publication is compared with, is made here too: made within the first
    publication, it would delay the next one by SHARE times as long.
    """
    initial_model(model)
    before = seconds_compiled()
    model.warm_up(is_learning=False)
    if seconds_compiled() > before:
        model.warm_up()
