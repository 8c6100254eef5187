"""Real connections, good and bad, to the server that stands before the application."""

import asyncio
import http.client
import select
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rbmle.service.api.faults import BodyNotReceivedError, GoneError, TooLargeError, TooSlowError
from rbmle.service.http.asgi import receive_body
from rbmle.service.http.binding import Binding, ServerError
from rbmle.service.http.connections import HEAD_LIMIT
from rbmle.service.http.server import Server
from tests.service.wire import close_after, connect, received

LIMIT = 100_000
BODY_SECONDS = 1.5
HEAD_SECONDS = 0.8
LATE = 4.0  # seconds after a deadline by which even a busy machine has kept it
QUICK = Binding(port=0, head_seconds=HEAD_SECONDS, graceful_seconds=5)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
STATUS = {TooLargeError: 413, TooSlowError: 408}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body, after as long as the path says, or as often."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    headers = [(b"client", str(scope["client"][0]).encode())]
    try:
        body, status = await receive_body(scope, receive, limit=LIMIT, seconds=BODY_SECONDS), 200
    except GoneError:
        return
    except BodyNotReceivedError as error:
        body, status = str(error).encode(), STATUS[type(error)]
        headers += [(b"connection", b"close")] * (status == 408)
    what, _, number = scope["path"].strip("/").partition("/")
    if what == "sleep":
        await asyncio.sleep(float(number))
    elif what == "large":
        body = bytes(int(number))
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def live(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        assert (await receive())["type"] == f"lifespan.{event}"
        await send({"type": f"lifespan.{event}.complete"})


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with running(QUICK) as port:
        yield port


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


def test_a_connection_serves_many_requests_and_then_half_a_head_is_timed(server: int) -> None:
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
def test_a_request_has_one_host_header(server: int, head: bytes, status: bytes) -> None:
    answer = received(connect(server, head))
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("junk", [b"\r\n", b"0"])
def test_empty_lines_do_not_keep_a_connection(server: int, junk: bytes) -> None:
    begun = time.monotonic()
    assert received(connect(server, junk)).startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))
    assert time.monotonic() - begun < HEAD_SECONDS + LATE


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with running(replace(QUICK, keep_alive_seconds=1)) as port:
        client = connect(port, GET)
        begun = time.monotonic()
        assert received(client).count(b"HTTP/1.1") == 1
        assert 0.8 < time.monotonic() - begun < 1 + LATE


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_a_wish_for_another_protocol_is_not_heard(server: int, protocol: bytes) -> None:
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


def test_a_body_that_nobody_waits_for_does_not_keep_a_connection(server: int) -> None:
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


def test_a_head_under_the_limit_is_taken_with_a_large_body(server: int) -> None:
    head = post(b"", LIMIT)[:-4] + b"\r\nX: " + b"x" * (HEAD_LIMIT - 200) + b"\r\n\r\n"
    client = connect(server, head + b"y" * LIMIT)
    assert answered(client, LIMIT).endswith(b"\r\n\r\n" + b"y" * LIMIT)
    client.close()


def test_trailers_without_end_are_refused(server: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
    with closing(connect(server, head)) as client, pytest.raises(OSError, match=r"reset|Broken"):
        send_for_ever(client)


def test_for_a_new_connection_the_longest_waiting_is_sent_away() -> None:
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


def test_headers_name_no_server_and_believe_only_proxies(server: int) -> None:
    forwarded = close_after(GET)[:-2] + b"X-Forwarded-For: 192.0.2.7\r\n\r\n"
    answer = received(connect(server, forwarded))
    assert b"\r\nserver:" not in answer.lower()
    assert b"\r\ndate:" in answer
    assert b"client: 127.0.0.1" in answer
    with running(replace(QUICK, proxies="127.0.0.0/8")) as port:
        assert b"client: 192.0.2.7" in received(connect(port, forwarded))


SCRIPT = """
import asyncio, logging
from rbmle.service.http.binding import Binding
from rbmle.service.http.server import Server
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("down", flush=True)
        return await send({"type": "lifespan.shutdown.complete"})
    print("asked", flush=True)
    await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})
Server(app, Binding(port=0), lambda address: print(address, flush=True)).run()
print("end")
"""


def test_a_signal_stops_after_running_requests_and_with_code_0() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        with closing(process.stdout) as out:
            port = int(out.readline().rpartition(":")[2])
            client, half = connect(port, GET), connect(port, b"GET")
            assert out.readline() == "asked\n"
            process.send_signal(number)
            answer = received(client)
            assert answer.startswith(b"HTTP/1.1 204")
            assert b"connection: close" in answer
            with pytest.raises(ConnectionRefusedError):
                connect(port)
            half.close()
            assert process.wait(10) == 0
            assert out.read() == "down\nend\n"


def test_an_application_that_does_not_start_or_stop_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(event: str, receive: Receive, send: Send) -> None:
        for at in ("startup", "shutdown"):
            await receive()
            end = {"type": f"lifespan.{at}.complete"}
            if at == event:
                end = {"type": f"lifespan.{at}.failed", "message": "no disk"}
            await send(end)

    async def no_start(scope: Scope, receive: Receive, send: Send) -> None:
        await fails("startup", receive, send)

    async def no_stop(scope: Scope, receive: Receive, send: Send) -> None:
        await fails("shutdown", receive, send)

    with pytest.raises(ServerError, match="did not start"):
        Server(no_start, QUICK, print).run()
    assert "no disk" in caplog.text
    stopping = Server(no_stop, QUICK, lambda address: stopping.stop())
    with pytest.raises(ServerError, match="did not shut down"):
        stopping.run()
    assert stopping.is_stopping


def test_a_port_in_use_is_told_before_the_application_starts(server: int) -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    with pytest.raises(ServerError, match=rf"port {server} of 127.0.0.1 is in use; stop"):
        Server(never, Binding(port=server), print).run()
    with pytest.raises(ServerError, match=r"8080 of 192\.0\.2\.1 is not of this machine"):
        Server(never, Binding(host="192.0.2.1"), print).run()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"host": ""}, "host '' is neither a name"),
        ({"host": "[::1]"}, "give 127.0.0.1, ::1"),
        ({"host": "http://a"}, "is neither a name nor an address"),
        ({"port": 65_536}, "port 65536 does not exist"),
        ({"port": -1}, "port -1 does not exist"),
        ({"private_key": Path("key")}, "but no certificate"),
        ({"head_seconds": 0.0}, "head_seconds is 0.0"),
        ({"head_seconds": float("nan")}, "head_seconds is nan"),
        ({"connections": 0}, "connections is 0"),
        ({"proxies": "10.0.0.1, everyone"}, "proxy 'everyone'"),
    ],
)
def test_a_binding_that_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ServerError) as caught:
        Binding(**wrong)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_public"),
    [
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("localhost", False),
        ("LOCALHOST", False),
        ("a.localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.168.0.1", True),
        ("::ffff:192.0.2.1", True),
        ("localhost.example.org", True),
    ],
)
def test_only_what_is_surely_loopback_is_not_public(host: str, is_public: bool) -> None:
    assert Binding(host=host).is_public is is_public


def test_an_address_can_be_opened_as_it_is() -> None:
    assert Binding(host="::1").address(80) == "http://[::1]:80"
    assert Binding(certificate=Path("a")).address(443) == "https://127.0.0.1:443"
    with running(replace(QUICK, host="localhost")) as port:
        assert received(connect(port, close_after(GET))).startswith(b"HTTP/1.1 200")


def test_tls_is_spoken_and_a_slow_handshake_is_closed(tmp_path: Path) -> None:
    certificate, key = made_certificate(tmp_path)
    binding = replace(QUICK, certificate=certificate, private_key=key)
    context = ssl.create_default_context(cafile=str(certificate))
    with running(binding) as port:
        half = connect(port, b"\x16\x03\x01")
        begun = time.monotonic()
        with context.wrap_socket(connect(port), server_hostname="localhost") as client:
            client.sendall(close_after(post(b"secret")))
            assert answered(client).endswith(b"secret")
        with context.wrap_socket(connect(port), server_hostname="localhost") as client:
            client.sendall(b"GET /")
            assert answered(client).startswith(b"HTTP/1.1 408")
        received(half)
        assert time.monotonic() - begun < 2 * HEAD_SECONDS + LATE
    with pytest.raises(ServerError, match="are not a certificate and its private key"):
        Server(echo, replace(binding, private_key=certificate), print)
    with pytest.raises(ServerError, match="cannot be read: No such file"):
        Server(echo, replace(binding, private_key=tmp_path / "none"), print)


def test_a_body_is_refused_in_the_message_that_passes_the_limit() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    messages = Messages(part, part, part)
    with pytest.raises(TooLargeError, match="larger than 3 bytes"):
        asyncio.run(receive_body({"headers": []}, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1
    announced = {"headers": [(b"host", b"a"), (b"content-length", b"4")]}
    with pytest.raises(TooLargeError):
        asyncio.run(receive_body(announced, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1


def test_a_client_that_leaves_is_gone() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    for before in ([], [part], [part, part]):
        messages = Messages(*before, {"type": "http.disconnect"})
        with pytest.raises(GoneError):
            asyncio.run(receive_body({"headers": []}, messages.receive, limit=9, seconds=1))


def test_the_whole_body_has_one_deadline() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.08)
        return {"type": "http.request", "body": b"a", "more_body": True}

    begun = time.monotonic()
    with pytest.raises(TooSlowError, match=r"within 0\.2 s"):
        asyncio.run(receive_body({"headers": []}, receive, limit=100, seconds=0.2))
    assert time.monotonic() - begun < 0.2 + LATE


def test_a_body_that_is_awaited_arrives_and_can_be_cancelled() -> None:
    async def run() -> None:
        arrived = asyncio.Event()
        ends: list[str] = []

        async def receive() -> Message:
            try:
                await arrived.wait()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            return {"type": "http.request", "body": b"late"}

        body = receive_body({"headers": []}, receive, limit=9, seconds=5)
        task = asyncio.create_task(body)
        await asyncio.sleep(0.01)
        arrived.set()
        assert await task == b"late"
        arrived.clear()
        with pytest.raises(TooSlowError):
            await receive_body({"headers": []}, receive, limit=9, seconds=0.01)
        assert ends == ["cancelled"]

    asyncio.run(run())


class Messages:
    """A client whose messages are all here."""

    def __init__(self, *messages: Message) -> None:
        self.left = list(messages)

    async def receive(self) -> Message:
        return self.left.pop(0)


@contextmanager
def running(binding: Binding, app: ASGIApp = echo) -> Iterator[int]:
    """Serve in a thread, and give the port."""
    address: list[str] = []
    is_started = threading.Event()

    def started(where: str) -> None:
        address.append(where)
        is_started.set()

    server = Server(app, binding, started)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert is_started.wait(10)
        yield int(address[0].rpartition(":")[2])
    finally:
        server.stop()
        thread.join(10)
    assert not thread.is_alive()


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


def post(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (size, body)


def answered(client: socket.socket, size: int = 0) -> bytes:
    """Return what is there within a moment of the first byte, and at least so many bytes."""
    data = client.recv(65_536)
    while len(data) < size or select.select([client], [], [], 0.3)[0]:
        part = client.recv(65_536)
        if not part:
            break
        data += part
    return data


def latencies(port: int, seconds: float) -> list[float]:
    """Return how long each of as many requests as can be takes, on one connection."""
    waits = []
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as client:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            client.request("POST", "/", b"good")
            assert client.getresponse().read() == b"good"
            waits.append(time.perf_counter() - begun)
    return waits


def made_certificate(folder: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make a certificate with")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key
