"""Erasure: a person's events leave the log, and the model is one that never saw them, to the byte."""

import json
import multiprocessing
import os
import signal
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from rbmle.core.errors import SettingError
from rbmle.service.exports.erasing import (
    Condition,
    ErasureError,
    EventSearch,
    Older,
    erase,
    erase_in_process,
    rebuild,
)
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.learner.checkpoints import Checkpoints, begin_fold, check_newest, restore_base
from rbmle.service.learner.retention import retain
from rbmle.service.log import LOG_FILE, Log, open_log, open_publications
from rbmle.service.log.base import Extent, Stored, origin_of
from rbmle.service.log.clock import clock
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.publications import MODEL
from rbmle.service.log.sqlite import SQLiteLog
from rbmle.service.model.published import PublicationReader
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.contract.log_promises import Place
from tests.services import busy, learned, offer, rank, reward, running, small_start, wait_until

DAY = 86_400_000
PERSON = EventSearch([Condition("who", "v")], None)  # a third of the events of `busy`


def known(log: Log) -> bytes:
    """Return the model, the budget and the statistics that a log comes to."""
    fold, statistics = begin_fold(log, restore_base(log))
    for stored in log.read(fold.seq):
        fold.apply(stored)
    assert fold.bandit is not None
    return save_bytes(fold.bandit) + msgspec.json.encode((fold.budget, statistics))


@pytest.fixture(scope="module", params=["on-reward", "deadline", "delayed"])
def records(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Stored]:
    """Return a log of 90 events, 20 seconds apart, so that most are settled."""
    configuration = ServiceConfiguration(settle=Settle(request.param), log_retention_days=2)
    folder = tmp_path_factory.mktemp("log")
    with running(small_start(folder, configuration=configuration)) as service:
        busy(service, 90)
        learned(service)
        rows = list(service.log.read())
    return [aged(stored, stored.seq * 20_000) for stored in rows]


def aged(stored: Stored, by: int) -> Stored:
    row = stored.row
    return Stored(
        stored.seq, type(row)(row.kind, row.event, row.request, row.time + by, row.payload)
    )


def filled(log: Log, records: list[Stored]) -> Log:
    log.append([stored.row for stored in records])
    return log


def without(records: list[Stored]) -> list[Stored]:
    """Return the records of a log that never saw the person."""
    theirs = {s.row.event for s in records if s.row.kind == "decided" and PERSON.matches(s)}
    assert len(theirs) == 30
    return [s for s in records if s.row.event not in theirs]


def test_the_model_is_one_that_never_saw_the_person(place: Place, records: list[Stored]) -> None:
    never = known(filled(MemoryLog(), without(records)))
    with closing(filled(place.open(), records)) as log:
        assert known(log) != never
        done = erase(log, PERSON, is_dry_run=True)
        assert known(log) != never
        assert log.extent() == Extent()
        assert erase(log, PERSON) == done
        assert (done.events, done.records) == (30, len(records) - len(without(records)))
        assert known(log) == never
        assert log.verify() == []
        assert erase(log, PERSON).records == 0
        assert log.extent() == Extent(0, 1)
    with closing(place.open()) as log:
        assert known(log) == never


def test_nothing_of_the_person_stays_in_the_folder(tmp_path: Path) -> None:
    secret = "a-person-7f3a"
    with running(small_start(tmp_path)) as service:
        busy(service, 30)
        for i in range(20):
            event = rank(service, offer("a", "b", who=secret)).event
            reward(service, event, float(i % 2))
            assert event
        learned(service)
    path = tmp_path / LOG_FILE
    assert secret.encode() in path.read_bytes()
    with closing(open_log(str(path))) as log:
        done = erase(log, EventSearch([Condition("who", secret)], None))
        assert (done.events, done.records) == (20, 40)
        for file in (path, path.with_name("log.db-wal")):
            assert secret.encode() not in file.read_bytes()
        with closing(open_publications(str(path))) as publications:
            assert rebuild(log, tmp_path, publications, lambda seq: None)
            newest = publications.newer(MODEL, None)
        assert newest is not None
        published = PublicationReader().decode(newest[1], origin_of(log))
        assert published is not None
        assert published.origin == origin_of(log)
        assert len(Checkpoints(tmp_path).paths()) == 1  # those from before are deleted
        assert check_newest(log, tmp_path) == []
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_running_service_decides_on_and_learns_again(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 60)
        learned(service)
        before = service.published
        origin = origin_of(service.log)
        with closing(open_log(str(tmp_path / LOG_FILE))) as other:
            assert erase(other, PERSON).events == 20
        assert rank(service, offer("a", "b")).chosen
        wait_until(lambda: service.published is not before)
        learned(service)
        assert service.published is not None
        assert service.published.origin == origin_of(service.log) != origin
        wait_until(lambda: service.report.erasures == 1)
        busy(service, 10)
        learned(service)
        live = service.export_model()
        assert service.event("nobody") is None
        rows = [s for s in service.log.read() if s.row.kind != "erased"]
    fold, _ = begin_fold(filled(MemoryLog(), rows), None)
    for stored in fold.log.read():
        fold.apply(stored)
    assert fold.bandit is not None
    assert save_bytes(fold.bandit) == live
    with running(small_start(tmp_path)) as service:
        learned(service)
        assert service.export_model() == live


def test_a_front_end_that_starts_meanwhile_uses_the_model_from_before(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 30)
        learned(service)
    path = str(tmp_path / LOG_FILE)
    with closing(open_log(path)) as log:
        erase(log, PERSON)
    with FrontEnd(open_log(path), open_publications(path), tmp_path) as front:
        assert front.published is not None
        assert front.problem is None
        with closing(open_log(path)) as log, closing(open_publications(path)) as publications:
            assert rebuild(log, tmp_path, publications, lambda seq: None)
            origin = origin_of(log)
        wait_until(lambda: front.published is not None and front.published.origin == origin)


def retained(log: Log, records: list[Stored]) -> Log:
    """Fill a log with records of which the first half is too old, and delete these."""
    half = len(records) // 2
    log.append([(aged(s, -9 * DAY) if s.seq <= half else s).row for s in records])
    assert retain(log, None, clock.now()) == half
    return log


def test_after_retention_the_caller_decides(place: Place, records: list[Stored]) -> None:
    with closing(retained(place.open(), records)) as log:
        before = known(log)
        with pytest.raises(ErasureError, match="--older keep"):
            erase(log, PERSON)
        assert known(log) == before
        done = erase(log, PERSON, older=Older.KEEP)
        assert 0 < done.events < 30
        assert done.deleted == len(records) // 2
        kept = known(log)
        assert kept != before
        assert not [s for s in log.read() if s.row.kind == "decided" and PERSON.matches(s)]
        assert log.verify() == []
        assert erase(log, PERSON, older=Older.FORGET).events == 0
        forgotten = known(log)
        assert forgotten != kept
        left = [s for s in log.read() if s.row.kind != "erased"]
    assert known(filled(MemoryLog(), left)) == forgotten
    with closing(place.open()) as log:
        assert known(log) == forgotten


def test_keeping_older_records_is_exact_for_the_newer_ones(
    place: Place, records: list[Stored]
) -> None:
    half = len(records) // 2
    theirs = {
        s.row.event
        for s in records
        if s.seq > half and s.row.kind == "decided" and PERSON.matches(s)
    }
    with closing(retained(place.open(), records)) as log:
        erase(log, EventSearch([], None), theirs, older=Older.KEEP)
        erased = known(log)
    never = MemoryLog()
    others = [s for s in records if s.row.event not in theirs]
    with closing(retained_at(never, others, half)):
        assert known(never) == erased


def retained_at(log: Log, records: list[Stored], last: int) -> Log:
    log.append([(aged(s, -9 * DAY) if s.seq <= last else s).row for s in records])
    retain(log, None, clock.now())
    return log


def _erase_until(path: str, steps: int) -> None:
    """Erase, and end as by kill -9: while it searches, or within the transaction."""
    left = iter(range(steps))

    def step(seq: int) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with closing(open_log(path)) as log, patch.object(SQLiteLog, "_put_base", die):
        erase(log, PERSON, step=step)


def test_kill_9_leaves_all_or_nothing(tmp_path: Path, records: list[Stored]) -> None:
    path, spawn = str(tmp_path / LOG_FILE), multiprocessing.get_context("spawn")
    never = known(filled(MemoryLog(), without(records)))
    with closing(filled(open_log(path), records)) as log:
        before = known(log)
        for steps in (0, 50, 10_000):
            process = spawn.Process(target=_erase_until, args=(path, steps))
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            assert (log.verify(), log.extent()) == ([], Extent())
            assert known(log) == before
        assert erase(log, PERSON).events == 30
        assert known(log) == never


def test_it_runs_in_a_process_of_its_own(tmp_path: Path, records: list[Stored]) -> None:
    path = str(tmp_path / LOG_FILE)
    with closing(filled(open_log(path), records)) as log:
        assert erase_in_process(path, PERSON, (), None, is_dry_run=False).events == 30
        assert log.extent().erasures == 1


@pytest.mark.parametrize(
    ("features", "text", "is_found"),
    [
        ({"user": {"id": "u7"}}, "user.id=u7", True),
        ({"user": {"id": "u77"}}, "user.id=u7", False),
        ({"user.id": "u7"}, "user.id=u7", True),
        ({"user": {"id": 7}}, "user.id=7", True),
        ({"user": {"id": 7.0}}, "user.id=7", True),
        ({"user": {"id": True}}, "user.id=true", True),
        ({"user": {"tags": ["a", "b"]}}, "user.tags=b", True),
        ({"user": {"id": 'a"\\b\n'}}, 'user.id=a"\\b\n', True),
        ({"user": {"id": "é=1"}}, "user.id=é=1", True),
        ({"id": "u7"}, "user.id=u7", False),
        ({"other": {"id": "u7"}}, "user.id=u7", False),
    ],
)
def test_a_condition_finds_values_however_they_are_written(
    features: dict[str, object], text: str, is_found: bool, tmp_path: Path
) -> None:
    search = EventSearch([Condition.parse(text)], None)
    for encode in (msgspec.json.encode, _ascii):
        request = msgspec.structs.replace(
            offer("a", "b"), context=msgspec.Raw(b"[%s]" % encode(features))
        )
        with running(small_start(tmp_path / encode.__name__)) as service:
            rank(service, request)
            stored = [s for s in service.log.read() if s.row.kind == "decided"]
        assert search.matches(stored[0]) is is_found


def _ascii(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_condition_needs_a_value() -> None:
    for text in ("user.id", "=u7"):
        with pytest.raises(SettingError, match=r"user\.id=u7"):
            Condition.parse(text)
