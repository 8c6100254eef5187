"""Retention: old records leave the log, and the model, the statistics and pending events stay."""

import multiprocessing
import os
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from rbmle.service.exports.backup import back_up, restore
from rbmle.service.exports.checks import check_log
from rbmle.service.exports.rows import SettledRows
from rbmle.service.learner.checkpoints import (
    Checkpoints,
    begin_fold,
    check_newest,
    restore_base,
)
from rbmle.service.learner.retention import Retention, cleared_before, retain
from rbmle.service.log import LOG_FILE, Log, open_log, open_publications
from rbmle.service.log.base import LogChanged, Stored
from rbmle.service.log.clock import clock
from rbmle.service.log.records import RETENTION, LogCleared, row_of
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.contract.log_promises import Place
from tests.services import (
    busy,
    learned,
    offer,
    rank,
    reward,
    running,
    small_start,
    wait_until,
)

DAY = 86_400_000
DAYS = 2
KEPT = ServiceConfiguration(log_retention_days=DAYS, settle=Settle.ON_REWARD)


def known(log: Log, after: int | None = None) -> bytes:
    """Return everything that a fold of the log comes to, up to a record."""
    fold, statistics = begin_fold(log, restore_base(log))
    for stored in log.read(fold.seq):
        if after is not None and stored.seq > after:
            break
        fold.apply(stored)
    assert fold.bandit is not None
    others = (fold.settings, fold.joiner.joined, fold.budget, statistics)
    return save_bytes(fold.bandit) + msgspec.json.encode(others)


@pytest.fixture(scope="module", params=["on-reward", "deadline", "delayed"])
def records(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Stored]:
    """Return a log of 200 events; those of the first half are four days old."""
    folder = tmp_path_factory.mktemp("log")
    configuration = replace(KEPT, settle=Settle(request.param))
    with running(small_start(folder, configuration=configuration)) as service:
        busy(service, 100)
        half = service.writer.last
        waiting = rank(service, offer("a", "b", event="waits")).event
        busy(service, 100)
        reward(service, waiting, 1.0)
        learned(service)
        rows = list(service.log.read())
    apart = (
        20_000  # milliseconds, so that most of the old events are settled before the last of them
    )
    return [_moved(s, s.seq * apart - 4 * DAY if s.seq <= half else 0) for s in rows]


def _moved(stored: Stored, by: int) -> Stored:
    return Stored(stored.seq, replace(stored.row, time=stored.row.time + by))


def filled(log: Log, records: list[Stored]) -> Log:
    log.append([stored.row for stored in records])
    return log


def test_old_records_go_and_the_model_stays(place: Place, records: list[Stored]) -> None:
    with closing(filled(place.open(), records)) as log:
        before, size = known(log), log.last()
        seq = retain(log, None, clock.now())
        assert 100 < seq < size - 100
        left = [s.seq for s in log.read()]
        assert len(left) < size - seq + 60  # besides those of the model, and of events that wait
        assert log.base() is not None
        assert known(log) == before
        assert log.verify() == []
        assert check_log(log).problems == []
        assert log.last() == size
        assert retain(log, None, clock.now()) == seq
        assert [s.seq for s in log.read()] == left
    with closing(place.open()) as log:
        assert known(log) == before


def test_an_export_has_what_is_left(place: Place, records: list[Stored]) -> None:
    with closing(filled(place.open(), records)) as log:
        before = [row.stored.row.event for row in SettledRows(log, log.last())]
        retain(log, None, clock.now())
        after = [row.stored.row.event for row in SettledRows(log, log.last())]
        assert after
        assert set(after) < set(before)


def test_without_a_setting_nothing_is_deleted(tmp_path: Path, records: list[Stored]) -> None:
    with closing(open_log(str(tmp_path / LOG_FILE))) as log:
        rows = [s.row for s in records if s.row.kind != "configured"]
        log.append(rows)
        assert retain(log, None, clock.now() + 100 * DAY) == 0
        assert len(list(log.read())) == len(rows)


def _retain_until(path: str, steps: int) -> None:
    """Delete old records, and end as by kill -9 after some steps."""
    left = iter(range(steps))

    def step() -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(open_log(path)) as log:
        retain(log, None, clock.now(), step)


def test_kill_9_at_any_step_leaves_a_whole_log(tmp_path: Path, records: list[Stored]) -> None:
    path, spawn = str(tmp_path / LOG_FILE), multiprocessing.get_context("spawn")
    with closing(filled(open_log(path), records)) as log:
        before, killed = known(log), 0
        for steps in (3, 100, 250, 251, 252, 253):
            process = spawn.Process(target=_retain_until, args=(path, steps))
            process.start()
            process.join()
            killed += process.exitcode == -signal.SIGKILL
            assert log.verify() == []
            assert known(log) == before
        assert killed > 1
        retain(log, None, clock.now())
        assert known(log) == before


def test_it_works_beside_a_service(tmp_path: Path, records: list[Stored]) -> None:
    with closing(filled(open_log(str(tmp_path / LOG_FILE)), records)):
        pass
    with running(small_start(tmp_path, configuration=None)) as service:
        retention = Retention(str(tmp_path / LOG_FILE), tmp_path, lambda: True)
        retention.start()
        while not service.log.extent().deleted:
            busy(service, 5)
        busy(service, 20)
        wait_until(lambda: service.report.deleted)
        learned(service)
        retention.stop()
        live = service.export_model()
    for path in Checkpoints(tmp_path).paths()[1:]:
        path.unlink()
    with closing(open_log(str(tmp_path / LOG_FILE), is_read_only=True)) as log:
        assert check_newest(log, tmp_path) == []
    for path in Checkpoints(tmp_path).paths():
        path.unlink()
    with running(small_start(tmp_path, configuration=None)) as service:
        learned(service)
        assert service.export_model() == live
        assert service.statistics.summary().decisions > 200


def test_a_learner_that_has_not_read_what_is_deleted_begins_at_the_base(
    tmp_path: Path, records: list[Stored]
) -> None:
    path = str(tmp_path / LOG_FILE)
    with closing(filled(open_log(path), records)) as log:
        fold, _ = begin_fold(log, None)
        for stored in log.read(0, 10):
            fold.apply(stored)
        retain(log, None, clock.now())
        rest = log.read(fold.seq)
        with pytest.raises(LogChanged, match="deleted"):
            fold.apply(next(rest))


def test_clearing_the_log_keeps_the_model(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 50)
        learned(service)
        service.decider.append(LogCleared()).result(60)
        learned(service)
        live = service.export_model()
        log = service.log
        assert cleared_before(log) == service.writer.last - 1
        assert retain(log, tmp_path, clock.now()) == service.writer.last - 1
        kinds = {stored.row.kind for stored in log.read()}
        assert "rewarded" not in kinds
        busy(service, 5)
        learned(service)
    for path in Checkpoints(tmp_path).paths():
        path.unlink()
    with closing(open_log(str(tmp_path / LOG_FILE), is_read_only=True)) as log:
        assert known(log, cleared_before(log) + 1)[: len(live)] == live


def test_a_backup_restores_what_is_left(tmp_path: Path, records: list[Stored]) -> None:
    folder = tmp_path / "a"
    with closing(filled(open_log(str(folder / LOG_FILE)), records)) as log:
        retain(log, None, clock.now())
        before, rows = known(log), list(log.read())
        with closing(open_publications(str(folder / LOG_FILE))) as publications:
            back_up(log, publications, folder, tmp_path / "b.backup")
    restore(tmp_path / "b.backup", tmp_path / "b")
    with closing(open_log(str(tmp_path / "b" / LOG_FILE))) as log:
        assert list(log.read()) == rows
        assert known(log) == before
        assert log.append([row_of(LogCleared(), RETENTION, 0)]) == rows[-1].seq + 1
