"""A small service behind HTTP in a thread of its own, and what is inside it."""

import asyncio
import json
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import Any

from rbmle.service.access.keys import KeyRing
from rbmle.service.access.limits import WorkBudget
from rbmle.service.api.base import Reply, ReplyTo, Request
from rbmle.service.http.app import Application
from rbmle.service.http.connections import DirectConnection
from rbmle.service.http.server import Binding, Server
from rbmle.service.log.base import LogUnavailable, Row
from tests.service.wire import connect, replies
from tests.services import PATIENCE, Service, small_start, wait_until

BINDING = Binding(port=0, graceful_seconds=20)


class Gate:
    """Stands between a service's writer and its log, which it can hold, or let fail."""

    def __init__(self, service: Service) -> None:
        self.log = service.log
        self.is_open = threading.Event()
        self.is_open.set()
        self.fails = False
        service.writer.log = self  # type: ignore[assignment]  # it has what a writer needs

    def append(self, rows: Sequence[Row]) -> int:
        """Append to the log, once the gate is open."""
        assert self.is_open.wait(PATIENCE)
        if self.fails:
            raise LogUnavailable("the disk is full")
        return self.log.append(rows)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nothing be stored for a while."""
        self.is_open.clear()
        try:
            yield
        finally:
            self.is_open.set()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Let nothing be stored, and say so."""
        self.fails = True
        try:
            yield
        finally:
            self.fails = False


@dataclass
class Site:
    """A server, and what is inside it; asked by bytes on a connection, or by requests in its loop."""

    service: Service
    app: Application
    gate: Gate
    is_direct: bool
    server: Server = field(init=False)
    thread: threading.Thread = field(init=False)
    loop: asyncio.AbstractEventLoop = field(init=False)
    address: str = ""
    direct: list[Request] = field(default_factory=list)  # requests that came directly
    connections: "list[weakref.ref[DirectConnection]]" = field(default_factory=list)  # of these
    unsent: int = 0  # bytes of replies that waited to be sent to one of them, at most

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def keys(self) -> Any:
        """Return the keys by scope and place."""
        assert self.app.keys is not None
        return self.app.keys.keys

    def started(self, address: str) -> None:
        self.loop, self.address = asyncio.get_running_loop(), address

    def submit_directly(self, request: Request, reply_to: ReplyTo) -> None:
        """Submit a request of a connection, and remember it."""
        connection: DirectConnection = reply_to.__self__  # type: ignore[attr-defined]  # a method of it
        self.unsent = max(self.unsent, connection.transport.get_write_buffer_size())
        self.connections.append(weakref.ref(connection))
        self.direct.append(request)
        self.app.submit(request, reply_to)

    def ask(self, *parts: bytes, count: int = 1) -> list[bytes]:
        """Return so many replies to what is sent, piece by piece, on one connection."""
        with closing(connect(self.port)) as client:
            for part in parts:
                client.sendall(part)
                if len(parts) > 1:
                    time.sleep(0.003)
            return replies(client, count)

    @contextmanager
    def pending(self, *clients: tuple[socket, bytes]) -> Iterator[None]:
        """Send each client's request, and store none of them before the end."""
        writer = self.service.writer
        with self.gate.held():
            clients[0][0].sendall(clients[0][1])
            wait_until(lambda: writer.writing_since is not None)
            for client, request in clients[1:]:
                client.sendall(request)
            wait_until(lambda: writer.waiting == len(clients) - 1)
            yield

    def submit(self, requests: Sequence[Request]) -> "list[Future[Reply]]":
        """Submit requests in one turn of the loop."""
        futures: list[Future[Reply]] = [Future() for _ in requests]

        def submit() -> None:
            for request, future in zip(requests, futures, strict=True):
                self.app.submit(request, future.set_result)

        self.loop.call_soon_threadsafe(submit)
        return futures

    def together(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies to requests that come in one turn of the loop."""
        return [future.result(PATIENCE) for future in self.submit(requests)]

    def reply(self, request: Request) -> Reply:
        """Return the reply to a request."""
        return self.together([request])[0]

    def is_stored(self, event: str) -> bool:
        """Return whether the log has the decision of an event."""
        return self.gate.log.of_request(f"rank:{event}") is not None


@contextmanager
def serving(
    folder: Path,
    binding: Binding = BINDING,
    *,
    is_direct: bool = True,
    has_keys: bool = False,
    budget: WorkBudget | None = None,
    seconds: float | None = PATIENCE,
) -> Iterator[Site]:
    """Yield a site whose log has `seconds` to store something, or as many as in production."""
    service = Service(small_start(folder), notify=lambda message: None)
    keys = KeyRing(folder / "keys.json") if has_keys else None
    app = Application(service, keys, budget)
    site = Site(service, app, Gate(service), is_direct)
    submit = site.submit_directly if is_direct else None
    site.server = Server(app, binding, site.started, submit)
    app.stopping = lambda: site.server.is_stopping
    site.thread = threading.Thread(target=site.server.run)
    site.thread.start()
    try:
        wait_until(lambda: site.address and service.problem is None)
        if seconds is not None:
            app.api.commits.seconds = seconds
        yield site
    finally:
        site.gate.is_open.set()
        site.server.stop()
        site.thread.join(PATIENCE)
        assert not site.thread.is_alive()


def rank_body(event: str | None = None, who: str = "u") -> bytes:
    """Return the body of a small rank in our own dialect."""
    ranked: dict[str, Any] = {"context": {"who": who}, "actions": [{"id": "a"}, {"id": "b"}]}
    return json.dumps(ranked | ({} if event is None else {"event": event})).encode()
