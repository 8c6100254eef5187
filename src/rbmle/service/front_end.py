"""A front end: it decides with the newest published model, and writes to the log before it answers.

It holds nothing that is not in the log or published: kill it, start ten.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import rbmle
from rbmle.core.errors import RBMLEError
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.deciding.decider import Decider, answer_of, rehearse
from rbmle.service.deciding.follower import Follower
from rbmle.service.deciding.requests import EventAnswer, RequestError, RewardRequest, StatusAnswer
from rbmle.service.learning.checkpoints import folded
from rbmle.service.learning.events import Pending, Settled
from rbmle.service.learning.heartbeat import SILENT_SECONDS
from rbmle.service.learning.joining import Joiner
from rbmle.service.learning.model import ModelSettings, saved
from rbmle.service.learning.published import Published
from rbmle.service.learning.report import Report
from rbmle.service.learning.reward_range import check_rewards, reward_range
from rbmle.service.learning.start import WrittenSettings, settings_of
from rbmle.service.log.base import Log, Row, Stored
from rbmle.service.log.clock import clock
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.log.publications import Publications
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
from rbmle.service.log.timings import Timings
from rbmle.service.log.writer import Writer
from rbmle.service.notices import Notice, by_urgency
from rbmle.service.statistics.days import Days

BEHIND_SECONDS = 60.0  # that a record may wait to be learned before the operator is told
STUCK_SECONDS = 2.0  # after which a log that does not answer is a problem


class NotReadyError(RBMLEError):
    """A service whose learner has published nothing yet."""


class FrontEnd:
    """Decides, and appends to the log; `close` it, or kill it: nothing acknowledged is lost."""

    def __init__(
        self,
        log: Log,
        publications: Publications,
        data: Path,
        commits: Timings | None = None,
        warmed: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin to follow what is published beside a log; in `data` there may be checkpoints.

        Times of transactions are counted in `commits`. `warmed` is called when a model decides for the first
        time, or one of other settings, and all that its decisions need is loaded.
        """
        self.started = datetime.now(UTC)
        self.log = log
        self.data = data
        self.writer = Writer(log, commits)
        self.decider = Decider(log, self.writer, self._published, self._has_slots)
        self._settings: WrittenSettings = settings_of(log)  # written, and perhaps not published yet
        self.lag_seconds = 0.0  # for how long the oldest record that is not learned has waited
        self._is_closed = False
        self._follower = Follower(log, publications, self._look, _rehearse, warmed)
        self._follower.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is queued, and let go; a second time does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self.writer.close()
        self._follower.close()
        self.log.close()

    @property
    def published(self) -> Published | None:
        """Return what the learner published last; None if it has published nothing yet."""
        return self._follower.published

    @property
    def report(self) -> Report:
        """Return what the learner told last."""
        return self._follower.report or Report(time=0)

    @property
    def days(self) -> Days:
        """Return what the learner has counted day by day."""
        return self._follower.days

    @property
    def notices(self) -> list[Notice]:
        """Return what the operator should know now, the most urgent first."""
        theirs = self.report.notices
        known = {notice.code for notice in theirs}  # the learner may have seen the same jump
        mine = [notice for notice in clock.notices if notice.code not in known]
        configuration = self._settings.configuration
        unused = [] if configuration is None else configuration.notices
        return by_urgency([*theirs, *mine, *self._learner_notices(), *unused])

    @property
    def is_learner_up(self) -> bool:
        """Return whether the learner was seen to beat just now."""
        heartbeat = self._follower.heartbeat
        is_beating = heartbeat.has_changed and heartbeat.silent_seconds <= SILENT_SECONDS
        return is_beating and not self.report.broken

    @property
    def degraded(self) -> str | None:
        """Return what is wrong while ranks and rewards are answered and stored all the same; None: nothing."""
        notices = self._learner_notices()
        return f"{notices[0].title} {notices[0].text}" if notices else None

    def _learner_notices(self) -> list[Notice]:
        """Return what the operator should know of the learner."""
        report, seconds = self.report, self._follower.heartbeat.silent_seconds
        if seconds > SILENT_SECONDS:
            return [
                Notice(
                    code="learner-silent",
                    level="alarm",
                    title=f"The learner has shown no sign of life for {seconds:.0f} seconds.",
                    text="Decisions use the newest model, and rewards are stored and learned later. If a "
                    "standby runs, it takes over; else start a learner again.",
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
                    title=f"The learner reads the log: {report.seq:,} of {report.records:,} records "
                    f"({share:.0%}){rest}.",
                    text="Decisions use the newest model that there is, and their probabilities are exact. "
                    "Numbers here are those of the records that were read.",
                )
            ]
        if self.lag_seconds > BEHIND_SECONDS and report.time:
            return [
                Notice(
                    code="learner-behind",
                    title=f"The learner is {self.lag_seconds:,.0f} seconds behind.",
                    text="Nothing is lost, but decisions use an old model. See that the learner has enough "
                    "of a processor, or choose a cheaper model.",
                )
            ]
        return []

    @property
    def problem(self) -> str | None:
        """Return why the service cannot decide and learn now, or None."""
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
        """Return the newest configuration of the log, whoever wrote it, and its seq."""
        found = settings_of(self.log)
        assert found.configuration is not None  # every log begins with one
        return found.configuration, found.configured

    def configure(
        self, configuration: ServiceConfiguration, after: int | None = None
    ) -> "Future[int]":
        """Write a new configuration; decisions here follow it once it is stored.

        With the seq of the one that it is to follow, it is a DuplicateRequest if another one does already.
        Raise SettingError for rewards that the policy cannot learn from.
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
        """Begin another model; it is that of the service once it is stored, and decides once published.

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
        policy = self._settings.model.policy
        low, high = reward_range(policy)
        for slot, value in request.values.items():
            if not low <= value <= high:
                raise RequestError(
                    ("values", slot),
                    f"the reward is {value}; it must be from {low:g} to {high:g} for the likelihood of this "
                    f"service's policy, {type(policy).__name__}",
                )

    def reset(self) -> "Future[int]":
        """Begin the same model anew."""
        return self.decider.append(Reset())

    def import_model(self, model: bytes) -> "Future[int]":
        """Go on with a model that was exported before, or raise FileError."""
        self.model.load(model)
        return self.decider.append(Imported(model=model))

    def export_model(self) -> bytes:
        """Return the model after the last record: that of the newest checkpoint, and of what came since."""
        self._published()  # else there is none
        bandit = folded(self.log, self.data).bandit
        assert bandit is not None
        return saved(bandit)

    @property
    def model(self) -> ModelSettings:
        """Return the settings of the last model that was begun; as soon as it is published, it decides."""
        published, settings = self._published(), self._settings
        if settings.model is None or settings.seq <= published.seq:
            return published.model
        return settings.model

    def status(self) -> StatusAnswer:
        """Return how the service is."""
        report, published = self.report, self.published
        records = max(self.writer.last, report.records)
        learned = max(report.seq, 0 if published is None else published.seq)
        return StatusAnswer(
            version=rbmle.__version__,
            records=records,
            learned=learned,
            backlog=records - learned,
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
            time=_date(decision.row.time),
            is_active=not decided.deferred or any(s.row.kind == "activated" for s in rows),
            rewards=joined.rewards | waiting,
            is_closed=pending is None,
            deadline=None if pending is None else _date(pending.deadline),
        )

    def _has_slots(self) -> bool:
        """Return whether some front end has decided an event with slots, as far as the learner knows."""
        return self.report.has_slots

    def _published(self) -> Published:
        """Return what decides: what is published, with the configuration that was written since."""
        published, settings = self._follower.published, self._settings
        if published is None:
            raise NotReadyError("the log is still being read; try again in a moment")
        if settings.configured <= published.seq or settings.configuration is None:
            return published
        return replace(published, configuration=settings.configuration)

    def _look(self) -> None:
        """Follow what the operator wrote elsewhere; and try a log again that took nothing."""
        with suppress(LogUnavailable):
            found = settings_of(self.log)
            if max(found.seq, found.configured) >= max(
                self._settings.seq, self._settings.configured
            ):
                self._settings = found
            self.lag_seconds = self._lag()
        if self.writer.failure is not None and not self.writer.waiting:
            self.decider.append(Ticked())  # nobody else may ask for a while

    def _lag(self) -> float:
        """Return for how many seconds the oldest record that is not learned has waited."""
        status = self.status()
        oldest = next(self.log.read(status.learned, 1), None) if status.backlog > 0 else None
        return 0.0 if oldest is None else max(0.0, (clock.now() - oldest.row.time) / 1000)


def _rehearse(published: Published) -> None:
    """Make ready for a model of new settings, so that the first who ask need not wait."""
    with suppress(Exception):  # whatever it is, the first request meets it again, and tells
        rehearse(published)


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

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Learn nothing."""

    def leave(self, event: str, pending: Pending) -> None:
        """Forget an event that was not shown."""


def _check_rewards(model: ModelSettings | None, configuration: ServiceConfiguration | None) -> None:
    """Raise SettingError if events could be worth what a policy cannot learn from, as far as both are known."""
    if model is not None and configuration is not None:
        check_rewards(model.policy, configuration)


def _now() -> Stored:
    """Return a record that says how late it is."""
    ticked = Ticked()
    return Stored(1, Row(kind_of(ticked), "", None, clock.now(), encoded(ticked)))


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
