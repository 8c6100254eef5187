"""Connections that end: heads in time and of a size, and replies that are read."""

import http.client
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from rbmle.service.http.connections import HEAD_LIMIT
from tests.service.http.samples import (
    GET,
    HEAD_SECONDS,
    LATE,
    LIMIT,
    QUICK,
    answered,
    post,
    running,
)
from tests.service.wire import close_after, connect, received


@pytest.mark.parametrize("count", [50, pytest.param(300, marks=pytest.mark.slow)])
def test_slow_connections_are_closed_in_time_while_good_requests_stay_fast(count: int) -> None:
    with running(replace(QUICK, connections=5_000)) as port:
        silent = [connect(port) for _ in range(count)]
        half_heads = [connect(port, b"GET / HTTP/1.1\r\nHost: a\r\nX: ") for _ in range(count)]
        half_bodies = [connect(port, post(b"half", 8)) for _ in range(count)]
        drips = [connect(port, b"POST / HTTP/1.1\r\n") for _ in range(count)]
        opened = time.monotonic()
        with dripping(drips):
            waits = latencies(port, 0.7 * HEAD_SECONDS)
            answers = [received(s) for s in (*silent, *half_heads, *half_bodies, *drips)]
        seconds = time.monotonic() - opened
    assert answers[:count] == [b""] * count
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers[count:])
    assert all(b"connection: close" in answer for answer in answers[count:])
    assert seconds < HEAD_SECONDS + LATE
    assert statistics.median(waits) < 0.05
    print(
        f"{4 * count} slow connections closed {seconds:.2f} s after the last opened; {len(waits)} good "
        f"requests: p50 {1e3 * statistics.median(waits):.2f} ms, "
        f"p99 {1e3 * statistics.quantiles(waits, n=100)[-1]:.2f} ms"
    )


def test_an_incomplete_head_is_timed_after_many_requests(server: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", server)
    for body in (b"one", b"", b"three" * 1_000):
        client.request("POST", "/", body)
        assert client.getresponse().read() == body
    assert client.sock is not None
    time.sleep(0.3)
    client.sock.sendall(b"GE")
    begun = time.monotonic()
    assert received(client.sock).startswith(b"HTTP/1.1 408")
    assert HEAD_SECONDS - 0.2 < time.monotonic() - begun < HEAD_SECONDS + LATE
    client.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", b"400"),
        (b"GET / HTTP/1.0\r\nhost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.0\r\n\r\n", b"200"),
    ],
)
def test_a_request_must_have_one_host_header(server: int, head: bytes, status: bytes) -> None:
    answer = received(connect(server, head))
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("junk", [b"\r\n", b"0"])
def test_empty_lines_do_not_keep_a_connection(server: int, junk: bytes) -> None:
    begun = time.monotonic()
    assert received(connect(server, junk)).startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))
    assert time.monotonic() - begun < HEAD_SECONDS + LATE


def test_an_idle_connection_is_closed_silently() -> None:
    with running(replace(QUICK, keep_alive_seconds=1)) as port:
        client = connect(port, GET)
        begun = time.monotonic()
        assert received(client).count(b"HTTP/1.1") == 1
        assert 0.8 < time.monotonic() - begun < 1 + LATE


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_an_upgrade_header_is_ignored(server: int, protocol: bytes) -> None:
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol
    request = post(b"body").replace(b"Host: a", b"Host: a\r\n" + wish)
    with closing(connect(server)) as client:
        for data in (request, request[:-2]):
            client.sendall(data)
        time.sleep(0.1)
        client.sendall(request[-2:] + close_after(request))
        assert received(client).count(b"\r\n\r\nbody") == 3
    assert received(connect(server, b"CONNECT a:1 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 400")


def test_a_body_in_chunks_is_received_and_refused_over_the_limit(server: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = connect(server, head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert answered(client).endswith(b"\r\n\r\nabcde")
    assert received(connect(server, head + b"nonsense\r\n")).startswith(b"HTTP/1.1 400")
    client.sendall(head + b"%x\r\n" % 10**9 + bytes(3 * LIMIT))
    assert answered(client).startswith(b"HTTP/1.1 413")
    client.close()


def test_a_client_that_sends_too_much_can_read_why(server: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", server)
    client.request("POST", "/", bytes(100 * LIMIT))
    assert client.getresponse().status == 413
    client.close()


def test_an_unread_body_does_not_keep_a_connection_open(server: int) -> None:
    client = connect(server, post(b"", 10**12))
    begun = time.monotonic()
    with dripping([client]):
        assert received(client).startswith(b"HTTP/1.1 413")
    assert time.monotonic() - begun < HEAD_SECONDS + LATE


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_head_over_the_limit_is_refused(server: int, pieces: int) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n"
    client = connect(server)
    size = len(head) // pieces + 1
    for start in range(0, len(head), size):
        client.sendall(head[start : start + size])
        time.sleep(0.01)
    assert answered(client).startswith(b"HTTP/1.1 431")
    client.close()


def test_a_head_under_the_limit_is_accepted_with_a_large_body(server: int) -> None:
    head = post(b"", LIMIT)[:-4] + b"\r\nX: " + b"x" * (HEAD_LIMIT - 200) + b"\r\n\r\n"
    client = connect(server, head + b"y" * LIMIT)
    assert answered(client, LIMIT).endswith(b"\r\n\r\n" + b"y" * LIMIT)
    client.close()


def test_endless_trailers_are_refused(server: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
    with closing(connect(server, head)) as client, pytest.raises(OSError, match=r"reset|Broken"):
        send_for_ever(client)


def test_the_longest_waiting_connection_is_closed_for_a_new_one() -> None:
    with running(replace(QUICK, connections=2, head_seconds=30)) as port:
        busy = connect(port, GET.replace(b"/ ", b"/sleep/0.8 "))
        half = connect(port, b"GET / HT")
        time.sleep(0.3)
        third = connect(port, close_after(GET))
        assert received(third).startswith(b"HTTP/1.1 200")
        away = received(half)
        assert away.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in away
        assert answered(busy).startswith(b"HTTP/1.1 200")
        busy.close()


def test_a_client_that_does_not_read_is_cut_off() -> None:
    with running(QUICK) as port:
        client = connect(port, GET.replace(b"/ ", b"/large/30000000 "))
        time.sleep(HEAD_SECONDS + 2)  # it is looked at once a second
        assert len(received(client)) < 30_000_000


@contextmanager
def dripping(sockets: list[socket.socket]) -> Iterator[None]:
    """Send a byte ten times a second to each."""
    is_over = threading.Event()

    def drip() -> None:
        left = list(sockets)
        while not is_over.wait(0.1):
            for client in tuple(left):
                try:
                    client.send(b"x")
                except OSError:
                    left.remove(client)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def send_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(b"x" * 10_000)
        time.sleep(0.001)


def latencies(port: int, seconds: float) -> list[float]:
    """Return how long each of as many requests as can be takes, on one connection.

    One goes before them, so that those who connected earlier are accepted by then.
    """
    waits = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as client:
        _ask(client)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            _ask(client)
            waits.append(time.perf_counter() - begun)
    return waits


def _ask(client: http.client.HTTPConnection) -> None:
    client.request("POST", "/", b"good")
    assert client.getresponse().read() == b"good"
