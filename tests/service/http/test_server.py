"""The server: start and graceful stop, TLS, proxies."""

import signal
import ssl
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from rbmle.service.http.server import Binding, Server, ServerError
from tests.service.http.samples import (
    GET,
    HEAD_SECONDS,
    LATE,
    QUICK,
    answered,
    echo,
    made_certificate,
    post,
    running,
)
from tests.service.wire import close_after, connect, received

SCRIPT = """
import asyncio, logging
from rbmle.service.http.server import Binding
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


def test_no_server_header_is_sent_and_only_proxies_are_trusted(server: int) -> None:
    forwarded = close_after(GET)[:-2] + b"X-Forwarded-For: 192.0.2.7\r\n\r\n"
    answer = received(connect(server, forwarded))
    assert b"\r\nserver:" not in answer.lower()
    assert b"\r\ndate:" in answer
    assert b"client: 127.0.0.1" in answer
    with running(replace(QUICK, proxies="127.0.0.0/8")) as port:
        assert b"client: 192.0.2.7" in received(connect(port, forwarded))


def test_a_signal_stops_gracefully_with_code_0() -> None:
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


def test_an_application_that_fails_to_start_or_stop_raises_server_error(
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


def test_a_port_in_use_is_refused_before_the_application_starts(server: int) -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    with pytest.raises(ServerError, match=rf"port {server} of 127.0.0.1 is in use; stop"):
        Server(never, Binding(port=server), print).run()
    with pytest.raises(ServerError, match=r"8080 of 192\.0\.2\.1 is not on this machine"):
        Server(never, Binding(host="192.0.2.1"), print).run()


def test_tls_works_and_a_slow_handshake_is_closed(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"host": ""}, "host '' is not a name"),
        ({"host": "[::1]"}, "give 127.0.0.1, ::1"),
        ({"host": "http://a"}, "is not a name or an address"),
        ({"port": 65_536}, "port 65536 does not exist"),
        ({"port": -1}, "port -1 does not exist"),
        ({"private_key": Path("key")}, "but no certificate"),
        ({"head_seconds": 0.0}, "head_seconds is 0.0"),
        ({"head_seconds": float("nan")}, "head_seconds is nan"),
        ({"connections": 0}, "connections is 0"),
        ({"proxies": "10.0.0.1, everyone"}, "proxy 'everyone'"),
    ],
)
def test_an_invalid_binding_is_refused(wrong: dict[str, Any], message: str) -> None:
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
def test_only_loopback_addresses_are_not_public(host: str, is_public: bool) -> None:
    assert Binding(host=host).is_public is is_public


def test_an_address_is_a_valid_url() -> None:
    assert Binding(host="::1").address(80) == "http://[::1]:80"
    assert Binding(certificate=Path("a")).address(443) == "https://127.0.0.1:443"
    with running(replace(QUICK, host="localhost")) as port:
        assert received(connect(port, close_after(GET))).startswith(b"HTTP/1.1 200")
