"""When the learner publishes, reports, writes that time passes and saves: on a clock that tests move."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rbmle import Bandit, LinUCB
from rbmle.service.learner import learner as module
from rbmle.service.learner.checkpoints import Checkpoints
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.learner import LogLearner
from rbmle.service.log import clock as clocks
from rbmle.service.log.base import LogUnavailable, Stored
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.publications import MODEL, REPORT, FilePublications
from rbmle.service.log.records import CLOCK, Record, Rewarded, row_of
from rbmle.service.model import published
from rbmle.service.model.report import Report
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.service.learner.stories import decided
from tests.services import small_start

START = 1_800_000_000  # seconds since the epoch
WAIT = ServiceConfiguration(
    reward_wait_time=timedelta(seconds=5), default_reward=-1.0, settle=Settle.ON_REWARD
)


class Clockwork:
    """Seconds that pass when somebody waits, and not otherwise."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.thread_seconds = 0.0
        self.work_seconds = 0.0  # of the processor, between two looks at `thread_time`
        self.is_stopped = False

    def monotonic(self) -> float:
        return self.seconds

    def thread_time(self) -> float:
        self.thread_seconds += self.work_seconds
        return self.thread_seconds

    def time(self) -> float:
        return START + self.seconds

    def milliseconds(self) -> int:
        return round(1_000 * (START + self.seconds))

    def wait(self, seconds: float) -> bool:
        self.seconds += seconds
        return self.is_stopped

    def is_set(self) -> bool:
        return self.is_stopped


class Log(MemoryLog):
    """A log that can fail to be read."""

    is_unreadable = False

    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        if self.is_unreadable:
            raise LogUnavailable("the disk is gone")
        return super().read(after, limit)


class Slow(FilePublications):
    """Publications whose times are written down, and that may take long, or fail."""

    def __init__(self, folder: Path, clockwork: Clockwork) -> None:
        super().__init__(folder)
        self._clockwork = clockwork
        self.seconds = 0.0  # that the next ones take
        self.is_full = False
        self.times: dict[str, list[float]] = {MODEL: [], REPORT: []}

    def put(self, name: str, content: bytes, token: int | None = None) -> None:
        if self.is_full:
            raise LogUnavailable("no space left")
        super().put(name, content, token)
        if name in self.times:
            self.times[name].append(self._clockwork.seconds)
            self._clockwork.seconds += self.seconds


@dataclass
class Site:
    """A learner that makes a step at a time."""

    clockwork: Clockwork
    log: Log
    publications: Slow
    learner: LogLearner
    told: list[str]

    def tell(self, *records: tuple[str, Record], ahead: float = 0.0) -> None:
        time = self.clockwork.milliseconds() + round(1_000 * ahead)
        self.log.append([row_of(r, event, time) for event, r in records])

    def play(self, event: str) -> None:
        """Decide, and reward it."""
        self.tell((event, decided()), (event, Rewarded(values={"": 1.0})))

    def go_on(self, seconds: float, each: Callable[[], object] = lambda: None) -> None:
        """Let the learner work for so long, and do something before each of its steps."""
        end = self.clockwork.seconds + seconds
        while self.clockwork.seconds < end:
            each()
            self.learner._step()

    def has_failed(self) -> bool:
        return self.learner.failure is not None

    @property
    def ticks(self) -> list[Stored]:
        return [one for one in self.log.read() if one.row.kind == "ticked"]

    @property
    def report(self) -> Report:
        newest = self.publications.newer(REPORT, None)
        assert newest is not None
        return msgspec.msgpack.decode(newest[1], type=Report)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    clockwork = Clockwork()
    monkeypatch.setattr(module, "time", clockwork)
    monkeypatch.setattr(clocks.clock, "_system", clockwork.milliseconds)
    monkeypatch.setattr(clocks.clock, "_steady", clockwork.milliseconds)
    monkeypatch.setattr(clocks.clock, "_shift", None)
    start = replace(small_start(tmp_path, policy=LinUCB()), configuration=WAIT)
    log, publications, told = Log(), Slow(tmp_path, clockwork), list[str]()
    learner = LogLearner(log, publications, start, told.append)
    learner._stop = clockwork  # type: ignore[assignment]  # waiting is what moves the clock
    learner._clock_check = clocks.LogClockCheck(clockwork.milliseconds)
    learner.prepare()
    yield Site(clockwork, log, publications, learner, told)
    learner.release()


def gaps(times: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def test_a_model_is_published_soon_but_not_more_than_ten_times_a_second(site: Site) -> None:
    names = iter(range(1_000))
    site.go_on(3.0, lambda: site.play(f"e{next(names)}"))
    times = site.publications.times[MODEL][1:]  # the first one knew nothing yet
    assert len(times) > 20
    assert min(gaps(times)) >= module.PUBLISH_SECONDS - 1e-9
    assert max(gaps(times)) < 3 * module.PUBLISH_SECONDS


def test_a_model_that_has_not_changed_is_not_published_again(site: Site) -> None:
    site.play("e")
    site.go_on(1.0)
    before = len(site.publications.times[MODEL])
    site.go_on(60.0)
    assert len(site.publications.times[MODEL]) == before


def test_slow_publications_take_one_part_in_twenty_of_the_time(site: Site) -> None:
    names = iter(range(10_000))
    site.publications.seconds = 0.5
    site.go_on(100.0, lambda: site.play(f"e{next(names)}"))
    times = site.publications.times[MODEL][1:]
    assert len(times) > 5
    assert min(gaps(times)) > module.SHARE * 0.5


def test_models_are_published_soon_after_a_restart_though_an_initial_model_takes_long(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Publications are compared with an initial model, which takes 0.8 s to make on a busy machine."""
    names, start_model = iter(range(1_000)), ModelSettings.start
    site.go_on(1.0, lambda: site.play(f"before {next(names)}"))
    site.learner._save()
    site.learner.release()

    def start_slowly(model: ModelSettings) -> Bandit:
        site.clockwork.seconds += 0.8
        return start_model(model)

    published._start.cache_clear()
    monkeypatch.setattr(ModelSettings, "start", start_slowly)
    site.learner = LogLearner(site.log, site.publications, site.learner.start, site.told.append)
    site.learner._stop = site.clockwork  # type: ignore[assignment]
    site.learner.prepare()
    site.publications.times[MODEL].clear()
    site.go_on(3.0, lambda: site.play(f"after {next(names)}"))
    assert max(gaps(site.publications.times[MODEL])) < 3 * module.PUBLISH_SECONDS
    published._start.cache_clear()


def test_reports_come_four_times_a_second_while_there_is_news_and_else_once(site: Site) -> None:
    names = iter(range(1_000))
    site.go_on(5.0, lambda: site.play(f"e{next(names)}"))
    busy = len(site.publications.times[REPORT])
    site.go_on(5.0)
    idle = len(site.publications.times[REPORT]) - busy
    assert 12 <= busy <= 21
    assert 4 <= idle <= 6
    assert site.report.time == pytest.approx(site.clockwork.milliseconds(), abs=1_100)


def test_the_passing_of_time_is_written_only_when_a_deadline_has_passed(site: Site) -> None:
    site.tell(("e", decided()))
    site.go_on(4.5)
    assert site.ticks == []
    site.go_on(1.0)
    (tick,) = site.ticks
    assert tick.row.event == CLOCK
    assert 5_000 <= tick.row.time - 1_000 * START <= 5_300
    site.go_on(1.0)
    assert site.learner.fold.joiner.counts.defaulted == 1
    assert len(site.ticks) == 1


def test_a_log_whose_clock_is_ahead_is_set_back_after_a_minute(site: Site) -> None:
    site.tell(("e", decided()), ahead=3_600.0)
    site.go_on(2.0)
    assert site.report.log_clock_ahead_seconds == pytest.approx(3_600, abs=5)
    assert [notice.code for notice in site.report.notices] == ["log-clock-ahead"]
    site.go_on(clocks.CONFIRM_SECONDS - 5.0)
    assert site.report.clock_corrections == 0
    site.go_on(5.0)
    assert site.report.clock_corrections == 1
    assert site.learner.fold.joiner.time <= site.clockwork.milliseconds()
    site.go_on(6.0)
    assert site.learner.fold.joiner.counts.defaulted == 1


def test_a_checkpoint_is_written_every_minute_if_there_is_something_new(
    site: Site, tmp_path: Path
) -> None:
    checkpoints, seconds = Checkpoints(tmp_path), site.learner.start.checkpoint_seconds
    site.play("e")
    site.go_on(seconds - 1.0)
    assert checkpoints.paths() == []
    site.go_on(2.0)
    (saved,) = checkpoints.paths()
    site.go_on(2 * seconds)
    assert checkpoints.paths() == [saved]


def test_much_learning_is_saved_at_once_but_saving_takes_one_part_in_twenty(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, saved = iter(range(10_000)), list[float]()
    save = Checkpoints.save

    def save_slowly(self: Checkpoints, *states: Any) -> Path:
        saved.append(site.clockwork.seconds)
        site.clockwork.seconds += 0.5
        return save(self, *states)

    monkeypatch.setattr(Checkpoints, "save", save_slowly)
    site.clockwork.work_seconds = 3.0
    site.go_on(30.0, lambda: site.play(f"e{next(names)}"))
    assert saved[0] < 1.0
    assert len(saved) > 1
    assert min(gaps(saved)) > module.SAVE_SHARE * 0.5


def test_a_log_that_cannot_be_read_is_tried_again_and_said_in_the_report(site: Site) -> None:
    site.play("e")
    site.log.is_unreadable = True
    site.go_on(3.0)
    assert site.learner.fold.joiner.counts.decided == 0
    assert site.report.unavailable_since
    assert "the disk is gone" in site.report.unavailable_why
    site.log.is_unreadable = False
    site.go_on(1.5)
    assert not site.has_failed()
    assert not site.report.unavailable_why
    assert site.learner.fold.joiner.counts.decided == 1


def test_what_could_not_be_published_is_published_later(site: Site) -> None:
    site.publications.is_full = True
    site.play("e")
    site.go_on(1.0)
    assert site.has_failed()
    site.publications.is_full = False
    site.play("f")
    site.go_on(1.5)
    assert not site.has_failed()
    assert site.report.observations == 2


def test_a_learner_that_cannot_go_on_says_why_and_lets_go(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fold: Fold, stored: Stored) -> None:
        raise RuntimeError("no such record")

    monkeypatch.setattr(Fold, "take", fail)
    site.play("e")
    with pytest.raises(RuntimeError, match="no such record"):
        site.learner.run()
    assert site.report.broken == "RuntimeError: no such record"
    assert not site.learner.is_leading


def test_a_report_says_that_the_end_of_the_log_is_not_known(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.play("e")
    site.go_on(1.0)

    def fail(log: MemoryLog) -> int:
        raise LogUnavailable("the disk is slow")

    monkeypatch.setattr(Log, "last", fail)
    site.go_on(1.5)
    assert site.report.unavailable_why == "the disk is slow"
    assert site.report.records == site.report.seq


def test_a_lease_that_is_lost_is_noticed_within_half_a_second(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.go_on(1.0)
    leading = [site.learner.is_leading]
    monkeypatch.setattr(type(site.learner._lease), "is_held", lambda lease: False)
    monkeypatch.setattr(type(site.learner._lease), "take", lambda lease, over=None: False)
    site.go_on(module.HELD_SECONDS + 0.2)
    leading.append(site.learner.is_leading)
    assert leading == [True, False]
    assert site.told[-1] == "the lease is lost; another learner may take over"
    before = len(site.publications.times[REPORT])
    site.play("e")
    site.go_on(2.0)
    assert site.learner.fold.seq == site.log.last()  # it stands by, and goes on to learn
    assert len(site.publications.times[REPORT]) == before
