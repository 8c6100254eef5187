"""Connections that end: heads are complete in time and of a size, and replies are read.

uvicorn waits for ever for the rest of a head, and httptools takes heads and trailers of any size.
So Connection, uvicorn's protocol with deadlines, overrides its code, which nothing else here does.
"""

import math
import sys
from asyncio import Transport
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httptools
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

HEAD_LIMIT = 65_536  # bytes of a request line and its headers, or of trailers
SLOWEST_READER = 1_000  # bytes in a second, of a reply that is waiting to be sent
_FAREWELL = ((b"content-length", b"0"), (b"connection", b"close"))
_RETRY = (b"retry-after", b"1")


@dataclass(slots=True)
class Connections:
    """The connections that are open, and those whose next head is awaited, longest waiting first."""

    most: int
    head_seconds: float
    state: ServerState = field(default_factory=ServerState)
    waiting: "dict[Connection, float]" = field(default_factory=dict)  # and until when at most

    def wait_for(self, connection: "Connection", until: float) -> None:
        """Await a head from now on; of a connection that only rests, until infinity."""
        self.waiting.pop(connection, None)
        self.waiting[connection] = until

    def has_room(self) -> bool:
        """Return if there is room for one more, for which the longest waiting is sent away."""
        if len(self.state.connections) <= self.most:
            return True
        if not self.waiting:
            return False
        longest = next(iter(self.waiting))
        del self.waiting[longest]
        if longest.scheme == "https":
            longest.transport.abort()  # a farewell would keep the place
        else:
            longest.dismiss(HTTPStatus.SERVICE_UNAVAILABLE)
        return True

    def close_late(self, now: float) -> None:
        """Close what did not send its head in time."""
        for connection in [late for late, until in self.waiting.items() if until <= now]:
            del self.waiting[connection]
            connection.dismiss(HTTPStatus.REQUEST_TIMEOUT)

    def abort_stalled(self, now: float) -> None:
        """Abort what does not read its reply."""
        for connection in tuple(self.state.connections):
            connection.check_reader(now)  # type: ignore[union-attr]  # all are ours


class Connection(HttpToolsProtocol):
    """One connection: its heads are complete in time and of a size, and its replies are read."""

    def __init__(self, config: Config, siblings: Connections, app_state: dict[str, Any]) -> None:
        super().__init__(config, siblings.state, app_state)
        self.siblings = siblings  # itself among them
        self.unread = b""  # by the parser
        self.unparsed = 0  # bytes since the parser last had something whole; at least
        self.refusal = HTTPStatus.BAD_REQUEST  # of what cannot be parsed
        self.unsent, self.unsent_since = 0, math.inf
        self.is_resting = False  # between a reply and the next request
        self.has_place = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Find a place for it; without one, the reply to whatever it asks is 503."""
        super().connection_made(transport)
        self.has_place = self.siblings.has_room()
        if not self.has_place:
            self.app = _no_room
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.siblings.waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and look at what was begun and is not complete."""
        self.unparsed += len(data)
        self.unread = data
        while data := self.unread:
            super().data_received(data)
            self.unread = b"" if self.unread is data else self.unread
        if self.unparsed > HEAD_LIMIT:
            self.refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")
        elif self.unparsed and self.is_resting:
            self._await_head()

    def on_message_begin(self) -> None:
        """See a head begin, if only behind another message."""
        super().on_message_begin()
        self.unparsed = self.unparsed or 1

    def on_headers_complete(self) -> None:
        """Take a head of a size; a large one can be all in one read, so only here it is known."""
        if self.unparsed > HEAD_LIMIT and self._head_size() > HEAD_LIMIT:
            self.refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise ValueError("the head is too large")  # how a callback stops the parser
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise ValueError("HTTP/1.1 asks for one Host header")  # RFC 9112, section 3.2
        if self.parser.should_upgrade():
            return
        self.unparsed = 0
        self.is_resting = False
        self.siblings.waiting.pop(self, None)
        self.begin()

    def begin(self) -> None:
        """Begin a request, now that a head is known."""
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """See progress."""
        self.unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """See progress."""
        if not self.parser.should_upgrade():
            self.unparsed = 0
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Parse the head again without its wish for another protocol, such as HTTP/2.

        With it, httptools takes no body, and raises where the head ends.
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
        """Rest, unless more is here: a request, half a head, or a body that nobody waited for.

        Such a body may go on for a while, since a client that cannot send does not read the reply.
        """
        super().on_response_complete()
        if self.transport.is_closing() or not self.cycle.response_complete:
            return
        if self.unparsed or self.cycle.more_body:
            self._await_head()
        else:
            self.rest(math.inf)  # uvicorn has a clock of its own for that

    def rest(self, until: float) -> None:
        """Wait for the next request."""
        self.is_resting = True
        self.siblings.wait_for(self, until)

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed; if it is no body, after the replies to what came before."""
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
        """Close; with a status if something of a head is here."""
        if self.unparsed and (self.cycle is None or not self.cycle.more_body):
            self._reply_and_close(status)
        else:
            self.transport.close()

    def check_reader(self, now: float) -> None:
        """Abort if a reply waits to be sent, and its reader is too slow; close() waits for ever."""
        size = self.transport.get_write_buffer_size()
        seconds = self.siblings.head_seconds
        if size == 0 or self.unsent - size >= SLOWEST_READER * seconds or self.unsent == 0:
            self.unsent, self.unsent_since = size, now
        elif now - self.unsent_since >= seconds:
            self.transport.abort()
        else:
            self.unsent = max(self.unsent, size)

    def _await_head(self) -> None:
        self.is_resting = False
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
    """Answer 503 for the application."""
    headers = [*_FAREWELL, _RETRY]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body"})
