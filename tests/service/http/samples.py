"""Applications and servers for tests of HTTP."""

import asyncio
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from rbmle.service.api.base import BodyNotReceivedError, GoneError, TooLargeError, TooSlowError
from rbmle.service.http.app import receive_body
from rbmle.service.http.server import Binding, Server

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
