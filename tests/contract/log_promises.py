"""What every log promises, one function each; a broken promise is an AssertionError.

A function takes a place where a new log can be kept.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from itertools import islice
from threading import Event
from typing import Protocol

from rbmle.service.log import (
    DuplicateRequest,
    Log,
    LogDamaged,
    LogError,
    LogUnavailable,
    Row,
    Stored,
)
from rbmle.service.log.base import Base, Extent


class Place(Protocol):
    """Where one log is kept, and what can befall it there."""

    def open(self) -> Log:
        """Return the log; what was stored before is in it."""
        ...

    def damage(self, seq: int) -> None:
        """Flip one bit of a row's payload, in a log that is closed."""
        ...

    def failing(self) -> AbstractContextManager[None]:
        """Let every append fail for a while, as on a full disk or without a server."""
        ...


Promise = Callable[[Place], None]


def rows_come_back_in_their_order(place: Place) -> None:
    with closing(place.open()) as log:
        assert log.last() == 0
        assert list(log.read()) == []
        rows = [row(f"event {i}") for i in range(200)]
        assert log.append(rows[:1]) == 1
        assert log.append(rows[1:150]) == 2
        assert log.append(rows[150:]) == 151
        assert log.last() == 200
        everything = numbered(rows)
        assert list(log.read()) == everything
        for after, limit in ((0, 0), (0, 1), (3, 64), (3, 65), (0, 128), (190, 20), (200, 1)):
            assert list(log.read(after, limit)) == everything[after : after + limit]
        for after in (1, 63, 64, 199, 200, 1000):
            assert list(log.read(after)) == everything[after:]


def every_bit_comes_back(place: Place) -> None:
    payloads = (b"", b"\0", b"\0a\0", bytes(range(256)), bytes(range(256)) * 4096)
    texts = (
        "",
        " ",
        "a\0b",
        "%00",
        "'; DROP TABLE log; --",
        "é",
        "e\u0301",
        "Ω 漢字 🎰",
        "x" * 2048,
    )
    times = (0, -1, 1_790_000_000_000, 2**63 - 1, -(2**63))
    rows = [
        *(row(payload=payload) for payload in payloads),
        *(Row(kind=text, event=text, request=text, time=0, payload=b"") for text in texts),
        *(Row(kind="k", event="e", request=None, time=time, payload=b"") for time in times),
    ]
    with closing(place.open()) as log:
        log.append(rows)
        assert list(log.read()) == numbered(rows)
        for stored in log.read(len(payloads), len(texts)):
            assert log.of_request(stored.row.request or "") == stored
            assert log.of_event(stored.row.event) == [stored]


def a_batch_is_stored_whole_or_not_at_all(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row("a", "1"), row("b", "2")])
        before = list(log.read())
        refused(log, [row("c", "3"), row("d", "4"), row("e", "1")], places=(2,))
        assert list(log.read()) == before
        assert log.last() == 2
        assert log.of_event("c") == []
        assert log.of_request("3") is None
        assert log.append([row("c", "3")]) == 3


def a_request_is_stored_once(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row("a", "1"), row("a"), row("a"), row("b", "")])
        log.append([row("a")])  # no request is no duplicate
        refused(log, [row("b", "1")], places=(0,))
        refused(log, [row("b", ""), row("b", "5")], places=(0,))
        refused(log, [row("b", "2"), row("b", "3"), row("b", "2"), row("b", "2")], places=(2, 3))
    with closing(place.open()) as log:
        refused(log, [row("b"), row("b", "1"), row("b", "2")], places=(1,))
        assert log.append([row("b", "2")]) == 6


def opened_again_it_is_the_same(place: Place) -> None:
    everything: list[Stored] = []
    for i in range(4):
        with closing(place.open()) as log:
            assert list(log.read()) == everything
            assert log.last() == len(everything)
            assert log.append([row(f"{i}"), row(f"{i}", f"{i}")]) == len(everything) + 1
            everything = list(log.read())
        assert len(everything) == 2 * i + 2


def rows_are_found_by_event_and_by_request(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row("a", "1"), row("b", "2"), row("A", "a"), row("a ", "A"), row("a", "3")])
        log.append([row("b"), row("a")])
        everything = list(log.read())
        assert log.of_event("a") == [everything[i] for i in (0, 4, 6)]
        assert log.of_event("A") == [everything[2]]
        assert log.of_event("c") == []
        assert log.of_request("A") == everything[3]
        assert log.of_request("a") == everything[2]
        assert log.of_request("b") is None


def readers_see_whole_batches_in_order(place: Place) -> None:
    with closing(place.open()) as log, ThreadPoolExecutor(2) as threads:
        is_over = Event()

        def look() -> list[tuple[int, list[int]]]:
            looks: list[tuple[int, list[int]]] = []
            while not is_over.is_set() or not looks:
                looks.append((log.last(), [stored.seq for stored in log.read()]))
            return looks

        readers = [threads.submit(look) for _ in range(2)]
        try:
            for i in range(30):
                first = log.append([row(f"{i}")] * 3)
                assert log.last() >= first + 2
        finally:
            is_over.set()
        for last, seqs in (seen for reader in readers for seen in reader.result()):
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) % 3 == 0
            assert len(seqs) >= last


def a_paused_reader_holds_nothing_and_goes_on(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row()] * 100)
        abandoned, paused = log.read(), log.read()
        next(abandoned)
        seen = [stored.seq for stored in islice(paused, 10)]
        log.append([row()] * 100)
        seen += [stored.seq for stored in paused]
        assert seen == list(range(1, 201))


def a_flipped_bit_is_found(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row(f"{i}", f"{i}") for i in range(5)])
        assert log.verify() == []
    place.damage(3)
    with closing(place.open()) as log:
        problems = log.verify()
        assert len(problems) == 1
        assert "row 3" in problems[0]
        assert [stored.seq for stored in log.read(0, 2)] == [1, 2]
        assert [stored.seq for stored in log.read(3)] == [4, 5]
        for look in (
            lambda: list(log.read()),
            lambda: log.of_event("2"),
            lambda: log.of_request("2"),
        ):
            damage = raised(look)
            assert isinstance(damage, LogDamaged)
            assert damage.seq == 3


def failures_leave_no_gap_and_no_trace(place: Place) -> None:
    with closing(place.open()) as log:
        log.append([row("a", "1")])
        with place.failing():
            for _ in range(3):
                assert isinstance(raised(lambda: log.append([row("b", "2")])), LogUnavailable)
        assert log.last() == 1
        assert log.of_request("2") is None
        assert log.append([row("b", "2"), row("c")]) == 2
        with place.failing():
            assert isinstance(raised(lambda: log.append([row("d", "4")])), LogUnavailable)
        assert log.append([row("e", "5")]) == 4
        assert log.append([row("d", "4")]) == 5
        assert [stored.row.event for stored in log.read()] == ["a", "b", "c", "e", "d"]
        assert [stored.seq for stored in log.read()] == [1, 2, 3, 4, 5]
        assert log.verify() == []


def a_batch_of_no_rows_is_refused(place: Place) -> None:
    with closing(place.open()) as log:
        try:
            log.append([])
        except ValueError:
            assert log.last() == 0
        else:
            raise AssertionError("took no rows")


def it_grows_by_what_is_stored(place: Place) -> None:
    with closing(place.open()) as log:
        before = log.size()
        log.append([row(payload=bytes(range(256)) * 2048)])
        assert log.size() > before


def a_closed_log_says_so(place: Place) -> None:
    log = place.open()
    log.append([row("a", "1")])
    log.close()
    log.close()
    for call in (
        lambda: log.append([row()]),
        lambda: list(log.read()),
        lambda: log.of_event("a"),
        lambda: log.of_request("1"),
        log.last,
        log.size,
        log.verify,
        log.extent,
        log.base,
    ):
        assert isinstance(raised(call), LogUnavailable)
    with closing(place.open()) as again:
        assert again.last() == 1


def retention_deletes_what_the_base_covers(place: Place) -> None:
    with closing(place.open()) as log, closing(place.open()) as other:
        log.append([row("a", "1"), row("operator"), *[row("b", f"b{i}") for i in range(200)]])
        everything = list(log.read())
        assert (log.extent(), log.base()) == (Extent(), None)
        assert log.discard(0, 100, ()) is None
        base = Base(150, needed=(3, 149), content=bytes(range(256)) * 1000)
        assert log.rebase(Extent(), base)
        assert not other.rebase(Extent(), Base(10))  # it has seen neither the base nor the extent
        assert other.base() == base
        assert list(other.read()) == everything
        after: int | None = 0
        while after is not None:
            after = log.discard(after, 40, ("operator",))
        kept = [everything[seq - 1] for seq in (2, 3, 149, *range(151, 203))]
        assert list(other.read()) == kept
        assert list(other.read(100, 3)) == kept[2:5]
        assert [s.seq for s in other.of_event("b")] == [s.seq for s in kept[1:]]
        assert other.of_request("1") is None
        assert other.verify() == []
        assert log.append([row("a", "1")]) == 203
        assert log.rebase(Extent(150), Base(202))
        while log.reclaim():
            pass
        log.compact()
    with closing(place.open()) as log:
        assert (log.extent(), log.base()) == (Extent(202), Base(202))
        assert log.discard(0, 1000, ()) == 202
        assert [s.seq for s in log.read()] == [203]


def an_erasure_leaves_empty_rows(place: Place) -> None:
    with closing(place.open()) as log, closing(place.open()) as other:
        log.append([row("a", "1"), row("b", "2"), row("a"), row("c", "3")])
        before = list(log.read())
        assert not log.erase(Extent(0, 1), [1, 3], None)  # of another extent
        assert list(log.read()) == before
        assert log.erase(Extent(), [1, 3], None)
        assert not other.erase(Extent(), [2], None)
        assert other.extent() == Extent(0, 1)
        empty = Row("erased", "\x1d", None, 0, b"{}")
        assert list(other.read()) == [Stored(1, empty), before[1], Stored(3, empty), before[3]]
        assert other.of_event("a") == []
        assert other.of_request("1") is None
        assert other.verify() == []
        assert log.append([row("a", "1")]) == 5
        assert log.rebase(Extent(0, 1), Base(2))
        assert log.erase(Extent(2, 1), [4], Base(2, content=b"another"))
    with closing(place.open()) as log:
        assert (log.extent(), log.base()) == (Extent(2, 2), Base(2, content=b"another"))
        assert [s.row.kind for s in log.read()] == ["erased", "kind", "erased", "erased", "kind"]


PROMISES: tuple[Promise, ...] = (
    rows_come_back_in_their_order,
    every_bit_comes_back,
    a_batch_is_stored_whole_or_not_at_all,
    a_request_is_stored_once,
    opened_again_it_is_the_same,
    rows_are_found_by_event_and_by_request,
    readers_see_whole_batches_in_order,
    a_paused_reader_holds_nothing_and_goes_on,
    a_flipped_bit_is_found,
    failures_leave_no_gap_and_no_trace,
    a_batch_of_no_rows_is_refused,
    it_grows_by_what_is_stored,
    a_closed_log_says_so,
    retention_deletes_what_the_base_covers,
    an_erasure_leaves_empty_rows,
)


def row(event: str = "event", request: str | None = None, payload: bytes = b"payload") -> Row:
    """Return a row of which only this matters."""
    return Row(kind="kind", event=event, request=request, time=1, payload=payload)


def numbered(rows: Sequence[Row]) -> list[Stored]:
    """Return rows as the first of a log."""
    return [Stored(seq, row) for seq, row in enumerate(rows, 1)]


def refused(log: Log, rows: Sequence[Row], places: tuple[int, ...]) -> None:
    """Assert that a batch is refused for the requests in these places."""
    error = raised(lambda: log.append(rows))
    assert isinstance(error, DuplicateRequest)
    assert error.places == places


def raised(call: Callable[[], object]) -> LogError | None:
    """Return what a call raises, or None if it returns."""
    try:
        call()
    except LogError as error:
        return error
    return None
