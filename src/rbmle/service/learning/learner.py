"""The learner: it folds the log into the model, and publishes what decides.

One works at a time, the one with the lease. Others stand by: they fold the same log, publish nothing, and
take over when the lease is free, or when its holder does not beat any more (`heartbeat`).
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning import published as publication
from rbmle.service.learning.checkpoints import Checkpoints, Restored, origin_of
from rbmle.service.learning.fold import Fold
from rbmle.service.learning.heartbeat import Heart, HeartbeatWatch
from rbmle.service.learning.model import ModelSettings
from rbmle.service.learning.preparing import prepared
from rbmle.service.learning.published import Published
from rbmle.service.learning.report import (
    DAYS,
    DAYS_SECONDS,
    Report,
    losing_notices,
    reset_notices,
    reset_times,
)
from rbmle.service.learning.standing_by import FREE_SECONDS, REPORT, Standby, name_of
from rbmle.service.learning.start import Start, WrittenSettings, begin, settings_of
from rbmle.service.log.base import Log, Row, Stored
from rbmle.service.log.clock import LogClockCheck, clock
from rbmle.service.log.errors import LeaseLost, LogUnavailable
from rbmle.service.log.outage import Failure, Outage
from rbmle.service.log.publications import Publications
from rbmle.service.log.records import CLOCK, ClockCorrected, Ticked, encoded, kind_of
from rbmle.service.statistics import Statistics
from rbmle.service.statistics.recent import WindowLift, window_lifts

MODEL = "model"  # the name of the publication

BATCH = 256  # records that are read at a time
TOGETHER = 64  # records that are learned between two looks at the clock
PUBLISH_SECONDS = 0.1  # at least, between two publications
SHARE = 20  # publications take no more than one part in this many of the time
POLL_SECONDS = 0.1  # between two looks for new records
REPORT_SECONDS = 0.25  # between two reports, if there is something new
TICK_SECONDS = 1.0  # between two records of the clock, and two reports at most
HELD_SECONDS = 0.5  # between two looks whether the lease is still held
RETRY_SECONDS = 0.2
LEARNED_SECONDS = 2.0  # of learning, which a standby would do again: then there is a checkpoint
MANY = 1_000  # records that were there before: front ends are told how far the learner is
TELL_SECONDS = 10.0  # between two lines that say how far it is
SAVE_SHARE = 20  # such checkpoints take no more than one part in this many of the time


class LogLearner:
    """Folds what is in the log, one record after the other, until it is told to stop."""

    def __init__(
        self, log: Log, publications: Publications, start: Start, notify: Callable[[str], None]
    ) -> None:
        """Make it; `run` does the work. `notify` is given each line for the operator."""
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
        self._heart = Heart(publications, name_of(start.data), self._progress)
        self._heartbeat = HeartbeatWatch(publications)  # of who leads
        self._steps = 0  # of `run`
        self._clock_check = LogClockCheck()
        self._checkpoints = Checkpoints(start.data)
        self._stop = threading.Event()
        self._is_caught_up = False  # it has seen the whole log once, or what was learned before
        self._is_reading_past = True  # it has not yet reached the end of the log since its start
        self._begun = (0, time.monotonic())  # the record after which it started, and when
        self._may_publish_from = (
            0  # the record from which on a model is newer than the published one
        )
        self._is_whole = True  # False: the log could not be read in the midst of a record
        self._known: tuple[int, Bandit | None, ServiceConfiguration | None] = (-1, None, None)
        self._reported = -1  # the seq of the last report
        self._shown: Report | None = None  # by a learner before this one, which knew more
        self._knows_shown = False  # it was looked up since this one leads
        self._saved = 0  # the seq of the last checkpoint
        self._learned_seconds = 0.0  # since then
        self._log_bytes = 0
        self._lifts: list[WindowLift] = []  # over the baseline action
        self._resets = 0  # of the model, that the operator was told of
        self._origin = ""  # of the log
        self._due: dict[str, float] = {}  # when something is to be done again

    @property
    def failure(self) -> Failure | None:
        """Return since when and why something cannot be done; None if all can."""
        outages = (self._reading, self._ticking, self._publishing, self._saving)
        return next((outage.failure for outage in outages if outage.failure is not None), None)

    def stop(self) -> None:
        """End `run` after the record at hand."""
        self._stop.set()

    def run(self) -> None:
        """Learn until stopped; if that cannot go on, say why and raise."""
        try:
            while not self._stop.is_set():
                self._go_on()
            self._save()
        except Exception as error:
            self._report(broken=f"{type(error).__name__}: {error}")
            raise
        finally:
            self.release()

    def release(self) -> None:
        """Let another learner have the lease, at once."""
        self._heart.stop()
        self.is_leading = False
        self._lease.release()

    def stand_by(self, *, is_spare: bool) -> None:
        """Wait for the lease, with kernels at hand and nothing learned; `prepare` has to follow."""
        waiting = Standby(
            self.log,
            self.publications,
            self._lease,
            self._heartbeat,
            self._stop,
            self._checkpoints,
            self.notify,
        )
        waiting.wait(self._lead, is_spare=is_spare)

    def prepare(self) -> None:
        """Wait until there is something to learn from, and go on from a checkpoint; `run` has to follow."""
        while not (self.is_leading or self._lead() or self.log.last()):
            if self._stop.wait(RETRY_SECONDS):
                return
        if self._stop.is_set():
            return
        self._origin = origin_of(self.log)
        settings = settings_of(self.log)
        assert settings.model is not None  # every log begins with one
        if settings.model.notice is not None:
            self.notify(settings.model.notice)
        found = prepared(self.log, settings.model, self._checkpoints, self.notify)
        if found is not None and found.state is not None and found.bandit is not None:
            self._resume(found, settings)
        self._begun = (self.fold.seq, time.monotonic())
        self._may_publish_from = max(settings.seq, known := self._published_seq())
        if known < 0 and self.fold.seq < settings.seq:  # until something is learned
            untaught = publication.untaught(settings.model, settings.configuration)
            self._put(MODEL, publication.encode(untaught, self._origin))

    def _published_seq(self) -> int:
        """Return the last record that the published model knows; -1 if none of this log is published."""
        try:
            found = self.publications.newer(MODEL, None)
            seq = -1 if found is None else publication.seq_of(found[1], self._origin)
            return seq if seq <= self.log.last() else -1
        except (LogUnavailable, msgspec.MsgspecError):
            return -1

    def _lead(self, over: int | None = None) -> bool:
        """Take the lease if it is free; who has it writes what a log begins with.

        `over` is the fencing token of a learner that hangs, and is taken over.
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
        self._knows_shown = False
        self.is_leading = True
        return True

    def _lose(self) -> None:
        """Stand by from now on."""
        self.release()
        self.notify("the lease is lost; another learner may take over")

    def _progress(self) -> tuple[int, ...]:
        """Return what changes while the learner works."""
        joiner, bandit = self.fold.joiner, self.fold.bandit
        return (self._steps, joiner.seq, len(joiner.pending), 0 if bandit is None else bandit.round)

    def _resume(self, found: Restored, settings: WrittenSettings) -> None:
        """Go on from a checkpoint, as if never stopped."""
        state, bandit = found.state, found.bandit
        assert state is not None
        assert bandit is not None
        self.statistics = state.statistics
        self.fold = Fold(log=self.log, make=ModelSettings.from_json, watcher=self.statistics)
        self.fold.resume(state.settings, bandit, state.joined, state.budget)
        self._saved = self.fold.seq
        self._is_caught_up = settings.seq <= self.fold.seq
        self._resets = bandit.resets

    def _go_on(self) -> None:
        """Learn what came, and publish it, and save it now and then."""
        clock.now()  # which sees jumps if it is asked often
        self._steps += 1
        try:
            is_behind = self._learn()
            self._reading.worked()
        except LogUnavailable as error:
            self._reading.failed(str(error))
            is_behind = False
        if not is_behind and self._reading.failure is None:
            self._is_caught_up, self._is_reading_past = True, False
        self._keep_lease()
        if self.is_leading:
            self._save_if_due()
            self._publish_if_due()
            self._report_if_due()
            if not is_behind and self._reading.failure is None:
                self._pass_time()
                self._correct_clock()
        if not is_behind:
            self._stop.wait(POLL_SECONDS if self._reading.failure is None else RETRY_SECONDS)

    def _learn(self) -> bool:
        """Take in some records; return whether there may be more."""
        records = list(self.log.read(self.fold.seq, BATCH))
        for at in range(0, len(records), TOGETHER):
            self._take(records[at : at + TOGETHER])
            if self.is_leading:
                self._publish_if_due()
        return len(records) == BATCH and not self._stop.is_set()

    def _take(self, records: list[Stored]) -> None:
        """Take in records, and learn what they settle."""
        begun = time.thread_time()
        try:
            for stored in records:
                self._is_whole = False
                self.fold.take(stored)
                self._is_whole = True
        finally:
            self.fold.learn()
            self._learned_seconds += time.thread_time() - begun
            self._tell_resets()

    def _tell_resets(self) -> None:
        """Tell the operator of drift alarms, but not of those that the log had before this start."""
        bandit = self.fold.bandit
        resets = 0 if bandit is None else bandit.resets
        if bandit is not None and resets > self._resets and self._is_caught_up:
            self.notify(f"{bandit.events[-1]}; the model has started again, see docs/drift.md")
        self._resets = resets

    def _keep_lease(self) -> None:
        """Take over if nobody leads and there is nothing to catch up on; stand by if the lease is lost."""
        if not self._is_due("lease", HELD_SECONDS if self.is_leading else FREE_SECONDS):
            return
        if self.is_leading:
            if not self._lease.is_held():
                self._lose()
            return
        with suppress(LogUnavailable):
            self._heartbeat.look()
        if self._is_caught_up and (self._lead() or self._lead_over_silent()):
            self.notify("this learner has the lease now, and publishes")

    def _lead_over_silent(self) -> bool:
        """Take over from a learner that does not beat any more."""
        token = self._heartbeat.silent_token()
        return token is not None and self._lead(over=token)

    def _publish_if_due(self) -> None:
        """Publish what decides, if it has changed, often but not too often."""
        fold = self.fold
        if fold.bandit is None or fold.seq < self._may_publish_from:
            return
        state = (fold.bandit.round, fold.bandit, fold.joiner.configuration)
        if state == self._known or not self._is_due("publish", PUBLISH_SECONDS):
            return
        assert isinstance(fold.model, ModelSettings)
        begun = time.monotonic()
        published = Published(
            model=fold.model,
            bandit=fold.bandit.snapshot(),
            configuration=fold.joiner.configuration,
            seq=fold.seq,
            time=fold.joiner.time,
        )
        self._put(MODEL, publication.encode(published, self._origin))
        self._known = state
        seconds = time.monotonic() - begun
        self._due["publish"] = time.monotonic() + max(PUBLISH_SECONDS, SHARE * seconds)

    def _report_if_due(self) -> None:
        """Report what is new, and now and then that there is nothing."""
        seconds = REPORT_SECONDS if self._reported != self.fold.seq else TICK_SECONDS
        if time.monotonic() >= self._due.get("report", 0.0) + seconds:
            self._due["report"] = time.monotonic()
            self._report()

    def _report(self, broken: str = "") -> None:
        """Say how it is; if nobody can be notify, the next time will do."""
        fold, failure = self.fold, self.failure
        records = fold.seq
        try:
            records = self.log.last()
            if self._is_due("size", TICK_SECONDS):
                self._log_bytes = self.log.size()
        except LogUnavailable as error:
            failure = failure or Failure(time.time(), str(error))
        shown, now = self._shown_before(), clock.now()
        summary = self.statistics.summary(now) if shown is None else shown.summary
        if self._is_due("lifts", TICK_SECONDS):
            self._lifts = window_lifts(summary, summary.ranges)
        report = Report(
            time=now,
            origin=self._origin,
            seq=fold.seq,
            counted=fold.seq if shown is None else shown.counted,
            records=records,
            observations=0 if fold.bandit is None else fold.bandit.round,
            is_catching_up=self._is_reading_past and records > fold.seq + MANY,
            seconds_left=self._seconds_left(records),
            pending=len(fold.joiner.pending),
            counts=fold.joiner.counts if shown is None else shown.counts,
            summary=summary,
            lifts=self._lifts,
            log_bytes=self._log_bytes,
            unavailable_since=None if failure is None else int(failure.since * 1000),
            unavailable_why="" if failure is None else failure.why,
            broken=broken,
            has_slots=fold.has_slots,
            resets=0 if fold.bandit is None else fold.bandit.resets,
            reset_times=[] if fold.bandit is None else reset_times(fold.bandit),
            log_clock_ahead_seconds=self._clock_check.ahead_seconds,
            clock_corrections=self._clock_check.corrections,
            notices=[
                *losing_notices(self._lifts),
                *self._clock_check.notices,
                *clock.notices,
                *([] if fold.bandit is None else reset_notices(fold.bandit, now)),
            ],
            learner=name_of(self.start.data),
        )
        self._put(REPORT, msgspec.msgpack.encode(report))
        self._reported = fold.seq
        if self._is_due("days", DAYS_SECONDS):
            self._put(DAYS, msgspec.msgpack.encode(self.statistics.ranges.by_day()))

    def _seconds_left(self, records: int) -> float | None:
        """Return for how long it will read what was there at its start; None if that is done, or not known.

        The operator is told now and then.
        """
        first, begun = self._begun
        done, seconds = self.fold.seq - first, time.monotonic() - begun
        if not self._is_reading_past or seconds < TELL_SECONDS / 5 or done <= 0:
            return None
        left = seconds * (records - self.fold.seq) / done
        if self._is_due("tell of the past", TELL_SECONDS):
            self.notify(
                f"{self.fold.seq:,} of {records:,} records are read ({self.fold.seq / records:.0%}), "
                f"about {left:.0f} s are left"
            )
        return left

    def _shown_before(self) -> Report | None:
        """Return the last report of another learner while this one has not caught up with it.

        Its counts are reported until then: counters that fall look like a restart from zero to Prometheus.
        """
        if not self._knows_shown:
            try:
                found = self.publications.newer(REPORT, None)
                self._shown = msgspec.msgpack.decode(found[1], type=Report) if found else None
                self._knows_shown = True
            except (LogUnavailable, msgspec.MsgspecError):
                self._shown = None
        shown = self._shown
        if shown is not None and (shown.origin != self._origin or shown.counted <= self.fold.seq):
            shown = self._shown = None
        return shown

    def _put(self, name: str, content: bytes) -> None:
        """Publish; if that cannot be done now, it is done with what comes next."""
        if not self._lease.token:
            return  # it was lost just now
        try:
            try:
                self.publications.put(name, content, self._lease.token)
            except LeaseLost as error:
                if not self._lease.outbid(error.newer):  # else it was left by another log
                    self._lose()
                    return
                self.publications.put(name, content, self._lease.token)
            self._publishing.worked()
        except LogUnavailable as error:
            self._publishing.failed(str(error))

    def _pass_time(self) -> None:
        """Write that time has passed, if something waits for that."""
        deadline, now = self.fold.joiner.next_deadline, clock.now()
        if deadline is not None and deadline <= now and self._is_due("tick", TICK_SECONDS):
            self._append(Ticked(), now)

    def _correct_clock(self) -> None:
        """Set the log's clock back if it stays ahead of the wall clock."""
        now = clock.now()
        is_due = self._clock_check.is_due(self.fold.joiner.time, now)
        if is_due and self._append(ClockCorrected(), now):
            self._clock_check.corrected()

    def _append(self, record: Ticked | ClockCorrected, now: int) -> bool:
        """Write a record of the clock; return whether it is stored."""
        if not self._lease.token:
            return False  # it was lost just now
        try:
            self._lease.append([Row(kind_of(record), CLOCK, None, now, encoded(record))])
        except LogUnavailable as error:
            self._ticking.failed(str(error))
            return False
        except LeaseLost:
            self._lose()
            return False
        self._ticking.worked()
        return True

    def _save_if_due(self) -> None:
        is_much = self._learned_seconds > LEARNED_SECONDS and self._is_due("save more", 0.0)
        if self._is_due("save", self.start.checkpoint_seconds, is_first=False) or is_much:
            begun = time.monotonic()
            self._save()
            now = time.monotonic()
            self._due["save more"] = now + SAVE_SHARE * (now - begun)
            self._learned_seconds = 0.0

    def _save(self) -> None:
        """Write a checkpoint; if the disk does not take it, the next one will do."""
        fold = self.fold
        if not self.is_leading or not self._is_whole:
            return
        if fold.bandit is None or fold.seq == self._saved:
            return
        try:
            self._checkpoints.save(fold, self.statistics)
        except OSError as error:
            self._saving.failed(str(error))
        else:
            self._saving.worked()
            self._saved = fold.seq

    def _is_due(self, what: str, seconds: float, *, is_first: bool = True) -> bool:
        """Return whether so much time has passed since something was due; if so, it begins anew."""
        now = time.monotonic()
        due = self._due.setdefault(what, now if is_first else now + seconds)
        if now < due:
            return False
        self._due[what] = now + seconds
        return True
