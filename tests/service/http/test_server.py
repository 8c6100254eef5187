"""The server: start and graceful stop, TLS, proxies."""

import signal
import ssl
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from rbmle.service.http.binding import Binding, ServerError
from rbmle.service.http.server import Server
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
