"""The two ways from bytes to the API, ASGI and direct: each keeps the same promises of HTTP."""

import gc
import json
import re
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rbmle.service.api.base import MOST_BYTES
from rbmle.service.http.connections import HELD_BYTES, HELD_SECONDS
from tests.service.http.samples import made_certificate
from tests.service.serving import BINDING, Site, rank_body, serving
from tests.service.wire import close_after, connect, received, replies
from tests.services import PATIENCE, wait_until

HEAD_SECONDS = 0.5
LATE = 4.0  # seconds after a deadline by which even a busy machine has kept it
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
ADAPTERS = pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "asgi"])


@pytest.fixture(scope="module", params=[True, False], ids=["direct", "asgi"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("site"), is_direct=request.param) as site:
        yield site


def test_both_adapters_send_the_same_bytes(tmp_path: Path) -> None:
    old = {"contextFeatures": [{"who": "u"}], "actions": [{"id": "a", "features": [{"x": 1}]}]}
    requests = [
        rank(event="same"),
        rank(event="same", who="other"),
        post(old | {"eventId": "old"}, "/personalizer/v1.0/rank"),
        post(b"{", "/personalizer/v1.0/rank"),
        post({"value": 1}, "/v1/events/same/reward"),
        post({"value": 2}, "/v1/events/same/reward"),
        GET.replace(b"/healthz", b"/v1/configuration"),
        GET.replace(b"/healthz", b"/v1/rank"),
        GET.replace(b"/healthz", b"/v1/nothing"),
        GET.replace(b"GET /healthz", b"HEAD /v1/configuration"),
    ]
    got = []
    for is_direct in (True, False):
        with serving(tmp_path / str(is_direct), is_direct=is_direct) as site:
            got.append([undated(received(connect(site.port, close_after(r)))) for r in requests])
            got[-1] += [undated(site.ask(request)[0]) for request in requests[:-1]]
            assert len(site.direct) == (len(requests) - 1) * is_direct
            for name in (b"\r\ndate: ", b"\r\ncontent-type: application/json\r\n"):
                assert name in site.ask(requests[0])[0]
    assert got[0] == got[1]
    codes = [201, 409, 201, 400, 204, 400, 200, 405, 404]
    assert [status(reply) for reply in got[0][len(requests) :]] == codes


def test_a_connection_serves_requests_of_all_kinds_in_turn(site: Site) -> None:
    with closing(connect(site.port)) as client:
        for i in range(20):
            client.sendall(rank(event=f"turn {i}"))
            (reply,) = replies(client)
            client.sendall(GET.replace(b"/healthz", b"/v1/events/turn%%20%d" % i))
            assert body_of(replies(client)[0])["answer"] == body_of(reply)
            client.sendall(GET)
            assert status(replies(client)[0]) == 200


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
def test_pipelined_requests_are_replied_to_in_order(
    site: Site, parts: list[str], statuses: list[int]
) -> None:
    made = {"get": GET, "bad": post(b"{"), "garbage": b"nonsense\r\n\r\n"}
    events = [f"{'-'.join(parts)} {i}" for i in range(len(parts))]
    requests = [
        made.get(part) or rank(event=event) for part, event in zip(parts, events, strict=True)
    ]
    got = site.ask(b"".join(requests), count=len(statuses))
    assert [status(reply) for reply in got] == statuses
    for reply, part, event in zip(got, parts, events, strict=False):
        assert part != "rank" or body_of(reply)["event"] == event
    if parts[-1] == "garbage":
        reply = received(connect(site.port, b"".join(requests)))
        assert reply.count(b"HTTP/1.1 ") == len(statuses)
        assert b"connection: close" in reply


def test_a_request_in_pieces_is_answered_like_a_complete_one(site: Site) -> None:
    request = rank(event="in pieces")
    (whole,) = site.ask(request)
    head = request.index(b"\r\n\r\n")
    for cut in (1, 6, 12, 18, 25, head, head + 2, head + 4, head + 5, len(request) - 1):
        (reply,) = site.ask(request[:cut], request[cut:])
        assert undated(reply) == undated(whole), cut
    assert undated(site.ask(*(bytes([byte]) for byte in request))[0]) == undated(whole)
    two = rank(event="one") + rank(event="two")
    for cut in (len(two) // 2 - 1, len(two) // 2, len(two) // 2 + 1, len(two) // 2 + 20):
        one, other = site.ask(two[:cut], two[cut:], count=2)
        assert [body_of(one)["event"], body_of(other)["event"]] == ["one", "two"]


def test_a_slow_body_is_accepted(site: Site) -> None:
    request = rank(event="slow")
    end = request.index(b"\r\n\r\n") + 4
    for cut in (end, end + 5):
        with closing(connect(site.port)) as client:
            client.sendall(request[:cut])
            time.sleep(3 * HELD_SECONDS)
            client.sendall(request[cut:])
            assert body_of(replies(client)[0])["event"] == "slow"


def test_only_the_direct_adapter_submits_a_body_that_follows_its_head_at_once(site: Site) -> None:
    request = rank(event="in two writes")
    end, before = request.index(b"\r\n\r\n") + 4, len(site.direct)
    assert status(site.ask(request[:end], request[end:])[0]) == 201
    assert len(site.direct) - before == int(site.is_direct)


def test_a_large_body_is_received_and_a_larger_one_refused(site: Site) -> None:
    large = b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"
    with closing(connect(site.port)) as client:
        client.sendall(large + bytes(2 * HELD_BYTES))
        time.sleep(3 * HELD_SECONDS)
        client.sendall(bytes(900_000 - 2 * HELD_BYTES))
        assert status(replies(client)[0]) == 400
    assert status(site.ask(post(b" " * (MOST_BYTES + 1)))[0]) == 413


def test_bodies_in_chunks_are_received(site: Site) -> None:
    json_ = rank_body("in chunks")
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (json_[:7], json_[7:])) + b"0\r\n\r\n"
    head = b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for parts in ([head + chunks], [head, chunks], [head + chunks[:5], chunks[5:]]):
        assert body_of(site.ask(*parts)[0])["event"] == "in chunks"
    smuggled = head.replace(b"Host: a", b"Host: a\r\nContent-Length: 3") + chunks
    for wrong in (head + b"zz\r\n", head + b"3\r\nabcd\r\n0\r\n\r\n", smuggled):
        assert status(site.ask(wrong)[0]) == 400


def test_expect_100_continue_is_answered(site: Site) -> None:
    request = rank(event="expect", headers={"Expect": "100-continue"})
    end = request.index(b"\r\n\r\n") + 4
    for parts in ([request[:end], request[end:]], [request]):
        first, second = site.ask(*parts, count=2)
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
def test_connection_headers_are_respected(
    site: Site, version: str, headers: dict[str, str]
) -> None:
    request = rank(event=f"{version} {headers}", headers=headers)
    request = request.replace(b"HTTP/1.1", f"HTTP/{version}".encode())
    is_closed = version == "1.0" or headers.get("Connection") == "close"
    with closing(connect(site.port, request)) as client:
        (reply,) = replies(client)
        assert reply.startswith(b"HTTP/1.1 201")
        assert (b"connection: close" in reply) is is_closed
        if is_closed:
            assert received(client) == b""
        else:
            client.sendall(GET)
            assert status(replies(client)[0]) == 200


def test_a_path_may_be_written_in_other_ways(site: Site) -> None:
    for at in (
        "http://a/v1/rank",
        "//v1/rank",
        "/V1/rank/",
        "/v1/rank?x=y",
        "/v1/r%61nk",
        "/v1/rank#a#b?c",
    ):
        request = rank(event=at).replace(b" /v1/rank ", f" {at} ".encode())
        assert body_of(site.ask(request)[0])["event"] == at


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        (b"http://:80:80/rank", 400),
        (b"http:///v1/rank", 400),
        (b"http://a?/v1/rank", 400),
        (b"/v1/events/\xc3\xa9/reward", 400),
        (b"/v1/\xff/rank", 400),
        (b"/v1/rank/%ff", 400),
        (b"/v1/events/%ff/reward", 400),
        (b"/v1/events//reward", 404),
        (b"/v1/nothing/rank", 404),
        (b"/personalizer/rank", 400),  # no version
    ],
)
@pytest.mark.parametrize("behind", [b"", GET, b"nonsense\r\n\r\n"])
def test_an_invalid_path_is_refused(site: Site, at: bytes, wanted: int, behind: bytes) -> None:
    data = b"{}" if b"reward" in at else rank_body(at.hex())
    alone = post(data).replace(b"/v1/rank", at)
    request = alone + close_after(behind) if behind else close_after(alone)
    assert status(received(connect(site.port, request))) == wanted


@pytest.mark.parametrize("more", ["rank", "get", "half", "two", "garbage", "upgrade", "refused"])
@pytest.mark.parametrize("is_repeated", [False, True])
def test_requests_during_a_pending_one_are_answered_after_it(
    site: Site, more: str, is_repeated: bool
) -> None:
    event = f"pending {more} {is_repeated}"
    if is_repeated:
        site.ask(rank(event=event))
    after = rank(event=f"{event} after")
    data, count = {
        "rank": (after, 1),
        "get": (GET, 1),
        "half": (after[:-3], 1),
        "two": (GET + after, 2),
        "garbage": (b"nonsense\r\n\r\n", 0),
        "upgrade": (with_headers(after, {"Connection": "Upgrade", "Upgrade": "h2c"}), 1),
        "refused": (post(b"{"), 1),
    }[more]
    with closing(connect(site.port)) as client:
        with site.pending((client, rank(event=event))):
            client.sendall(data)
            time.sleep(0.05)
        if more == "half":
            client.sendall(after[-3:])
        if more == "garbage":  # it may be refused, and the connection is closed
            first, *others = received(client).split(b"HTTP/1.1 ")[1:]
            assert first.startswith(b"201")
            assert [other[:3] for other in others] in ([], [b"400"])
            return
        first, *others = replies(client, 1 + count)
        assert (status(first), body_of(first)["event"]) == (201, event)
        if more not in ("get", "refused"):
            assert body_of(others[-1])["event"] == f"{event} after"


def test_input_during_a_pending_request_is_not_read_without_limit(
    site: Site,
) -> None:
    with closing(connect(site.port)) as client, site.pending((client, rank())):
        assert sent_until_stuck(client, 2**30) < 2**24


def test_a_client_that_does_not_read_its_replies_gets_no_more_of_them(site: Site) -> None:
    site.unsent = 0
    request = post({"actions": [{"id": f"{i:-^200}"} for i in range(50)]})

    def ranks() -> int:
        return site.app.metrics.requests["rank"]

    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", site.port))
        before = ranks()
        for count in range(1, 2_000):
            client.sendall(request)
            end = time.monotonic() + 0.5
            while ranks() < before + count and time.monotonic() < end:
                time.sleep(0.0002)
            if ranks() < before + count or site.unsent > 2**20:
                break
    assert 10 < count < 1_000
    assert site.unsent < 2**20


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_disconnects_during_its_request_harms_no_other(
    site: Site, is_reset: bool
) -> None:
    event = f"gone {is_reset}"
    for _ in range(2):  # the second time, it was stored before
        client = connect(site.port)
        with site.pending((client, rank(event=event))):
            leave(client, is_reset=is_reset)
            time.sleep(0.05)
    assert status(site.ask(rank())[0]) == 201
    assert site.is_stored(event)


def test_a_closed_connection_is_forgotten(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.app.api.commits.seconds = 0.5
        for event in ("one", "two", "one"):
            site.ask(rank(event=event))
        client = connect(site.port)
        with site.pending((client, rank())):
            leave(client, is_reset=True)

        def is_forgotten() -> bool:
            gc.collect()
            return not any(connection() for connection in site.connections)

        wait_until(is_forgotten)
        assert status(site.ask(rank())[0]) == 201


@ADAPTERS
def test_a_stop_answers_pending_requests_and_closes(tmp_path: Path, is_direct: bool) -> None:
    with serving(tmp_path, is_direct=is_direct) as site:
        site.ask(rank(event="again"))
        requests = [rank(event=f"{i}") for i in range(20)] + [rank(event="again")]
        idle = connect(site.port, GET)
        replies(idle)
        clients = [connect(site.port) for _ in requests]
        late = connect(site.port)
        asked = [*zip(clients, requests, strict=True), (late, rank(event="late"))]
        with site.pending(*asked):
            late.sendall(rank(event="later"))
            time.sleep(0.05)
            site.server.stop()
            assert received(idle) == b""
        got = [received(client) for client in clients]
        assert {status(reply) for reply in got} == {201}
        assert all(b"\r\nconnection: close\r\n" in reply for reply in got)
        assert [body_of(reply)["event"] for reply in got] == [*map(str, range(20)), "again"]
        both = received(late)
        assert both.count(b"HTTP/1.1 201") == 2
        assert both.count(b"connection: close") == 1
        site.thread.join(PATIENCE)
        assert not site.thread.is_alive()


@ADAPTERS
def test_without_room_a_request_is_answered_503(tmp_path: Path, is_direct: bool) -> None:
    binding = replace(BINDING, connections=1)
    with serving(tmp_path, binding, is_direct=is_direct) as site:
        first = connect(site.port)
        with site.pending((first, rank())):
            refused = received(connect(site.port, rank()))
            assert status(refused) == 503
            assert b"retry-after: 1" in refused
        assert status(replies(first)[0]) == 201
        assert status(site.ask(rank())[0]) == 201  # for which the first, which rests, is sent away
        assert received(first) == b""


@ADAPTERS
def test_heads_and_idle_times_are_limited_after_a_reply(tmp_path: Path, is_direct: bool) -> None:
    binding = replace(BINDING, head_seconds=HEAD_SECONDS, keep_alive_seconds=1)
    with serving(tmp_path, binding, is_direct=is_direct) as site:
        half, idle, large = (connect(site.port) for _ in range(3))
        large.sendall(post(b" " * (MOST_BYTES + 1)))
        assert status(replies(large)[0]) == 413
        begun = time.monotonic()
        for client in (half, idle, large):
            client.sendall(rank())
            assert status(replies(client)[0]) == 201
        half.sendall(b"POST /v1/ra")
        large.sendall(b"POST /v1/ra")
        for client in (half, large):
            assert status(received(client)) == 408
        assert HEAD_SECONDS - 0.2 < time.monotonic() - begun < HEAD_SECONDS + LATE
        assert received(idle) == b""
        assert 0.8 < time.monotonic() - begun < 1 + LATE


@ADAPTERS
def test_requests_work_the_same_over_tls(tmp_path: Path, is_direct: bool) -> None:
    certificate, key = made_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(certificate))
    binding = replace(BINDING, certificate=certificate, private_key=key)
    with serving(tmp_path / "data", binding, is_direct=is_direct) as site:

        def secure() -> socket.socket:
            return context.wrap_socket(connect(site.port), server_hostname="localhost")

        with closing(secure()) as client:
            for event in ("one", "two", "two"):
                client.sendall(rank(event=event))
                assert body_of(replies(client)[0])["event"] == event
            client.sendall(rank(event="three") + GET)
            last = replies(client, 2)
            assert [status(reply) for reply in last] == [201, 200]
            for reply in last:  # browsers are told to use TLS from now on
                assert b"\r\nstrict-transport-security: max-age=31536000\r\n" in reply
        assert len(site.direct) == 3 * is_direct
        for is_reset in (False, True):
            client = secure()
            with site.pending((client, rank(event="two"))):
                leave(client, is_reset=is_reset)
                time.sleep(0.05)
        with closing(secure()) as client, site.pending((client, rank())):
            assert sent_until_stuck(client, 2**30) < 2**24


@ADAPTERS
def test_the_client_address_comes_from_a_trusted_proxy(tmp_path: Path, is_direct: bool) -> None:
    binding = replace(BINDING, proxies="127.0.0.1")
    with serving(tmp_path, binding, is_direct=is_direct, has_keys=True) as site:
        guess = {"Authorization": "Bearer nobody", "X-Forwarded-For": "192.0.2.7"}
        for _ in range(10):
            assert status(site.ask(rank(headers=guess))[0]) == 401
        other = guess | {"X-Forwarded-For": "192.0.2.8"}
        right = {"Authorization": f"Bearer {site.keys.admin.primary}"}
        for headers, wanted in ((guess, 429), (other, 401), (right, 201)):
            assert status(site.ask(rank(headers=headers))[0]) == wanted
        addresses = {request.address for request in site.direct}
        assert not is_direct or addresses == {"192.0.2.7", "192.0.2.8", "127.0.0.1"}


@ADAPTERS
def test_a_key_that_is_sent_twice_is_refused(tmp_path: Path, is_direct: bool) -> None:
    with serving(tmp_path, is_direct=is_direct, has_keys=True) as site:
        right, wrong = f"Bearer {site.keys.admin.primary}", "Bearer some-other-key-of-nobody"
        once = rank(headers={"Authorization": right})
        assert status(site.ask(once)[0]) == 201
        assert b"strict-transport" not in site.ask(once)[0].lower()  # this is plain HTTP
        metrics = GET.replace(b"/healthz", b"/metrics")
        for first, second in ((right, wrong), (wrong, right), (right, right)):
            twice = {"Authorization": first, "authorization": second}
            for request in (rank(headers=twice), with_headers(metrics, twice)):
                (reply,) = site.ask(request)
                assert status(reply) == 400
                assert "authorization was sent more than once" in body_of(reply)["error"]["message"]
        key = site.keys.admin.primary
        both = {"Authorization": right, "Idempotency-Key": "a", "idempotency-key": "b"}
        for headers in ({"Ocp-Apim-Subscription-Key": key, "ocp-apim-subscription-key": key}, both):
            assert status(site.ask(rank(headers=headers))[0]) == 400


def post(body: bytes | dict[str, Any], path: str = "/v1/rank") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def rank(
    *, event: str | None = None, who: str = "u", headers: dict[str, str] | None = None
) -> bytes:
    return with_headers(post(rank_body(event, who)), headers or {})


def with_headers(request: bytes, headers: dict[str, str]) -> bytes:
    lines = "".join(f"\r\n{name}: {value}" for name, value in headers.items())
    return request.replace(b"\r\nHost: a", b"\r\nHost: a" + lines.encode("latin-1"), 1)


def sent_until_stuck(client: socket.socket, most: int) -> int:
    """Return how many bytes could be sent before nobody read them for a while."""
    client.settimeout(0.5)
    sent = 0
    with suppress(TimeoutError):
        while sent < most:
            sent += client.send(b"x" * 65_536)
    return sent


def leave(client: socket.socket, *, is_reset: bool) -> None:
    if is_reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def status(reply: bytes) -> int:
    assert reply.startswith(b"HTTP/1.1 "), reply[:100]
    return int(reply[9:12])


def body_of(reply: bytes) -> Any:
    return json.loads(reply.partition(b"\r\n\r\n")[2])


def undated(reply: bytes) -> bytes:
    return re.sub(rb"\r\ndate: [^\r]*", b"", reply)
