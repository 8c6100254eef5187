"""A front end: it decides with the newest published model, and writes to the log before it answers.

All its state is in the log or published, so it can be killed at any time, and any number can run side by side.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

import rbmle
from rbmle.core.errors import RBMLEError
from rbmle.service.front.decider import Decider, rehearse
from rbmle.service.front.requests import RequestError, RewardRequest, StatusAnswer
from rbmle.service.log.base import Log, LogUnavailable, origin_of
from rbmle.service.log.clock import clock
from rbmle.service.log.publications import DAYS, MODEL, REPORT, Publications, PublicationVersion
from rbmle.service.log.records import Configured, Imported, Modelled, Reset, Ticked
from rbmle.service.log.writer import Outage, Timings, Writer
from rbmle.service.model.heartbeat import SILENT_SECONDS, HeartbeatWatch
from rbmle.service.model.private import FeatureHasher
from rbmle.service.model.published import PublicationReader, Published, initial_model
from rbmle.service.model.report import Report
from rbmle.service.model.settings import (
    ModelSettings,
    WrittenSettings,
    check_rewards,
    reward_range,
    settings_of,
)
from rbmle.service.notices import Notice, by_urgency
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.ranges import Days

LOOK_SECONDS = 0.05  # between two looks at what is published
BEHIND_SECONDS = 60.0  # lag of the learner from which the operator is told
STUCK_SECONDS = 2.0  # without an answer of the log, after which the service is not ready


class NotReadyError(RBMLEError):
    """The learner has not published a model yet."""


class FrontEnd:
    """Decides, and appends to the log. Nothing it has acknowledged is lost, even if it is killed."""

    def __init__(
        self,
        log: Log,
        publications: Publications,
        data: Path,
        commits: Timings | None = None,
        warmed: Callable[[], None] = lambda: None,
        private: FeatureHasher | None = None,
        address: str | None = None,
    ) -> None:
        """Begin to follow the publications beside a log; `data` is the folder of the checkpoints.

        `commits` counts the times of transactions. `warmed` is called when the first model decides, or one
        with new settings, after all code that its decisions need has been loaded. The values of `private`
        features are hashed. `address` is that of the log, for processes that work on it.
        """
        self.private, self.address = private, address
        self.started = datetime.now(UTC)
        self.log = log
        self.data = data
        self.writer = Writer(log, commits)
        self.decider = Decider(
            log, self.writer, self.require_published, lambda: self.report.has_slots, private
        )
        self._settings: WrittenSettings = settings_of(log)  # written; perhaps not published yet
        self.lag_seconds = 0.0  # the age of the oldest record that is not learned
        self._is_closed = False
        self._follower = Follower(log, publications, self._look, _rehearse, warmed)
        self._follower.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is queued, and close the log; closing twice is allowed."""
        if self._is_closed:
            return
        self._is_closed = True
        self.writer.close()
        self._follower.close()
        self.log.close()

    @property
    def published(self) -> Published | None:
        """The newest published model; None if there is none yet."""
        return self._follower.published

    @property
    def report(self) -> Report:
        """The newest report of the learner."""
        return self._follower.report or Report(time=0)

    @property
    def days(self) -> Days:
        """What the learner has counted, day by day."""
        return self._follower.days

    @property
    def notices(self) -> list[Notice]:
        """What the operator should know now, the most urgent first."""
        reported = self.report.notices
        codes = {
            notice.code for notice in reported
        }  # the learner may have seen the same clock jump
        local = [notice for notice in clock.notices if notice.code not in codes]
        return by_urgency([*reported, *local, *self._learner_notices()])

    @property
    def is_learner_up(self) -> bool:
        """Whether the learner has sent a heartbeat recently."""
        heartbeat = self._follower.heartbeat
        is_beating = heartbeat.has_changed and heartbeat.silent_seconds <= SILENT_SECONDS
        return is_beating and not self.report.broken

    @property
    def degraded(self) -> str | None:
        """What is wrong with learning while ranks and rewards are still answered and stored; None: nothing."""
        notices = self._learner_notices()
        return f"{notices[0].title} {notices[0].text}" if notices else None

    def _learner_notices(self) -> list[Notice]:
        report, seconds = self.report, self._follower.heartbeat.silent_seconds
        if seconds > SILENT_SECONDS:
            return [
                Notice(
                    code="learner-silent",
                    level="alarm",
                    title=f"The learner has shown no sign of life for {seconds:.0f} seconds.",
                    text="Decisions use the newest model, and rewards are stored to be learned later. A "
                    "standby takes over if one is running; otherwise start a learner.",
                    since=clock.now() - round(1000 * seconds),
                )
            ]
        if report.is_catching_up:
            left = report.seconds_left
            rest = "" if left is None else f", about {left:,.0f} seconds are left"
            share = report.seq / max(report.records, 1)
            return [
                Notice(
                    code="catching-up",
                    level="info",
                    title=f"The learner is reading the log: {report.seq:,} of {report.records:,} records "
                    f"({share:.0%}){rest}.",
                    text="Decisions use the newest published model, and their probabilities are exact. The "
                    "numbers on this page cover the records read so far.",
                )
            ]
        if self.lag_seconds > BEHIND_SECONDS and report.time:
            return [
                Notice(
                    code="learner-behind",
                    title=f"The learner is {self.lag_seconds:,.0f} seconds behind.",
                    text="Nothing is lost, but decisions use an old model. Give the learner more processor "
                    "time, or choose a cheaper model.",
                )
            ]
        return []

    @property
    def problem(self) -> str | None:
        """Why the service cannot decide and learn now; None if it can."""
        if self.report.broken:
            return "the learner has stopped; its own log says why"
        if self.writer.failure is not None:
            return "the log cannot be written; the service's own log says why"
        since = self.writer.writing_since
        if since is not None and time.monotonic() - since > STUCK_SECONDS:
            return f"the log has not answered for {time.monotonic() - since:.0f} s"
        if self.published is None:
            return "the log is still being read"
        return None

    def written_configuration(self) -> tuple[ServiceConfiguration, int]:
        """Return the newest configuration in the log and its seq, whichever front end wrote it."""
        settings = settings_of(self.log)
        assert settings.configuration is not None  # every log begins with one
        return settings.configuration, settings.configured

    def configure(
        self, configuration: ServiceConfiguration, after: int | None = None
    ) -> "Future[int]":
        """Write a new configuration; decisions follow it once it is stored.

        With `after`, the seq of the configuration that it replaces, the future raises DuplicateRequest if that
        one was replaced already. Raise SettingError for rewards that the policy cannot learn from.
        """
        _check_rewards(self._settings.model, configuration)
        request = None if after is None else f"configuration:{after}"
        stored = self.decider.append(Configured(configuration=configuration.to_json()), request)

        def follow(done: "Future[int]") -> None:
            if done.exception() is None:
                self._settings = replace(
                    self._settings, configuration=configuration, configured=done.result()
                )

        stored.add_done_callback(follow)
        return stored

    def remodel(self, model: ModelSettings) -> "Future[int]":
        """Start another model, which decides once it is published.

        Raise SettingError if it cannot learn from the rewards of this service.
        """
        _check_rewards(model, self._settings.configuration)
        stored = self.decider.append(Modelled(settings=model.to_json()))

        def follow(done: "Future[int]") -> None:
            if done.exception() is None:
                self._settings = replace(self._settings, model=model, seq=done.result())

        stored.add_done_callback(follow)
        return stored

    def check_reward(self, request: RewardRequest) -> None:
        """Raise RequestError for a reward that the policy cannot learn from."""
        if self._settings.model is None:
            return
        policy, configuration = self._settings.model.policy, self._settings.configuration
        low, high = reward_range(policy)
        if configuration is not None and configuration.conservative:
            lowest, highest = configuration.lowest_reward, configuration.highest_reward
            for slot, value in request.values.items():
                if not lowest <= value <= highest:
                    raise RequestError(
                        ("values", slot),
                        f"the reward is {value}; it must be from {lowest:g} to {highest:g}, as "
                        "lowest_reward and highest_reward say, while conservative mode is on",
                    )
        for slot, value in request.values.items():
            if not low <= value <= high:
                raise RequestError(
                    ("values", slot),
                    f"the reward is {value}; it must be from {low:g} to {high:g} for the likelihood of this "
                    f"service's policy, {type(policy).__name__}",
                )

    def reset(self) -> "Future[int]":
        """Start the same model again, without what it has learned."""
        return self.decider.append(Reset())

    def import_model(self, model: bytes) -> "Future[int]":
        """Continue with an exported model; raise FileError if it does not fit."""
        self.model.load(model)
        return self.decider.append(Imported(model=model))

    @property
    def model(self) -> ModelSettings:
        """The settings of the newest model, which decides as soon as it is published."""
        published, settings = self.require_published(), self._settings
        if settings.model is None or settings.seq <= published.seq:
            return published.model
        return settings.model

    def status(self) -> StatusAnswer:
        """Return the state of the service."""
        report, published = self.report, self.published
        learned = max(report.seq, 0 if published is None else published.seq)
        records = max(
            self.writer.last, report.records, learned
        )  # a model may be newer than the report
        return StatusAnswer(
            version=rbmle.__version__,
            records=records,
            learned=learned,
            backlog=records - learned,
            observations=0 if published is None else published.bandit.round,
            deleted=report.deleted,
            erasures=report.erasures,
            oldest=None
            if report.oldest is None
            else datetime.fromtimestamp(report.oldest / 1000, UTC),
        )

    def require_published(self) -> Published:
        """Return the published model with the newest configuration; raise NotReadyError if there is none."""
        published, settings = self._follower.published, self._settings
        if published is None:
            raise NotReadyError("the log is still being read; try again in a moment")
        if settings.configured <= published.seq or settings.configuration is None:
            return published
        return replace(published, configuration=settings.configuration)

    def _look(self) -> None:
        """Follow settings that were written elsewhere, and try the log again after a failed write."""
        with suppress(LogUnavailable):
            settings, known = settings_of(self.log), self._settings
            if max(settings.seq, settings.configured) >= max(known.seq, known.configured):
                self._settings = settings
            self.lag_seconds = self._measure_lag()
        if self.writer.failure is not None and not self.writer.waiting:
            self.decider.append(Ticked())  # there may be no request for a while

    def _measure_lag(self) -> float:
        """Return the age in seconds of the oldest record that is not learned."""
        status = self.status()
        oldest = next(self.log.read(status.learned, 1), None) if status.backlog > 0 else None
        return (
            0.0
            if oldest is None or not oldest.row.time
            else max(0.0, (clock.now() - oldest.row.time) / 1000)
        )


class Follower:
    """A thread that reads the newest published model and report; it calls `between` about once a second.

    A model with new settings is given to `rehearse` before it decides, and `warmed` is called after that.
    """

    def __init__(
        self,
        log: Log,
        publications: Publications,
        between: Callable[[], None],
        rehearse: Callable[[Published], None],
        warmed: Callable[[], None],
    ) -> None:
        self.published: Published | None = None  # None: nothing is published yet
        self.report: Report | None = None
        self.days = Days()
        self.heartbeat = HeartbeatWatch(publications)  # of the learner
        self._log = log
        self._origin = ""  # of the log; unknown while it is empty
        self._publications = publications
        self._models = PublicationReader()
        self._between = between
        self._rehearse = rehearse
        self._warmed = warmed
        self._rehearsed: ModelSettings | None = None
        self._reading = Outage("read what is published")
        self._versions: dict[str, PublicationVersion] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rbmle-follower", daemon=True)

    def start(self) -> None:
        """Look once, then start the thread."""
        self._look()
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, and close the publications."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._publications.close()

    def _run(self) -> None:
        next_time = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            self._look()
            clock.now()  # which notices jumps if it is called often
            if time.monotonic() >= next_time:
                next_time = time.monotonic() + 1.0
                self._between()

    def _look(self) -> None:
        """Read what is new; what cannot be read is tried again at the next look."""
        try:
            self._origin = self._origin or origin_of(self._log)
            if self._origin and (content := self._read_newer(MODEL)) is not None:
                published = self._models.decode(content, self._origin)
                if published is not None and self._is_newer(published):
                    self._take(published)
            if self._origin and self._rehearsed is None:  # while the learner starts
                model = settings_of(self._log).model
                if model is not None:
                    self._prepare(initial_model(model))
            if (content := self._read_newer(REPORT)) is not None:
                is_fresh = self.report is not None  # the first one may be old
                self.report = msgspec.msgpack.decode(content, type=Report)
                if is_fresh:
                    clock.compare(self.report.time)
            self.heartbeat.look()
            if (content := self._read_newer(DAYS)) is not None:
                self.days = msgspec.msgpack.decode(content, type=Days)
        except (LogUnavailable, msgspec.MsgspecError) as error:
            self._reading.note_failure(str(error))
        else:
            self._reading.note_success()

    def _is_newer(self, published: Published) -> bool:
        """Return whether to decide with this model: not with an older one, or one from before an erasure."""
        if self.published is None:
            return True
        if published.origin == self.published.origin:
            return published.seq >= self.published.seq
        self._origin = origin_of(self._log)
        return published.origin == self._origin

    def _take(self, published: Published) -> None:
        """Decide with a model from now on."""
        is_new = self.published is None or self.published.model != published.model
        self._prepare(published)
        self.published = published
        if is_new:
            self._warmed()

    def _prepare(self, published: Published) -> None:
        """Rehearse decisions with a model if its settings are new here."""
        if published.model != self._rehearsed:
            self._rehearsed = published.model
            self._rehearse(published)

    def _read_newer(self, name: str) -> bytes | None:
        newer = self._publications.newer(name, self._versions.get(name))
        if newer is None:
            return None
        self._versions[name], content = newer
        return content


def _rehearse(published: Published) -> None:
    with suppress(Exception):  # the first request meets the same error, and reports it
        rehearse(published)


def _check_rewards(model: ModelSettings | None, configuration: ServiceConfiguration | None) -> None:
    """Raise SettingError if the policy could not learn from some rewards, as far as both are known."""
    if model is not None and configuration is not None:
        check_rewards(model.policy, configuration)
