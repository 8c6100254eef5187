"""Every log keeps every promise, a liar is caught for each, and what is special to each keeper."""

import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from rbmle.service.log import (
    DuplicateRequest,
    LogDamaged,
    LogError,
    LogRefused,
    LogUnavailable,
    Row,
    open_log,
)
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.postgres import INSERT, PostgresLog
from rbmle.service.log.postgres_server import begin_appending, connect
from rbmle.service.log.row_codec import EncodedRow, encoded_rows
from rbmle.service.log.sqlite import SQLiteLog
from tests.contract.log_disk import OnDisk
from tests.contract.log_liars import LIARS, InMemory
from tests.contract.log_promises import PROMISES, Place, Promise, raised, row
from tests.contract.log_server import Losable, OnServer, Server, Wire, programs


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    bin = programs()
    if bin is None:
        pytest.skip("no PostgreSQL here: initdb is neither on PATH nor in /usr/lib/postgresql")
    server = Server(bin)
    yield server
    server.remove()


@pytest.fixture
def on_server(server: Server) -> Iterator[OnServer]:
    wire = Wire(server.folder)
    yield OnServer(server=server, wire=wire)
    wire.close()


@pytest.fixture
def on_disk(tmp_path: Path) -> OnDisk:
    return OnDisk(path=tmp_path / "new" / "folder" / "log.db")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, on_disk: OnDisk) -> Place:
    match request.param:
        case "memory":
            return InMemory()
        case "sqlite":
            return on_disk
        case _:
            on_server: OnServer = request.getfixturevalue("on_server")
            return on_server


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_log_keeps_every_promise(place: Place, promise: Promise) -> None:
    promise(place)


@pytest.mark.parametrize(("liar", "promise"), LIARS, ids=lambda part: part.__name__)
def test_a_liar_is_caught(liar: Callable[[list[EncodedRow]], MemoryLog], promise: Promise) -> None:
    with pytest.raises((AssertionError, LogError)):
        promise(InMemory(kind=liar))


def test_each_promise_has_a_liar() -> None:
    assert {promise for _, promise in LIARS} == set(PROMISES)


@pytest.mark.parametrize("text", ["\ud800", "x" * 2049, "é" * 1025])
def test_text_that_a_log_cannot_keep_is_no_row(text: str) -> None:
    for texts in ((text, "", ""), ("", text, ""), ("", "", text)):
        with pytest.raises(ValueError, match=r"surrogate|at most"):
            Row(*texts, 0, b"")


def test_a_time_of_more_than_64_bits_is_no_row() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        Row("kind", "event", None, 2**63, b"")


def test_a_log_is_opened_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("a.db", f"{tmp_path}/b.db", "sqlite:///c.db", f"sqlite:///{tmp_path}/d%20e.db"):
        with closing(open_log(url)) as log:
            log.append([row()])
    assert {path.name for path in tmp_path.glob("*.db")} == {"a.db", "b.db", "c.db", "d e.db"}
    assert isinstance(open_log("memory:"), MemoryLog)
    for url in ("mysql://host/log", "sqlite:", "sqlite://host/log"):
        with pytest.raises(ValueError, match="give"):
            open_log(url)


def test_a_full_disk_stops_writing_and_not_reading(on_disk: OnDisk) -> None:
    with closing(on_disk.open()) as log:
        log.append([row("a", "1")])
        large = [row(payload=bytes(2**20))] * 5  # more than SQLite holds in memory
        with on_disk.failing():
            for rows in ([row()], large):
                error = raised(lambda: log.append(rows))
                assert isinstance(error, LogUnavailable)
                assert "FullError" in str(error)
            assert [stored.seq for stored in log.read()] == [1]
            assert log.of_request("1") is not None
            assert log.verify() == []
        assert log.append(large) == 2


def test_a_failed_sync_is_no_success_and_stores_once_when_repeated(on_disk: OnDisk) -> None:
    with closing(on_disk.open()) as log:
        log.append([row("a", "1")])
        on_disk.disk.is_unsyncable = True
        error = raised(lambda: log.append([row("b", "2")]))
        assert isinstance(error, LogUnavailable)
        assert error.may_be_stored
        assert log.last() == 1  # what is not on disk is not seen
        on_disk.disk.is_unsyncable = False
        assert log.append([row("b", "2")]) == 2
        assert log.verify() == []


def test_a_disk_that_does_not_read_is_told_and_forgiven(on_disk: OnDisk) -> None:
    with closing(on_disk.open()) as log:
        log.append([row("a", "1")])
    with closing(on_disk.open()) as log:
        on_disk.disk.is_unreadable = True
        assert isinstance(raised(lambda: list(log.read())), LogUnavailable)
        on_disk.disk.is_unreadable = False
        assert [stored.seq for stored in log.read()] == [1]


def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows = [row(payload=bytes(50_000))]
    with closing(SQLiteLog(tmp_path / "log.db")) as log:
        log.append(rows)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
        try:
            while (error := raised(lambda: log.append(rows))) is None:
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        assert isinstance(error, LogUnavailable)
        last = log.last()
        assert log.append(rows) == last + 1
        assert log.verify() == []


def test_a_log_is_its_owners_alone(on_disk: OnDisk) -> None:
    with closing(on_disk.open()) as log:
        log.append([row()])
        for path in on_disk.path.parent.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(on_disk.path.parent.stat().st_mode) == 0o700


def test_processes_append_to_one_file_in_one_order(on_disk: OnDisk) -> None:
    append_together(on_disk)


def test_a_lease_on_a_file_is_one_process_s(on_disk: OnDisk) -> None:
    lend_and_take(on_disk)
    holds = [sys.executable, "-c", TAKES_LEASE, str(on_disk.path)]
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"True\n"
        with closing(on_disk.open()) as log:
            lease = log.lease()
            assert not lease.take()
            child.kill()
            child.wait()
            assert lease.take()
            lease.release()


def test_a_writer_that_dies_leaves_its_rows_and_no_lock(on_disk: OnDisk) -> None:
    subprocess.run([sys.executable, "-c", OPENS_AND_DIES, on_disk.path], check=True)
    with closing(on_disk.open()) as log:
        assert log.append([row()]) == 2


def test_readers_stand_beside_a_writer(on_disk: OnDisk) -> None:
    with pytest.raises(LogUnavailable, match="cannot open"):
        SQLiteLog(on_disk.path, is_read_only=True)
    with (
        closing(on_disk.open()) as log,
        closing(open_log(str(on_disk.path), is_read_only=True)) as reader,
    ):
        log.append([row("a")])
        assert [stored.row.event for stored in reader.read()] == ["a"]
        assert reader.verify() == []
        with pytest.raises(LogUnavailable, match="reading only"):
            reader.append([row("b")])


def test_files_that_are_no_log_of_ours_are_refused_and_left_alone(tmp_path: Path) -> None:
    foreign, text, later = tmp_path / "foreign.db", tmp_path / "text.db", tmp_path / "later.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE log (a)")
    text.write_text("It was a dark and stormy night. " * 100)
    SQLiteLog(later).close()
    with closing(sqlite3.connect(later)) as connection:
        connection.execute("PRAGMA user_version = 7")
    messages = {
        foreign: "another program",
        text: "is not an SQLite file",
        later: "has format 7.*knows 1",
    }
    for path, message in messages.items():
        before = path.read_bytes()
        for is_read_only in (False, True):
            with pytest.raises(LogRefused, match=message):
                SQLiteLog(path, is_read_only=is_read_only)
        assert path.read_bytes() == before


def test_a_flipped_byte_anywhere_in_the_file_is_found_or_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(SQLiteLog(path)) as log:
        log.append([row(f"é{i}", f"request {i}", bytes([i]) * 300) for i in range(30)])
        everything = list(log.read())
    content = path.read_bytes()
    found = 0
    for place in np.random.default_rng(0).integers(len(content), size=150):
        changed = bytearray(content)
        changed[place] ^= 0x80
        path.write_bytes(changed)
        try:
            with closing(SQLiteLog(path)) as log:
                problems = log.verify()
                assert problems or list(log.read()) == everything
                found += bool(problems)
        except (LogDamaged, LogRefused):
            found += 1
    assert found > 50


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_connection_is_made_again_and_stores_once(
    on_server: OnServer, lost: Losable
) -> None:
    with closing(on_server.open()) as log:
        log.append([row("a")])
        on_server.wire.lose(lost)
        assert log.append([row("b"), row("c", "3")]) == 2
        assert on_server.wire.to_lose is None
        assert [stored.row.event for stored in log.read()] == ["a", "b", "c"]
        assert log.append([row("d")]) == 4


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_an_append_without_an_answer_says_so_and_stores_once_when_repeated(
    on_server: OnServer, lost: Losable
) -> None:
    with closing(on_server.open()) as log:
        log.append([row("a")])
        on_server.wire.lose(lost, is_cut_then=True)
        error = raised(lambda: log.append([row("b"), row("c")]))
        assert isinstance(error, LogUnavailable)
        assert error.may_be_stored
        other = raised(lambda: log.append([row("d")]))
        assert isinstance(other, LogUnavailable)
        assert not other.may_be_stored  # nothing was sent
        on_server.wire.mend()
        assert log.append([row("b"), row("c")]) == 2
        assert log.append([row("d")]) == 4
        assert [stored.row.event for stored in log.read()] == ["a", "b", "c", "d"]


def test_rows_without_an_answer_are_found_by_their_request(on_server: OnServer) -> None:
    with closing(on_server.open()) as log:
        on_server.wire.lose("answer", is_cut_then=True)
        assert isinstance(raised(lambda: log.append([row("a", "1")])), LogUnavailable)
        on_server.wire.mend()
        assert log.append([row("b", "2")]) == 2
        assert isinstance(raised(lambda: log.append([row("a", "1")])), DuplicateRequest)
        found = log.of_request("1")
        assert found is not None
        assert found.seq == 1


def test_sessions_that_the_server_ends_are_begun_again(on_server: OnServer) -> None:
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rbmle'"
    )
    with closing(on_server.open()) as log:
        for i in range(3):
            assert log.append([row(f"{i}")]) == i + 1
            on_server.server.execute(query)
            assert log.last() == i + 1
            on_server.server.execute(query)


def test_a_server_that_crashes_and_comes_back_has_every_row(on_server: OnServer) -> None:
    with closing(on_server.open()) as log:
        log.append([row("a")] * 10)
        on_server.server.stop("immediate")
        assert isinstance(raised(lambda: log.append([row("b")])), LogUnavailable)
        assert isinstance(raised(log.last), LogUnavailable)
        on_server.server.start()
        assert log.append([row("b")]) == 11
        assert log.verify() == []


def test_sessions_append_to_one_schema_in_one_order(on_server: OnServer) -> None:
    append_together(on_server)


def test_a_lease_on_a_schema_is_one_session_s(on_server: OnServer) -> None:
    lend_and_take(on_server)
    with closing(on_server.open()) as log, closing(on_server.open()) as other:
        lease, next_lease = log.lease(), other.lease()
        assert lease.take()
        on_server.server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        )
        assert not lease.is_held()
        assert next_lease.take()
        next_lease.release()


def test_readers_stand_beside_sessions_that_write(on_server: OnServer) -> None:
    with (
        closing(on_server.open()) as log,
        closing(open_log(on_server.url, is_read_only=True)) as reader,
    ):
        log.append([row("a")])
        assert [stored.row.event for stored in reader.read()] == ["a"]
        with pytest.raises(LogUnavailable, match="reading only"):
            reader.append([row("b")])


def test_no_row_is_seen_before_one_that_commits_late(on_server: OnServer) -> None:
    with (
        closing(on_server.open()) as log,
        closing(PostgresLog(on_server.url, lock_seconds=0.1)) as hasty,
        closing(on_server.open()) as reader,
        closing(connect(on_server.url)) as slow,
        ThreadPoolExecutor(1) as threads,
    ):
        log.append([row("a")])
        assert begin_appending(slow) == 1
        cells = [list(column) for column in zip(*encoded_rows(2, [row("late")]), strict=True)]
        slow.execute(INSERT, cells)
        waiting = threads.submit(log.append, [row("b")])
        with pytest.raises(LogUnavailable) as refused:
            hasty.append([row("c", "once")])
        assert not refused.value.may_be_stored
        assert [stored.row.event for stored in reader.read()] == ["a"]
        slow.execute("COMMIT")
        assert waiting.result(10) == 3
        assert hasty.append([row("c", "once")]) == 4
        assert [stored.row.event for stored in reader.read()] == ["a", "late", "b", "c"]
        assert reader.verify() == []


def test_schemas_that_hold_no_log_of_ours_are_refused(on_server: OnServer) -> None:
    execute, schema = on_server.server.execute, on_server.schema
    with pytest.raises(LogRefused, match="no schema"):
        PostgresLog(on_server.server.url("nowhere"))
    with pytest.raises(LogRefused, match="there is no log"):
        PostgresLog(on_server.url, is_read_only=True)
    execute(f"CREATE TABLE {schema}.rbmle_log (a integer)")
    with pytest.raises(LogRefused, match="another program"):
        on_server.open()
    execute(f"DROP TABLE {schema}.rbmle_log")
    on_server.open().close()
    execute(f"UPDATE {schema}.rbmle_log_format SET version = 7")
    with pytest.raises(LogRefused, match=r"has format 7.*knows 1"):
        on_server.open()


def test_commits_wait_for_the_disk_whatever_the_server_is_set_to(on_server: OnServer) -> None:
    for given, kept in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        url = f"{on_server.url}%20-csynchronous_commit%3D{given}"
        with closing(connect(url)) as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == (kept,)


def test_a_server_out_of_reach_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="cannot open") as error:
        PostgresLog(f"postgresql://me:secret@{quote(str(tmp_path), safe='')}/log")
    assert "secret" not in str(error.value)


OPENS_AND_DIES = """
import os, sys
from rbmle.service.log import Row, open_log
log = open_log(sys.argv[1])
log.append([Row("kind", "event", None, 0, b"")])
os._exit(0)
"""
TAKES_LEASE = """
import sys
from rbmle.service.log import open_log
lease = open_log(sys.argv[1]).lease()
print(lease.take(), flush=True)
sys.stdin.read()
"""


def append_together(place: OnDisk | OnServer) -> None:
    """Append by three logs at a time: one order without gaps, and each request once."""

    def append(name: str) -> int:
        refused = 0
        with closing(place.open()) as log:
            for i in range(30):
                log.append([row(name), row(name)])
                error = raised(partial(log.append, [row(name, f"{i}")]))
                refused += isinstance(error, DuplicateRequest)
        return refused

    with closing(place.open()) as reader, ThreadPoolExecutor(3) as threads:
        writers = [threads.submit(append, name) for name in "abc"]
        seen: list[int] = []
        while not all(writer.done() for writer in writers):
            seen += [stored.seq for stored in reader.read(len(seen))]
        seen += [stored.seq for stored in reader.read(len(seen))]
        assert sum(writer.result() for writer in writers) == 60
        assert seen == list(range(1, 3 * 60 + 30 + 1))
        for name in "abc":
            events = [stored.row.request for stored in reader.of_event(name)]
            assert events.count(None) == 60
        assert reader.verify() == []


def lend_and_take(place: OnDisk | OnServer) -> None:
    """Take a lease, refuse it to another log, and let it go."""
    with closing(place.open()) as log, closing(place.open()) as other:
        lease, next_lease = log.lease(), other.lease()
        assert not lease.is_held()
        assert lease.take()
        assert lease.take()
        assert lease.is_held()
        assert not next_lease.take()
        lease.release()
        assert next_lease.take()
        next_lease.release()
