"""HTTP connections with limits: heads must be complete in time and not too large, and replies must be read.

uvicorn waits forever for the rest of a head, and httptools accepts heads and trailers of any size. Connection
adds deadlines and limits to uvicorn's protocol by overriding its methods. DirectConnection also passes complete
requests of the API to it without ASGI.
"""

import math
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import httptools
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope
from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from rbmle.service.api.base import Reply, ReplyTo, Request, Route, repeated_headers
from rbmle.service.api.routes import find_route, is_api

HEAD_LIMIT = 65_536  # bytes of a request line and its headers, or of trailers
SLOWEST_READER = 1_000  # bytes per second that a client must read of its reply
_FAREWELL = ((b"content-length", b"0"), (b"connection", b"close"))
_RETRY = (b"retry-after", b"1")

HELD_SECONDS = 0.05  # for the rest of a body to arrive
HELD_BYTES = 2**16  # of a body that is held
LONGEST_CACHED = 100  # bytes of a URL
_STATUS = {s.value: b"HTTP/1.1 %d %s\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}


@dataclass(slots=True)
class Connections:
    """The open connections, and those that wait for a head, the longest waiting first."""

    most: int
    head_seconds: float
    state: ServerState = field(default_factory=ServerState)
    waiting: "dict[Connection, float]" = field(default_factory=dict)  # with their deadlines

    def wait_for(self, connection: "Connection", until: float) -> None:
        """Wait for a head until a deadline, which is infinite for an idle connection."""
        self.waiting.pop(connection, None)
        self.waiting[connection] = until

    def has_room(self) -> bool:
        """Return whether there is room for one more; the longest waiting connection is closed if needed."""
        if len(self.state.connections) <= self.most:
            return True
        if not self.waiting:
            return False
        longest = next(iter(self.waiting))
        del self.waiting[longest]
        if longest.scheme == "https":
            longest.transport.abort()  # a graceful end would take time
        else:
            longest.dismiss(HTTPStatus.SERVICE_UNAVAILABLE)
        return True

    def close_late(self, now: float) -> None:
        """Close connections that did not send a head in time."""
        for connection in [late for late, until in self.waiting.items() if until <= now]:
            del self.waiting[connection]
            connection.dismiss(HTTPStatus.REQUEST_TIMEOUT)

    def abort_stalled(self, now: float) -> None:
        """Abort connections that do not read their reply."""
        for connection in tuple(self.state.connections):
            connection.check_reader(now)  # type: ignore[union-attr]  # all are ours


class Connection(HttpToolsProtocol):
    """A connection with deadlines and limits."""

    def __init__(self, config: Config, siblings: Connections, app_state: dict[str, Any]) -> None:
        super().__init__(config, siblings.state, app_state)
        self.siblings = siblings  # itself among them
        self.unread = b""  # bytes that the parser has not seen
        self.unparsed = 0  # bytes, at least, since the parser last completed something
        self.refusal = HTTPStatus.BAD_REQUEST  # for input that cannot be parsed
        self.unsent, self.unsent_since = 0, math.inf
        self.is_idle = False  # between a reply and the next request
        self.has_place = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Accept the connection; without room, it will answer 503 to its first request."""
        super().connection_made(transport)
        self.has_place = self.siblings.has_room()
        if not self.has_place:
            self.app = _no_room
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for it."""
        self.siblings.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and start the deadline of an incomplete head."""
        self.unparsed += len(data)
        self.unread = data
        while data := self.unread:
            super().data_received(data)
            self.unread = b"" if self.unread is data else self.unread
        if self.unparsed > HEAD_LIMIT:
            self.refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")
        elif self.unparsed and self.is_idle:
            self._await_head()

    def on_message_begin(self) -> None:
        """Note the start of a head, which may follow another message."""
        super().on_message_begin()
        self.unparsed = self.unparsed or 1

    def on_headers_complete(self) -> None:
        """Check a head; one that arrives in a single read is only measured here."""
        if self.unparsed > HEAD_LIMIT and self._head_size() > HEAD_LIMIT:
            self.refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise ValueError("the head is too large")  # stops the parser
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise ValueError("HTTP/1.1 requires one Host header")  # RFC 9112, section 3.2
        if self.parser.should_upgrade():
            return
        self.unparsed = 0
        self.is_idle = False
        self.siblings.waiting.pop(self, None)
        self.begin()

    def begin(self) -> None:
        """Begin a request with a complete head."""
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note progress."""
        self.unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note progress."""
        if not self.parser.should_upgrade():
            self.unparsed = 0
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Parse the head again without its Upgrade header.

        With it, httptools accepts no body, and raises at the end of the head.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        stopped = sys.exc_info()[1]
        assert isinstance(stopped, httptools.HttpParserUpgrade)
        if method == b"CONNECT":
            self.send_400_response("")
            return
        lines = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        head = b"\r\n".join([b"%s %s HTTP/%s" % (method, self.url, version), *lines, b"", b""])
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
        self.unread = head + self.unread[stopped.args[0] :]

    def on_response_complete(self) -> None:
        """Become idle, unless there is more input: a request, part of a head, or a body that is not read.

        Such a body may continue for a while, because a client that cannot send does not read its reply.
        """
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        if self.unparsed or self.cycle.more_body:
            self._await_head()
        else:
            self.rest(math.inf)  # uvicorn has its own timer for that

    def rest(self, until: float) -> None:
        """Wait for the next request."""
        self.is_idle = True
        self.siblings.wait_for(self, until)

    def send_400_response(self, msg: str) -> None:
        """Refuse input that cannot be parsed; unless it is a body, after the replies to earlier requests."""
        self.unparsed = 0
        self.siblings.waiting.pop(self, None)
        if self.cycle is None or self.cycle.response_complete:
            self._reply_and_close(self.refusal)
        elif not self.cycle.more_body:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        elif self.pipeline or self.cycle.response_started:
            self.transport.close()
        else:
            self._reply_and_close(self.refusal)

    def dismiss(self, status: HTTPStatus) -> None:
        """Close, with a status if part of a head has arrived."""
        if self.unparsed and (self.cycle is None or not self.cycle.more_body):
            self._reply_and_close(status)
        else:
            self.transport.close()

    def check_reader(self, now: float) -> None:
        """Abort if the client reads its reply too slowly; close() would wait forever."""
        size = self.transport.get_write_buffer_size()
        seconds = self.siblings.head_seconds
        if size == 0 or self.unsent - size >= SLOWEST_READER * seconds or self.unsent == 0:
            self.unsent, self.unsent_since = size, now
        elif now - self.unsent_since >= seconds:
            self.transport.abort()
        else:
            self.unsent = max(self.unsent, size)

    def _await_head(self) -> None:
        self.is_idle = False
        self.siblings.wait_for(self, self.loop.time() + self.siblings.head_seconds)

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _reply_and_close(self, status: HTTPStatus) -> None:
        headers = [*self.server_state.default_headers, *_FAREWELL]
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append(_RETRY)
        lines = [b"%s: %s" % header for header in headers]
        first = b"HTTP/1.1 %d %s" % (status, status.phrase.encode())
        self.transport.write(b"\r\n".join([first, *lines, b"", b""]))
        self.transport.close()


async def _no_room(scope: ASGIScope, receive: Receive, send: Send) -> None:
    headers = [*_FAREWELL, _RETRY]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body"})


Submit = Callable[[Request, ReplyTo], None]
Client = tuple[str, int] | None  # host and port; None: not known
AddressOf = Callable[[Client, list[tuple[bytes, bytes]]], str]


class DirectConnection(Connection):
    """A connection that submits complete requests of the API one at a time; uvicorn handles all others."""

    def __init__(
        self,
        config: Config,
        siblings: Connections,
        app_state: dict[str, Any],
        submit: Submit,
        address_of: AddressOf,
    ) -> None:
        super().__init__(config, siblings, app_state)
        self.submit = submit
        self.address_of = address_of
        self.route: Route | None = None  # of the held request
        self.parts: list[bytes] | None = None  # its body so far; None: no request is held
        self.is_whole = False  # the body is complete
        self.is_submitted = False  # a request is submitted, and not replied to
        self.later = b""  # input since then
        self.is_last = False  # close after the next reply
        self.timer: TimerHandle | None = None  # for the rest of a body

    def data_received(self, data: bytes) -> None:
        """Parse, and submit a request if it is complete, and nothing follows it."""
        if self.is_submitted:
            self.later += data
            self.flow.pause_reading()
            return
        super().data_received(data)
        if self.parts is None:
            return
        if self.unparsed or self.transport.is_closing():
            self._pass_on()
        elif self.is_whole:
            self._submit(b"".join(self.parts))
        elif sum(map(len, self.parts)) > HELD_BYTES:
            self._pass_on()
        elif self.timer is None:  # many clients send a head and its body in two writes
            self.timer = self.loop.call_later(HELD_SECONDS, self._pass_on)

    def begin(self) -> None:
        """Hold a request if it may be submitted; else let uvicorn handle it."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if (
            is_idle
            and self.has_place
            and not self.flow.write_paused  # else unread replies would pile up
            and self.parser.get_method() != b"HEAD"
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
            and not self.expect_100_continue
            and (route := _route_of(self.parser.get_method(), self.url)) is not None
        ):
            self.route = route
            self.parts, self.is_whole = [], False
        else:
            super().begin()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the held body."""
        if self.parts is None:
            super().on_body(body)
        else:
            self.unparsed = 0
            self.parts.append(body)

    def on_message_complete(self) -> None:
        """Note the end of the held body."""
        if self.parts is None:
            super().on_message_complete()
        else:
            self.unparsed = 0
            self.is_whole = True

    def on_message_begin(self) -> None:
        """Let uvicorn handle the held request, because another one follows it."""
        self._pass_on()
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Let uvicorn answer the held request before the invalid input is refused."""
        self._pass_on()
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the held request."""
        self._stop_timer()
        self.parts = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close, after the reply to a submitted request."""
        self._pass_on()
        if self.is_submitted:
            self.is_last = True
        else:
            super().shutdown()

    def reply(self, reply: Reply) -> None:
        """Send the reply to the submitted request, and continue to read."""
        self.is_submitted = False
        if self.transport.is_closing():
            return
        self.transport.write(self._message(reply))
        self.server_state.total_requests += 1
        self.cycle = None  # type: ignore[assignment]  # it belongs to an earlier request
        self.rest(self.loop.time() + self.timeout_keep_alive)
        if self.later:
            later, self.later = self.later, b""
            self.flow.resume_reading()
            self.data_received(later)
        if self.is_last:
            self.shutdown()

    def _submit(self, body: bytes) -> None:
        self._stop_timer()
        assert self.route is not None
        request = Request(
            route=self.route,
            headers=dict(self.headers),
            address=self.address_of(self.client, self.headers),
            repeated=repeated_headers(self.headers),
            body=body,
        )
        self.parts, self.is_submitted = None, True
        self.submit(request, self.reply)

    def _pass_on(self) -> None:
        """Let uvicorn handle the held request, as if it arrived now."""
        self._stop_timer()
        if self.parts is None:
            return
        parts, self.parts = self.parts, None
        super().begin()
        for part in parts:
            super().on_body(part)
        if self.is_whole:
            super().on_message_complete()

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _message(self, reply: Reply) -> bytes:
        """Return the bytes of a reply, as uvicorn would send them."""
        length = (b"content-length", b"%d" % len(reply.body))
        headers = [*self.server_state.default_headers, length, *reply.headers]
        if reply.body:
            headers.append((b"content-type", reply.kind))
        if self.is_last and not self.later:
            headers.append((b"connection", b"close"))
        lines = [b"%s: %s\r\n" % header for header in headers]
        return b"".join([_STATUS[reply.status], *lines, b"\r\n", reply.body])


def _find_route(method: bytes, url: bytes) -> Route | None:
    """Return the route of a request of the API; None for other paths and invalid URLs."""
    try:
        parsed = httptools.parse_url(url)
    except httptools.HttpParserInvalidURLError:
        return None
    path = parsed.path
    if path is None or not path.isascii() or not is_api(path):
        return None
    return find_route(method.decode(), path, parsed.query or b"")


_find_cached_route = lru_cache(maxsize=256)(_find_route)  # most requests have the same few URLs


def _route_of(method: bytes, url: bytes) -> Route | None:
    find = _find_cached_route if len(url) <= LONGEST_CACHED else _find_route
    return find(method, url)


def addresses(proxies: str) -> AddressOf:
    """Return how to find the address of a client, where the X-Forwarded headers of `proxies` are trusted."""
    if not proxies:
        return lambda client, _: client[0] if client else ""
    proxied = ProxyHeadersMiddleware(_ignore, proxies)  # type: ignore[arg-type]  # as any application

    def find_address(client: Client, headers: list[tuple[bytes, bytes]]) -> str:
        scope: dict[str, Any] = {"type": "http", "client": client, "headers": headers}
        for _ in proxied(scope, None, None).__await__():  # type: ignore[arg-type]  # nothing is received
            raise AssertionError("uvicorn reads headers without waiting")
        return scope["client"][0] if scope["client"] else ""

    return find_address


async def _ignore(scope: ASGIScope, receive: Receive, send: Send) -> None:
    """Do nothing: only the headers are read."""
