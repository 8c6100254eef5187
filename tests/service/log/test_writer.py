"""Group commit: what the writer has answered is stored, and one bad call harms no other."""

import threading
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from rbmle.service.log.base import DuplicateRequest, LogUnavailable, Row
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.writer import Outage, Writer


def row(event: str, request: str | None = None) -> Row:
    return Row(kind="ticked", event=event, request=request, time=1, payload=b"{}")


class SlowLog(MemoryLog):
    """A log whose first transaction lasts until it is let go, so that calls pile up behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.batches: list[int] = []
        self.fails = False

    def append(self, rows: Sequence[Row]) -> int:
        self.go.wait(10)
        if self.fails:
            raise LogUnavailable("the disk is full")
        first = super().append(rows)
        self.batches.append(len(rows))
        return first


def test_calls_that_wait_are_stored_in_one_transaction() -> None:
    log = SlowLog()
    writer = Writer(log)
    futures = [writer.submit([row(f"a{i}"), row(f"b{i}")]) for i in range(20)]
    log.go.set()
    assert [future.result(10) for future in futures] == [1 + 2 * i for i in range(20)]
    writer.close()
    assert sum(log.batches) == 40
    assert len(log.batches) <= 2  # the first call, and all that waited behind it
    assert [stored.row.event for stored in log.read()][:4] == ["a0", "b0", "a1", "b1"]


def test_a_duplicate_is_refused_alone() -> None:
    log = SlowLog()
    log.go.set()
    writer = Writer(log)
    writer.submit([row("x", "r1")]).result(10)
    log.go.clear()
    good, bad, last = (writer.submit([row(*some)]) for some in (("y", "r2"), ("z", "r1"), ("w",)))
    log.go.set()
    assert {good.result(10), last.result(10)} == {2, 3}
    with pytest.raises(DuplicateRequest):
        bad.result(10)
    writer.close()
    assert log.last() == 3


def test_a_full_disk_is_told_to_all_and_passes() -> None:
    log = SlowLog()
    log.fails = True
    writer = Writer(log)
    futures = [writer.submit([row("a")]) for _ in range(3)]
    log.go.set()
    for future in futures:
        with pytest.raises(LogUnavailable):
            future.result(10)
    log.fails = False
    assert writer.submit([row("b")]).result(10) == 1
    writer.close()


def test_closing_writes_what_is_queued() -> None:
    log = SlowLog()
    writer = Writer(log)
    futures = [writer.submit([row("a")]) for _ in range(5)]
    log.go.set()
    writer.close()
    assert all(future.done() for future in futures)
    assert log.last() == 5


def test_nothing_cannot_be_written() -> None:
    writer = Writer(MemoryLog())
    with pytest.raises(ValueError, match="no rows"):
        writer.submit([])
    writer.close()


def test_a_full_disk_is_said_once_and_so_is_its_end() -> None:
    log = SlowLog()
    log.go.set()
    with capture_logs() as lines:
        writer = Writer(log)
        for log.fails in (True, True, True, False, False):
            future = writer.submit([row("x")])
            assert (future.exception(10) is not None) == log.fails
        writer.close()
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("error", "cannot write the log"),
        ("info", "can write the log again"),
    ]
    assert lines[0]["why"] == "the disk is full"


def test_an_outage_is_said_once_when_it_begins_and_once_when_it_is_over() -> None:
    with capture_logs() as lines:
        outage = Outage("write the log")
        outage.note_success()
        assert lines == []
        for why in ("the disk is full", "the disk is still full", "the disk is full"):
            outage.note_failure(why)
        assert [(line["log_level"], line["event"], line["why"]) for line in lines] == [
            ("error", "cannot write the log", "the disk is full")
        ]
        assert outage.failure is not None
        outage.note_success()
        outage.note_success()
    assert [line["event"] for line in lines] == ["cannot write the log", "can write the log again"]
    assert lines[1]["after_seconds"] >= 0
    assert outage.failure is None
