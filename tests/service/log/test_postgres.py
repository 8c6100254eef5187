"""A log in PostgreSQL: lost connections, late commits, sessions that end."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from rbmle.service.http.logging import configure_logging
from rbmle.service.log import DuplicateRequest, LogRefused, LogUnavailable, open_log
from rbmle.service.log.backend import encode_rows
from rbmle.service.log.postgres import (
    INSERT,
    LOCK,
    TABLES,
    PostgresLog,
    PostgresPublications,
    begin_appending,
    connect,
    connect_writer,
)
from tests.contract.log_promises import raised, row
from tests.contract.log_server import Losable, OnServer
from tests.service.log.samples import (
    append_together,
    lend_and_take,
    let_go_without_a_lock,
    publish_after_a_takeover,
    take_over,
)


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


def test_a_repeated_request_is_no_reason_for_a_warning(
    on_server: OnServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg warns if the server refuses the rows before COMMIT is sent."""
    execute = psycopg.Connection.execute

    def commit_late(self: psycopg.Connection, query: Any, *values: Any, **settings: Any) -> Any:
        if query == "COMMIT":
            time.sleep(0.2)
        return execute(self, query, *values, **settings)

    monkeypatch.setattr(psycopg.Connection, "execute", commit_late)
    configure_logging()
    with closing(on_server.open()) as log:
        log.append([row("a", "1")])
        assert isinstance(raised(lambda: log.append([row("b", "1")])), DuplicateRequest)
    assert caplog.messages == []


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


def test_one_of_two_that_find_no_tables_makes_them(on_server: OnServer) -> None:
    """The second has looked before, and waits for the first, which commits after that."""
    with ThreadPoolExecutor(1) as pool, connect(on_server.url) as first:
        with first.transaction():
            first.execute(LOCK)
            second = pool.submit(connect_writer, on_server.url, 30.0)
            while not first.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
                time.sleep(0.01)
            first.execute(TABLES)
        second.result(timeout=30).close()
    with closing(on_server.open()) as log:
        assert log.append([row("a")]) == 1


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


def test_a_lease_on_a_schema_is_taken_over_from_a_process_that_hangs(on_server: OnServer) -> None:
    take_over(on_server)
    let_go_without_a_lock(on_server)


def test_what_a_learner_publishes_after_another_took_over_is_never_found(
    on_server: OnServer,
) -> None:
    with (
        closing(PostgresPublications(on_server.url)) as one,
        closing(PostgresPublications(on_server.url)) as two,
    ):
        publish_after_a_takeover(one, two)


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
        cells = [list(column) for column in zip(*encode_rows(2, [row("late")]), strict=True)]
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
