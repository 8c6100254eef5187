"""Rank calls that are taken before a task is made of them: as the ordinary way, in every respect."""

import asyncio
import gc
import json
import re
import socket
import ssl
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rbmle.service.access.keys import KeyRing
from rbmle.service.api.waiting import Outcome, Slip, Waiting
from rbmle.service.http.app import MOST_BYTES, Application
from rbmle.service.http.binding import Binding
from rbmle.service.http.server import Server
from rbmle.service.http.turns import AT_ONCE, Turns
from rbmle.service.http.whole_requests import HELD_BYTES, HELD_SECONDS, WholeRequests
from rbmle.service.log.base import Row
from rbmle.service.log.errors import LogUnavailable
from rbmle.service.service import Service
from tests.service.http.test_server import close_after, connect, made_certificate, received
from tests.services import PATIENCE, small_start, wait_until

BINDING = Binding(port=0, graceful_seconds=20)
HEAD_SECONDS = 0.5
LATE = 4.0  # seconds after a deadline by which even a busy machine has kept it
NATIVE = "/v1/rank"
PATHS = [
    NATIVE,
    "/personalizer/v1.0/rank",
    "/personalizer/v1.1-preview.3/rank",
    "/personalizer/rank?api-version=2022-09-01-preview",
]
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
SLOTS: dict[str, Any] = {
    "context": {"who": "u"},
    "actions": [{"id": "a"}, {"id": "b", "features": {"x": 1.5}}, {"id": "c"}],
    "slots": [
        {"id": "top", "baseline": "a"},
        {"id": "left", "baseline": "b", "features": {"wide": True}},
    ],
}


class Counted:
    """A taker that counts what it takes, and how much waits to be sent to whom it takes from."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.taken = 0
        self.left = 0
        self.unsent = 0  # bytes, at most
        self.askers: list[weakref.ref[WholeRequests]] = []

    def wants(self, url: bytes) -> bool:
        return self.turns.wants(url)

    def take(self, asker: WholeRequests, body: bytes) -> bool:
        self.unsent = max(self.unsent, asker.transport.get_write_buffer_size())
        self.askers.append(weakref.ref(asker))
        is_taken = self.turns.take(asker, body)
        self.taken += is_taken
        self.left += not is_taken
        return is_taken


class Gate:
    """A log that can be held, or fail."""

    def __init__(self, service: Service) -> None:
        self.log = service.log
        self.is_open = threading.Event()
        self.is_open.set()
        self.fails = False

    def append(self, rows: Sequence[Row]) -> int:
        assert self.is_open.wait(PATIENCE)
        if self.fails:
            raise LogUnavailable("the disk is full")
        return self.log.append(rows)

    @contextmanager
    def held(self) -> Iterator[None]:
        self.is_open.clear()
        try:
            yield
        finally:
            self.is_open.set()


@dataclass
class Site:
    """A server, and what is inside it."""

    service: Service
    app: Application
    server: Server
    thread: threading.Thread
    gate: Gate
    keys: KeyRing | None
    port: int = 0
    takers: list[Counted] = field(default_factory=list)  # none without the short way

    @property
    def taken(self) -> int:
        return self.takers[0].taken if self.takers else 0

    def ask(self, *parts: bytes, count: int = 1) -> list[bytes]:
        """Return so many answers to what is sent, piece by piece, on one connection."""
        with closing(connect(self.port)) as client:
            for part in parts:
                client.sendall(part)
                if len(parts) > 1:
                    time.sleep(0.003)
            return answers(client, count)

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def serving(
    folder: Path,
    binding: Binding = BINDING,
    *,
    has_keys: bool = False,
    is_short: bool = True,
    seconds: float | None = PATIENCE,
) -> Iterator[Site]:
    """Yield a site; the log has `seconds` to store what is decided, or as many as in production."""
    service = Service(small_start(folder), told=lambda message: None)
    gate = Gate(service)
    service.writer.log = gate  # type: ignore[assignment]  # it has what a writer needs
    keys = KeyRing(folder / "keys.json") if has_keys else None
    app = Application(service, keys)
    addresses: list[str] = []
    takers: list[Counted] = []

    def taker() -> Counted:
        if not takers:
            takers.append(Counted(app.turns))
        return takers[0]

    server = Server(app, binding, addresses.append, taker if is_short else None)
    thread = threading.Thread(target=server.run)
    site = Site(service, app, server, thread, gate, keys, takers=takers)
    thread.start()
    try:
        wait_until(lambda: addresses and service.problem is None)
        if is_short:
            taker()
        if seconds is not None:
            app.turns.calls.waiting.seconds = seconds
        site.port = int(addresses[0].rpartition(":")[2])
        yield site
    finally:
        gate.is_open.set()
        site.stop()


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("short")) as site:
        yield site


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("ordinary"), is_short=False) as site:
        yield site


@pytest.mark.parametrize("path", PATHS)
def test_a_taken_call_is_answered_to_the_byte_as_on_the_ordinary_way(
    short: Site, ordinary: Site, path: str
) -> None:
    request = rank(path, event=f"same {path}")
    before = short.taken
    (quick,), (slow,) = short.ask(request), ordinary.ask(request)
    assert short.taken == before + 1
    assert undated(quick) == undated(slow)
    assert quick.startswith(b"HTTP/1.1 201 Created\r\n")
    for name in (b"\r\ndate: ", b"\r\ncontent-type: application/json\r\n", b"\r\ncontent-length: "):
        assert name in quick


def test_slots_are_answered_as_on_the_ordinary_way(short: Site, ordinary: Site) -> None:
    top, left = SLOTS["slots"]
    for event, slots in (("slots", [top, left]), ("excluding", [top, left | {"excluded": ["c"]}])):
        request = post(SLOTS | {"event": event, "slots": slots})
        before = short.taken
        (quick,), (slow,) = short.ask(request), ordinary.ask(request)
        assert short.taken == before + (event == "slots")
        assert undated(quick) == undated(slow)
        assert [slot["id"] for slot in body_of(quick)["slots"]] == ["top", "left"]


def test_calls_that_exclude_actions_are_answered_as_on_the_ordinary_way(
    short: Site, ordinary: Site
) -> None:
    excluding = {"actions": [{"id": "a"}, {"id": "b"}], "excluded": ["a"], "event": "excluding a"}
    (quick,), (slow,) = short.ask(post(excluding)), ordinary.ask(post(excluding))
    assert undated(quick) == undated(slow)
    assert body_of(quick)["chosen"] == "b"


def test_other_calls_that_end_alike_are_not_taken(short: Site) -> None:
    before = short.taken
    slots = {
        "actions": [{"id": "a", "features": []}],
        "slots": [{"id": "s", "baselineAction": "a"}],
    }
    (answer,) = short.ask(post(slots, "/personalizer/v1.1-preview.3/multislot/rank"))
    assert status(answer) == 201
    assert status(short.ask(post({}, "/v1/nothing/rank"))[0]) == 404
    assert status(short.ask(post({}, "/rank"))[0]) in (404, 405)
    assert status(short.ask(post({}, "/personalizer/rank"))[0]) == 400  # no version
    assert short.taken == before


BAD = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b'{"actions": []}',
    b'{"actions": "a"}',
    b'{"actions": [{"id": 1}]}',
    b'{"actions": [{"id": ""}]}',
    b'{"actions": [{"id": "a"}, {"id": "a"}]}',
    b'{"actions": [{"id": "a"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a"}], "more": 1}',
    b'{"actions": [{"id": "a"}], "event": "a\\u0000"}',
    b'{"actions": [{"id": "a"}], "event": "' + b"x" * 257 + b'"}',
    b'{"actions": [{"id": "a"}], "deferred": 1}',
    b'{"actions": [{"id": "\\ud800"}]}',
    b'{"actions": [{"id": "a", "features": {"x": NaN}}]}',
    b'{"actions": [{"id": "a", "features": {"x": 1e20}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "\\ud800"}}]}',
    b'{"actions": [{"id": "a", "features": {"x": [true]}}]}',
    b'{"actions": [{"id": "a", "features": {"_x": {"y": {"z": 1}}}}]}',
    b'{"actions": [{"id": "a", "features": [{"x": 1}]}]}',
    b'{"actions": [{"id": "a", "features": null}]}',
    b'{"actions": [{"id": "a", "features": {"": 1}}]}',
    b'{"actions": [{"id": "a", "features": {"x": "' + b"y" * 10_001 + b'"}}]}',
    b'{"actions": [{"id": "a"}], "context": {"a": {"b": {"c": 1}}}}',
    b'{"actions": [{"id": "a"}], "context": 5}',
    b'{"actions": [{"id": "a"}], "context": {"x": "\xc3"}}',
    b'{"actions": ' + b"[" * 50_000,
    b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "b"}]}',
    b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "a", "features": {"x": {}, "y": []'
    b', "z": {"a": {}}}}]}',
    b'{"actions": [{"id": "a"}], "context": {"a": [' + b"1," * 800 + b'1]}, "more": 0}',
    b'{"actions": [{"id": "a", "features": {"a": ['
    + b"1," * 800
    + b'1]}}], "context": {"b": ['
    + b"1," * 800
    + b"1]}}",
    # What is excluded is written to the log as well.
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}, {"id": "b"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a", "features": {"x": {"y": {}}}}, {"id": "b"}], "excluded": ["a"]}',
    b'{"actions": [{"id": "a", "features": {"x": "\xff"}}, {"id": "b"}], "slots": '
    b'[{"id": "s", "baseline": "b", "excluded": ["a"]}]}',
    b'{"actions": [{"id": "a"}], "excluded": [' + b'"b",' * 50 + b'"b"]}',
]
OLD_BAD = [
    b"",
    b"{",
    b'{"actions": []}',
    b'{"actions": [{"id": "a"}]}',
    b'{"actions": [{"id": "a", "features": {}}]}',
    b'{"actions": [{"id": "a", "features": [{"x": "\xff"}]}]}',
    b'{"actions": [{"id": "a", "features": [{"x": {"y": {"z": 1}}}]}]}',
    b'{"actions": [{"id": "a", "features": []}, {"id": "a", "features": []}]}',
    b'{"actions": [{"id": "a", "features": []}], "excludedActions": ["a"]}',
    b'{"actions": [{"id": "a", "features": []}], "eventId": ""}',
    b'{"actions": [{"id": "a", "features": []}], "deferActivation": 3}',
    b'{"actions": [{"id": "a", "features": []}], "contextFeatures": [{"x": NaN}]}',
    b'{"actions": [{"id": "a", "features": []}], "contextFeatures": {"x": 1}}',
    b'{"actions": [{"id": "a", "features": [{"x": {"y": {"z": 1}}}]}, {"id": "b", "features": []}], '
    b'"excludedActions": ["a"]}',
]


def test_what_is_wrong_is_said_in_the_same_bytes(short: Site, ordinary: Site) -> None:
    before = short.service.writer.last
    for path in PATHS:
        for bad in BAD if path == NATIVE else OLD_BAD:
            (quick,), (slow,) = short.ask(post(bad, path)), ordinary.ask(post(bad, path))
            assert undated(quick) == undated(slow), bad[:200]
            assert status(quick) == 400, bad[:200]
    assert short.service.writer.last == before


@pytest.mark.parametrize(
    "bad",
    [
        b'{"actions": [{"id": "a", "more": 1}]}',
        b'{"actions": [{"id": "a"}], "slots": [{"id": "s", "baseline": "a", "more": 1}]}',
    ],
)
def test_a_field_that_is_none_is_refused_in_the_same_bytes(
    short: Site, ordinary: Site, bad: bytes
) -> None:
    assert undated(short.ask(post(bad))[0]) == undated(ordinary.ask(post(bad))[0])


def test_a_body_that_is_too_large_is_refused_in_the_same_bytes(short: Site, ordinary: Site) -> None:
    for size in (70_000, 200_000, MOST_BYTES + 1):
        large = post(b" " * size)
        (quick,), (slow,) = short.ask(large), ordinary.ask(large)
        assert undated(quick) == undated(slow)
        assert status(quick) == (413 if size > MOST_BYTES else 400)


def test_what_is_wrong_in_a_turn_harms_no_other_call_of_it(short: Site) -> None:
    requests = [post(bad) for bad in BAD] + [rank(event=f"good {i}") for i in range(len(BAD))]
    with crowded(short) as sizes:
        got = together(short.port, requests)
    assert max(sizes) > 1
    assert [status(answer) for answer in got] == [400] * len(BAD) + [201] * len(BAD)
    events = [body_of(answer)["event"] for answer in got[len(BAD) :]]
    assert events == [f"good {i}" for i in range(len(BAD))]
    assert all(short.service.log.of_request(f"rank:{event}") for event in events)


def test_many_calls_at_once_are_answered_each_with_an_event_of_its_own(short: Site) -> None:
    before, taken = short.service.writer.last, short.taken
    with crowded(short) as sizes:
        got = together(short.port, [rank()] * 200)
    assert {status(answer) for answer in got} == {201}
    events = {body_of(answer)["event"] for answer in got}
    assert len(events) == 200
    assert short.taken == taken + 200
    assert 1 < max(sizes) <= AT_ONCE
    assert short.service.writer.last == before + 200
    assert all(short.service.log.of_request(f"rank:{event}") for event in events)
    wait_until(lambda: short.service.writer.waiting == 0)


def test_the_same_event_in_one_turn_is_decided_once(short: Site) -> None:
    requests = [rank(event="at once")] * 20 + [rank(event="at once", who="other")]
    with crowded(short):
        got = together(short.port, requests)
    codes = [status(answer) for answer in got]
    assert sorted(codes) in ([201] * 20 + [409], [201] + [409] * 20)
    assert (
        len({undated(answer) for answer, code in zip(got, codes, strict=True) if code == 201}) == 1
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_repeated_event_gets_its_answer_and_another_body_a_conflict(
    short: Site, ordinary: Site, path: str
) -> None:
    for site in (short, ordinary):
        first, again, other = (
            site.ask(rank(path, event=f"twice {path}", who=who))[0] for who in "uuv"
        )
        assert undated(first) == undated(again)
        assert (status(first), status(other)) == (201, 409)
    assert undated(other) == undated(short.ask(rank(path, event=f"twice {path}", who="v"))[0])


def test_a_key_for_repeated_requests_is_heard(short: Site, ordinary: Site) -> None:
    for path in PATHS[:2]:
        name = "Idempotency-Key" if path == NATIVE else "X-Ms-Client-Request-Id"
        for site in (short, ordinary):
            once = rank(path, headers={name: f"once {path}"})
            first, again = site.ask(once)[0], site.ask(once)[0]
            assert undated(first) == undated(again)
            assert status(first) == 201
        for wrong in ("x" * 257, "\xe9"):
            refused = rank(path, headers={name: wrong})
            assert undated(short.ask(refused)[0]) == undated(ordinary.ask(refused)[0])
            assert status(short.ask(refused)[0]) == 400


@pytest.mark.parametrize(
    ("parts", "statuses"),
    [
        (["rank", "rank"], [201, 201]),
        (["rank", "rank", "rank", "rank"], [201, 201, 201, 201]),
        (["rank", "get"], [201, 200]),
        (["get", "rank"], [200, 201]),
        (["get", "rank", "get", "bad", "rank"], [200, 201, 200, 400, 201]),
        (["rank", "garbage"], [201]),
        (["bad", "garbage"], [400]),
        (["rank", "rank", "garbage"], [201, 201]),
    ],
)
def test_pipelined_requests_are_answered_in_order(
    short: Site, ordinary: Site, parts: list[str], statuses: list[int]
) -> None:
    made = {
        "get": GET,
        "bad": post(b"{"),
        "garbage": b"nonsense\r\n\r\n",
    }
    events = [f"{'-'.join(parts)} {i}" for i in range(len(parts))]
    requests = [
        made.get(part) or rank(event=event) for part, event in zip(parts, events, strict=True)
    ]
    for site in (short, ordinary):
        got = site.ask(b"".join(requests), count=len(statuses))
        assert [status(answer) for answer in got] == statuses
        for answer, part, event in zip(got, parts, events, strict=False):
            assert part != "rank" or body_of(answer)["event"] == event
    if parts[-1] == "garbage":
        answer = received(connect(short.port, b"".join(requests)))
        assert answer.count(b"HTTP/1.1 ") == len(statuses)
        assert b"connection: close" in answer


def test_a_call_in_pieces_is_answered_as_a_whole_one(short: Site) -> None:
    request = rank(event="in pieces")
    (whole,) = short.ask(request)
    head = request.index(b"\r\n\r\n")
    for cut in (1, 6, 12, 18, 25, head, head + 2, head + 4, head + 5, len(request) - 1):
        (answer,) = short.ask(request[:cut], request[cut:])
        assert undated(answer) == undated(whole), cut
    assert undated(short.ask(*(bytes([byte]) for byte in request))[0]) == undated(whole)
    two = rank(event="one") + rank(event="two")
    for cut in (len(two) // 2 - 1, len(two) // 2, len(two) // 2 + 1, len(two) // 2 + 20):
        one, other = short.ask(two[:cut], two[cut:], count=2)
        assert [body_of(one)["event"], body_of(other)["event"]] == ["one", "two"]


def test_a_body_that_follows_its_head_at_once_is_taken_and_a_later_one_is_answered(
    short: Site,
) -> None:
    request = rank(event="in two writes")
    end = request.index(b"\r\n\r\n") + 4
    (whole,) = short.ask(request)
    before = short.taken
    assert undated(short.ask(request[:end], request[end:])[0]) == undated(whole)
    assert short.taken == before + 1
    for cut in (end, end + 5):
        with closing(connect(short.port)) as client:
            client.sendall(request[:cut])
            time.sleep(3 * HELD_SECONDS)
            client.sendall(request[cut:])
            assert undated(answers(client)[0]) == undated(whole)
    assert short.taken == before + 1


def test_a_large_body_is_not_held_back(short: Site) -> None:
    large = b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"
    with closing(connect(short.port)) as client:
        client.sendall(large + bytes(2 * HELD_BYTES))
        time.sleep(3 * HELD_SECONDS)
        client.sendall(bytes(900_000 - 2 * HELD_BYTES))
        assert status(answers(client)[0]) == 400


@pytest.mark.parametrize(
    "more",
    [
        b"rank",
        b"get",
        b"half",
        b"two",
        b"garbage",
        b"upgrade",
        b"refused",
    ],
)
@pytest.mark.parametrize("is_let_go", [False, True])
def test_what_comes_while_a_call_is_taken_is_answered_after_it(
    short: Site, more: bytes, is_let_go: bool
) -> None:
    event = f"taken {more.decode()} {is_let_go}"
    if is_let_go:
        short.ask(rank(event=event))  # so it comes a second time
    after = rank(event=f"{event} after")
    data, count = {
        b"rank": (after, 1),
        b"get": (GET, 1),
        b"half": (after[:-3], 1),
        b"two": (GET + after, 2),
        b"garbage": (b"nonsense\r\n\r\n", 1),
        b"upgrade": (with_headers(after, {"Connection": "Upgrade", "Upgrade": "h2c"}), 1),
        b"refused": (post(b"{"), 1),
    }[more]
    before = short.taken
    with closing(connect(short.port)) as client:
        with short.gate.held():
            client.sendall(rank(event=event))
            wait_until(lambda: short.taken == before + 1)
            client.sendall(data)
            time.sleep(0.05)
        if more == b"half":
            client.sendall(after[-3:])
        first, *others = answers(client, 1 if more == b"garbage" and is_let_go else 1 + count)
        assert (status(first), body_of(first)["event"]) == (201, event)
        if data.endswith(after[-10:]) or more == b"half":
            assert body_of(others[-1])["event"] == f"{event} after"
        if more == b"garbage":
            assert [status(answer) for answer in others] == [400] * (not is_let_go)
            assert received(client) == b""


def test_a_client_that_sends_without_end_while_its_call_is_taken_is_not_read(short: Site) -> None:
    before = short.taken
    with closing(connect(short.port)) as client, short.gate.held():
        client.sendall(rank())
        wait_until(lambda: short.taken == before + 1)
        assert sent_until_stuck(client, 2**30) < 2**24


def test_a_client_that_does_not_read_its_answers_gets_no_more_of_them(short: Site) -> None:
    short.takers[0].unsent = 0
    request = post({"actions": [{"id": f"{i:-^200}"} for i in range(50)]})
    requests = short.app.metrics.requests
    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", short.port))
        before = requests["rank"]
        for count in range(1, 2_000):
            client.sendall(request)
            end = time.monotonic() + 0.5
            while requests["rank"] < before + count and time.monotonic() < end:
                time.sleep(0.0002)
            if requests["rank"] < before + count or short.takers[0].unsent > 2**20:
                break
    assert 10 < count < 1_000
    assert short.takers[0].unsent < 2**20


def test_bodies_in_chunks_are_answered(short: Site, ordinary: Site) -> None:
    json_ = body(event="in chunks")
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (json_[:7], json_[7:])) + b"0\r\n\r\n"
    head = b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for parts in ([head + chunks], [head, chunks], [head + chunks[:5], chunks[5:]]):
        (quick,), (slow,) = short.ask(*parts), ordinary.ask(*parts)
        assert undated(quick) == undated(slow)
        assert status(quick) == 201
    for wrong in (b"zz\r\n", b"3\r\nabcd\r\n0\r\n\r\n"):
        (quick,), (slow,) = short.ask(head + wrong), ordinary.ask(head + wrong)
        assert undated(quick) == undated(slow)
        assert status(quick) == 400
    smuggled = head.replace(b"Host: a", b"Host: a\r\nContent-Length: 3") + chunks
    (quick,), (slow,) = short.ask(smuggled), ordinary.ask(smuggled)
    assert undated(quick) == undated(slow)
    assert status(quick) == 400


def test_expect_is_heard(short: Site) -> None:
    request = rank(event="expect", headers={"Expect": "100-continue"})
    end = request.index(b"\r\n\r\n") + 4
    for parts in ([request[:end], request[end:]], [request]):
        first, second = short.ask(*parts, count=2)
        assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert status(second) == 201


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.0", {}),
        ("1.0", {"Connection": "keep-alive"}),
        ("1.1", {"Connection": "close"}),
        ("1.1", {"Connection": "Upgrade", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}),
        ("1.1", {"Connection": "Upgrade", "Upgrade": "websocket"}),
        ("1.1", {"Connection": "keep-alive"}),
    ],
)
def test_wishes_for_the_connection_are_heard_as_on_the_ordinary_way(
    short: Site, ordinary: Site, version: str, headers: dict[str, str]
) -> None:
    request = rank(event=f"{version} {headers}", headers=headers)
    request = request.replace(b"HTTP/1.1", f"HTTP/{version}".encode())
    is_closed = version == "1.0" or headers.get("Connection") == "close"
    got = []
    for site in (short, ordinary):
        with closing(connect(site.port, request)) as client:
            (answer,) = answers(client)
            got.append(undated(answer))
            if is_closed:
                assert received(client) == b""
            else:
                client.sendall(GET)
                assert status(answers(client)[0]) == 200
    assert got[0] == got[1]
    assert got[0].startswith(b"HTTP/1.1 201")
    assert (b"connection: close" in got[0]) is is_closed


def test_where_a_call_goes_may_be_said_in_other_ways(short: Site, ordinary: Site) -> None:
    for at in ("http://a/v1/rank", "//v1/rank", "/V1/rank/", "/v1/rank?x=y", "/v1/r%61nk"):
        request = rank(event=at).replace(b" /v1/rank ", f" {at} ".encode())
        (quick,), (slow,) = short.ask(request), ordinary.ask(request)
        assert undated(quick) == undated(slow)
        assert status(quick) == 201


@pytest.mark.parametrize(
    "at",
    [
        b"http://:80:80/rank",
        b"http:///v1/rank",
        b"http://a?/v1/rank",
        b"/v1/events/\xc3\xa9/reward",
        b"/v1/\xff/rank",
        b"/v1/rank#a#b?c",
        b"/v1/rank/%ff",
        b"/v1/events/%ff/reward",
        b"/v1/events//reward",
        b"*/v1/rank",
        b"a/v1/rank",
    ],
)
@pytest.mark.parametrize("behind", [GET, b"nonsense\r\n\r\n"])
def test_a_place_that_is_none_is_refused_as_on_the_ordinary_way(
    short: Site, ordinary: Site, at: bytes, behind: bytes
) -> None:
    data = b"{}" if b"reward" in at else body(event=at.hex())
    alone = post(data).replace(b"/v1/rank", at)
    for request in (close_after(alone), alone + close_after(behind)):
        quick, slow = (received(connect(site.port, request)) for site in (short, ordinary))
        assert undated(quick) == undated(slow)
        assert quick.startswith(b"HTTP/1.1 ")


REWARDS = [
    ("/v1/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/v1.0/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/v1.1-preview.3/events/{}/reward", b'{"value": 0.5}'),
    ("/personalizer/events/{}/reward?api-version=2022-09-01-preview", b'{"value": 0.5}'),
    ("/v1/events/{}/reward", b'{"slots": {"top": 0.5}}'),
]
BAD_REWARDS = [
    b"",
    b"{}",
    b"[]",
    b"\xff",
    b'{"value": 2}',
    b'{"value": NaN}',
    b'{"value": "1"}',
    b'{"value": null}',
    b'{"value": 1, "slots": {"a": 1}}',
    b'{"value": 1, "more": 1}',
    b'{"slots": {}}',
    b'{"slots": {"": 1}, "more": "\xff"}',
]


@pytest.mark.parametrize(("path", "good"), REWARDS)
def test_rewards_are_answered_to_the_byte_as_on_the_ordinary_way(
    short: Site, ordinary: Site, path: str, good: bytes
) -> None:
    event = f"reward%20{REWARDS.index((path, good))}"
    name = "Idempotency-Key" if path.startswith("/v1") else "X-Ms-Client-Request-Id"
    ids = (event, "nobody", "a%2Fb", "%00", "x" * 257)
    requests = [post(good, path.format(id)) for id in ids]
    requests += [post(bad, path.format(event)) for bad in BAD_REWARDS]
    requests += [
        with_headers(post(data, path.format(event)), {name: event + path})
        for data in (good, good, good.replace(b"0.5", b"0.25"))
    ]
    got = []
    for site in (short, ordinary):
        site.ask(rank(event=event.replace("%20", " ")))
        got.append([undated(site.ask(request)[0]) for request in requests])
    assert got[0] == got[1]
    has_slots = b"slots" in good and path.startswith("/v1")  # which the event has not
    wanted = [400, 400, 400] if has_slots else [204, 204, 409]
    assert [status(answer) for answer in got[0][-3:]] == wanted
    for site in (short, ordinary):
        site.gate.fails = True
        got.append([undated(site.ask(requests[1])[0])])
        site.gate.fails = False
    assert got[-1] == got[-2]
    assert status(got[-1][0]) == 503


def test_each_call_is_counted_once(short: Site) -> None:
    metrics = short.app.metrics
    before = metrics.requests["rank"]
    for request in (rank(event="counted"), rank(event="counted"), post(b"{")):
        short.ask(request)
    wait_until(lambda: metrics.requests["rank"] == before + 3)


def test_an_answer_that_cannot_be_given_harms_no_other(
    short: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    count = short.app.metrics.count

    def fails_at_first(*arguments: Any) -> None:
        monkeypatch.setattr(short.app.metrics, "count", count)
        raise OSError("out of numbers")

    before = short.taken
    with short.gate.held():
        clients = [connect(short.port, rank()) for _ in range(5)]
        wait_until(lambda: short.taken == before + 5)
        monkeypatch.setattr(short.app.metrics, "count", fails_at_first)
    got = [received_within(client, 2.0) for client in clients]
    assert sorted(answer[9:12] for answer in got) == [b"", b"201", b"201", b"201", b"201"]
    assert "out of numbers" in caplog.text


def test_a_connection_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    with serving(tmp_path, seconds=None) as site:
        for event in ("one", "two", "one"):
            site.ask(rank(event=event))
        client = connect(site.port)
        with site.gate.held():
            client.sendall(rank())
            wait_until(lambda: site.taken == 4)
            leave(client, is_reset=True)

        def is_forgotten() -> bool:
            gc.collect()
            return not any(asker() for asker in site.takers[0].askers)

        wait_until(is_forgotten)


def test_keys_are_asked_for_and_a_wrong_one_counts_once(tmp_path: Path) -> None:
    with serving(tmp_path, has_keys=True) as site:
        assert site.keys is not None
        keys = site.keys.keys
        for headers in (
            {"Authorization": f"Bearer {keys.admin.primary}"},
            {"authorization": f"bearer {keys.admin.secondary}"},
            {"Ocp-Apim-Subscription-Key": keys.admin.primary},
        ):
            assert status(site.ask(rank(headers=headers))[0]) == 201
        assert site.taken == 3
        for wanted, wrong in (
            (401, {}),
            (403, {"Authorization": f"Bearer {keys.read.primary}"}),
            (401, {"Authorization": keys.admin.primary}),
        ):
            assert status(site.ask(rank(headers=wrong))[0]) == wanted
        assert len(site.app.throttle) == 0
        guessed = rank(headers={"Authorization": "Bearer nobody\xe9"})
        right = rank(headers={"Authorization": f"Bearer {keys.admin.primary}"})
        for _ in range(10):
            assert status(site.ask(guessed)[0]) == 401
        (refused,) = site.ask(guessed)
        assert status(refused) == 429
        assert b"\r\nretry-after: " in refused
        assert status(site.ask(right)[0]) == 201
        assert site.taken == 4


def test_behind_a_proxy_who_asks_is_who_it_says(tmp_path: Path) -> None:
    with serving(tmp_path, replace(BINDING, proxies="127.0.0.1"), has_keys=True) as site:
        assert site.keys is not None
        right = {"Authorization": f"Bearer {site.keys.keys.admin.primary}"}
        assert status(site.ask(rank(headers=right))[0]) == 201
        assert site.taken == 1
        for _ in range(10):
            guess = {"Authorization": "Bearer nobody", "X-Forwarded-For": "192.0.2.7"}
            assert status(site.ask(rank(headers=guess))[0]) == 401
        for address, wanted in (("192.0.2.7", 429), ("192.0.2.8", 401)):
            assert status(site.ask(rank(headers=guess | {"X-Forwarded-For": address}))[0]) == wanted
            assert status(site.ask(rank(headers=right | {"X-Forwarded-For": address}))[0]) == 201


@pytest.mark.parametrize("path", [*PATHS, "http://a/personalizer/v1.0/rank"])
def test_a_log_that_fails_is_told_in_the_same_bytes(short: Site, ordinary: Site, path: str) -> None:
    got = []
    for site in (short, ordinary):
        site.gate.fails = True
        got.append(site.ask(rank(path))[0])
        site.gate.fails = False
        assert status(site.ask(rank(path))[0]) == 201
    assert undated(got[0]) == undated(got[1])
    assert status(got[0]) == 503
    assert b"\r\nretry-after: 1\r\n" in got[0]


def test_a_log_that_is_stuck_is_told_within_a_second_and_passes(tmp_path: Path) -> None:
    with serving(tmp_path, seconds=None) as site, closing(connect(site.port)) as client:
        with site.gate.held():
            begun = time.monotonic()
            client.sendall(rank(event="stuck"))
            (refused,) = answers(client)
            assert time.monotonic() - begun < 1.0 + LATE / 4
        assert status(refused) == 503
        assert b"\r\nretry-after: 1\r\n" in refused
        client.sendall(rank(event="stuck"))  # it was stored in the end
        (answer,) = answers(client)
        assert status(answer) == 201
        assert site.taken == 2
        assert received_within(client, 0.1) == b""  # the first one was answered once


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_leaves_while_its_call_is_taken_harms_nobody(
    short: Site, is_reset: bool
) -> None:
    event = f"gone {is_reset}"
    for _ in range(2):  # the second time, it is let go
        before = short.taken
        client = connect(short.port)
        with short.gate.held():
            client.sendall(rank(event=event))
            wait_until(lambda: short.taken == before + 1)
            leave(client, is_reset=is_reset)
            time.sleep(0.05)
    assert status(short.ask(rank())[0]) == 201
    assert short.service.log.of_request(f"rank:{event}") is not None


def test_stopping_answers_what_is_taken_and_closes(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.ask(rank(event="again"))
        requests = [rank(event=f"{i}") for i in range(20)]
        requests += [rank(event="again"), rank(event="more") + GET[:-2]]
        before = site.taken
        idle = connect(site.port, GET)
        answers(idle)
        with site.gate.held():
            clients = [connect(site.port, request) for request in requests[:-1]]
            late = connect(site.port, rank(event="late"))
            wait_until(lambda: site.taken == before + 22)
            late.sendall(rank(event="later"))
            time.sleep(0.05)
            site.server.stop()
            assert received(idle) == b""
        got = [received(client) for client in clients]
        assert {status(answer) for answer in got} == {201}
        assert all(b"\r\nconnection: close\r\n" in answer for answer in got)
        events = [body_of(answer)["event"] for answer in got]
        assert events == [*map(str, range(20)), "again"]
        both = received(late)
        assert both.count(b"HTTP/1.1 201") == 2
        assert both.count(b"connection: close") == 1
        site.thread.join(PATIENCE)
        assert not site.thread.is_alive()


def test_without_room_a_call_is_told_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path, replace(BINDING, connections=1)) as site:
        with site.gate.held():
            first = connect(site.port, rank())
            wait_until(lambda: site.taken == 1)
            refused = received(connect(site.port, rank()))
            assert status(refused) == 503
            assert b"retry-after: 1" in refused
        assert status(answers(first)[0]) == 201
        assert status(site.ask(rank())[0]) == 201  # for which the first, which rests, is sent away
        assert received(first) == b""


def test_after_a_taken_call_heads_and_rests_are_timed(tmp_path: Path) -> None:
    binding = replace(BINDING, head_seconds=HEAD_SECONDS, keep_alive_seconds=1)
    with serving(tmp_path, binding) as site:
        half, idle, large = (connect(site.port) for _ in range(3))
        large.sendall(post(b" " * (MOST_BYTES + 1)))
        assert status(answers(large)[0]) == 413
        begun = time.monotonic()
        for client in (half, idle, large):
            client.sendall(rank())
            assert status(answers(client)[0]) == 201
        assert site.taken == 3
        half.sendall(b"POST /v1/ra")
        large.sendall(b"POST /v1/ra")
        for client in (half, large):
            assert status(received(client)) == 408
        assert HEAD_SECONDS - 0.2 < time.monotonic() - begun < HEAD_SECONDS + LATE
        assert received(idle) == b""
        assert 0.8 < time.monotonic() - begun < 1 + LATE


def test_over_tls_calls_are_taken_too(tmp_path: Path) -> None:
    certificate, key = made_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(certificate))
    binding = replace(BINDING, certificate=certificate, private_key=key)
    with serving(tmp_path / "data", binding) as site:

        def secure() -> socket.socket:
            return context.wrap_socket(connect(site.port), server_hostname="localhost")

        with closing(secure()) as client:
            for event in ("one", "two", "two"):
                client.sendall(rank(event=event))
                assert body_of(answers(client)[0])["event"] == event
            assert site.taken == 3
            client.sendall(rank(event="three") + GET)
            assert [status(answer) for answer in answers(client, 2)] == [201, 200]
        for is_reset in (False, True):
            before, client = site.taken, secure()
            with site.gate.held():
                client.sendall(rank(event="two"))
                wait_until(lambda: site.taken == before + 1)
                leave(client, is_reset=is_reset)
                time.sleep(0.05)
        with closing(secure()) as client:
            before = site.taken
            with site.gate.held():
                client.sendall(rank())
                wait_until(lambda: site.taken == before + 1)
                assert sent_until_stuck(client, 2**30) < 2**24


def test_one_connection_serves_calls_of_both_ways_in_turn(short: Site) -> None:
    before = short.taken
    with closing(connect(short.port)) as client:
        for i in range(20):
            client.sendall(rank(event=f"turn {i}"))
            (answer,) = answers(client)
            client.sendall(GET.replace(b"/healthz", b"/v1/events/turn%%20%d" % i))
            assert body_of(answers(client)[0])["answer"] == body_of(answer)
    assert short.taken == before + 20


def test_decisions_that_take_long_do_not_count_as_waiting_for_the_log(tmp_path: Path) -> None:
    with serving(tmp_path, seconds=None) as site:
        before = site.service.writer.last
        with crowded(site, seconds=1.0) as sizes:
            got = together(site.port, [rank(event=f"{i}") for i in range(AT_ONCE + 5)])
        assert {status(answer) for answer in got} == {201}
        assert len(sizes) < 6, sizes
        assert site.service.writer.last == before + AT_ONCE + 5


class Noted(Slip):
    """A slip that notes how it ended, and may fail at that."""

    def __init__(self, waiting: Waiting, *, fails: bool = False) -> None:
        super().__init__(waiting)
        self.fails = fails
        self.outcomes: list[Outcome] = []

    def end(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self.fails:
            raise OSError("no")


def test_one_that_fails_to_end_harms_no_other() -> None:
    async def run() -> None:
        said: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: said.append(what))
        waiting = Waiting(0.05)
        slips = [Noted(waiting, fails=i in (0, 3)) for i in range(6)]
        for slip in slips:
            waiting.watch(slip)
        for seq, slip in enumerate(slips[:3]):
            waiting.arrive(slip, seq)
        await asyncio.sleep(0.1)
        assert [slip.outcomes for slip in slips[:3]] == [[0], [1], [2]]
        assert all(isinstance(slip.outcomes[0], LogUnavailable) for slip in slips[3:])
        assert len(said) == 2
        later = Noted(waiting)
        waiting.watch(later)
        await asyncio.sleep(0.1)
        for slip in (*slips, later):
            waiting.arrive(slip, 7)  # too late
        await asyncio.sleep(0.01)
        assert all(len(slip.outcomes) == 1 for slip in (*slips, later))

    asyncio.run(run())


def test_what_has_come_is_not_late_though_nobody_looked() -> None:
    async def run() -> None:
        waiting = Waiting(0.02)
        slip = Noted(waiting)
        waiting.watch(slip)
        await asyncio.sleep(0)
        thread = threading.Thread(target=slip.set_result, args=(5,))
        thread.start()
        thread.join()
        time.sleep(0.05)  # the loop is busy
        await asyncio.sleep(0.01)
        assert slip.outcomes == [5]

    asyncio.run(run())


def test_a_writer_outlives_the_loop() -> None:
    async def made() -> Noted:
        return Noted(Waiting(1.0))

    asyncio.run(made()).set_result(3)


@contextmanager
def crowded(site: Site, seconds: float = 0.02) -> Iterator[list[int]]:
    """Make each decision slow, so that calls come together; give how many were decided at once."""
    decider, sizes = site.service.decider, []
    draft = decider.draft

    def slow(asked: Any) -> Any:
        sizes.append(len(asked))
        if len(asked) > 1 or len(sizes) < 3:
            time.sleep(seconds)
        return draft(asked)

    decider.draft = slow  # type: ignore[method-assign]
    try:
        yield sizes
    finally:
        del decider.draft


def together(port: int, requests: Sequence[bytes]) -> list[bytes]:
    """Return the answers to requests on connections of their own, sent at once."""
    clients = [connect(port, GET) for _ in requests]
    for client in clients:
        answers(client)  # so it is accepted
    for client, request in zip(clients, requests, strict=True):
        client.sendall(request)
    got = [answers(client)[0] for client in clients]
    for client in clients:
        client.close()
    return got


def body(path: str = NATIVE, *, event: str | None = None, who: str = "u") -> bytes:
    names = ("id", "features")
    if path == NATIVE:
        ranked: dict[str, Any] = {"context": {"who": who}, "actions": [{"id": "a"}, {"id": "b"}]}
        return json.dumps(ranked | ({} if event is None else {"event": event})).encode()
    actions = [dict(zip(names, (id, [{"x": 1}]), strict=True)) for id in "ab"]
    ranked = {"contextFeatures": [{"who": who}], "actions": actions}
    return json.dumps(ranked | ({} if event is None else {"eventId": event})).encode()


def post(body: bytes | dict[str, Any], path: str = NATIVE) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def rank(
    path: str = NATIVE,
    *,
    event: str | None = None,
    who: str = "u",
    headers: dict[str, str] | None = None,
) -> bytes:
    where = NATIVE if path.endswith(NATIVE) else path
    return with_headers(post(body(where, event=event, who=who), path), headers or {})


def with_headers(request: bytes, headers: dict[str, str]) -> bytes:
    lines = "".join(f"\r\n{name}: {value}" for name, value in headers.items())
    return request.replace(b"\r\nHost: a", b"\r\nHost: a" + lines.encode("latin-1"), 1)


def answers(client: socket.socket, count: int = 1) -> list[bytes]:
    """Return so many answers, each of which says how long it is."""
    data = b""
    found: list[bytes] = []
    while len(found) < count:
        end = data.find(b"\r\n\r\n") + 4
        length = re.search(rb"content-length: (\d+)", data[:end])
        size = end + (int(length[1]) if length else 0)
        if end > 3 and len(data) >= size:
            found.append(data[:size])
            data = data[size:]
        else:
            part = client.recv(65_536)
            assert part, (found, data)
            data += part
    assert not data
    return found


def received_within(client: socket.socket, seconds: float) -> bytes:
    """Return what comes in some time, and close."""
    client.settimeout(seconds)
    with closing(client), suppress(TimeoutError, ConnectionResetError):
        return client.recv(65_536)
    return b""


def sent_until_stuck(client: socket.socket, most: int) -> int:
    """Return how many bytes could be sent before nobody read them for a while."""
    client.settimeout(0.5)
    sent = 0
    try:
        while sent < most:
            sent += client.send(b"x" * 65_536)
    except TimeoutError:
        pass
    return sent


def leave(client: socket.socket, *, is_reset: bool) -> None:
    if is_reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer[9:12])


def body_of(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def undated(answer: bytes) -> bytes:
    return re.sub(rb"\r\ndate: [^\r]*", b"", answer)
