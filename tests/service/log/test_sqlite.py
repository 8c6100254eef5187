"""A log in SQLite: disks that fail, files that are damaged, processes that die."""

import resource
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
import pytest

from rbmle.service.log import LogDamaged, LogRefused, LogUnavailable, open_log
from rbmle.service.log.publications import FilePublications
from rbmle.service.log.sqlite import SQLiteLog, check_format, make_private, make_tables
from tests.contract.log_disk import OnDisk
from tests.contract.log_promises import raised, row
from tests.service.log.samples import (
    append_together,
    lend_and_take,
    let_go_without_a_lock,
    publish_after_a_takeover,
    take_over,
)


def test_tables_that_another_process_makes_meanwhile_are_not_another_program(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.db"
    make_private(path)
    with closing(apsw.Connection(str(path))) as ours, closing(apsw.Connection(str(path))) as theirs:
        ours.pragma("journal_mode", "wal")

        def meanwhile(_cursor: object, statement: str, _values: object) -> bool:
            if "sqlite_schema" in statement:
                make_tables(theirs, path)
            return True

        ours.exec_trace = meanwhile
        assert not check_format(ours, path)


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


def test_a_lease_on_a_file_is_taken_over_from_a_process_that_hangs(on_disk: OnDisk) -> None:
    take_over(on_disk)
    let_go_without_a_lock(on_disk)


def test_what_a_learner_publishes_after_another_took_over_is_never_found(tmp_path: Path) -> None:
    publish_after_a_takeover(FilePublications(tmp_path), FilePublications(tmp_path))


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
