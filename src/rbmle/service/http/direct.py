"""Requests of the API that come whole: from the bytes of a connection to a request, and back, without ASGI."""

from asyncio import TimerHandle
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import httptools
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope
from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from rbmle.service.api.base import Reply, ReplyTo, Request, repeated_headers
from rbmle.service.api.dialects import dialect_of
from rbmle.service.http.connections import Connection, Connections

HELD_SECONDS = 0.05  # for which a request waits for the rest of its body
HELD_BYTES = 2**16  # of a body that waits
LONGEST_KNOWN = 100  # bytes of a URL that is remembered
_STATUS = {s.value: b"HTTP/1.1 %d %s\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}

Submit = Callable[[Request, ReplyTo], None]
Client = tuple[str, int] | None  # host and port; None: the transport does not tell
AddressOf = Callable[[Client, list[tuple[bytes, bytes]]], str]


class DirectConnection(Connection):
    """A connection that submits a request which comes whole, and alone; uvicorn takes any other."""

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
        self.target = (b"", b"")  # the path and the query of what is held
        self.parts: list[bytes] | None = None  # the body so far of a request that may be submitted
        self.is_whole = False  # these are all
        self.is_submitted = False  # and not replied to
        self.later = b""  # what came while a request was submitted
        self.is_last = False  # close after the next reply
        self.timer: TimerHandle | None = None  # until the rest of a body must be here

    def data_received(self, data: bytes) -> None:
        """Parse, and submit a request if there is just one, and all of it."""
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
        """Hold a request that may be submitted, now that its head is known."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if (
            is_idle
            and self.has_place
            and not self.flow.write_paused  # else replies would pile up, unread
            and self.parser.get_method() != b"HEAD"
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
            and not self.expect_100_continue
            and (target := _find(self.url)) is not None
        ):
            self.target = target
            self.parts, self.is_whole = [], False
        else:
            super().begin()

    def on_body(self, body: bytes) -> None:
        """Keep a part of what is held."""
        if self.parts is None:
            super().on_body(body)
        else:
            self.unparsed = 0
            self.parts.append(body)

    def on_message_complete(self) -> None:
        """See the end of what is held."""
        if self.parts is None:
            super().on_message_complete()
        else:
            self.unparsed = 0
            self.is_whole = True

    def on_message_begin(self) -> None:
        """Pass on what is held: another request is behind it."""
        self._pass_on()
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Pass on what is held: it is replied to before what is no HTTP is refused."""
        self._pass_on()
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what is held."""
        self._stop_timer()
        self.parts = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close, after the reply to what is submitted."""
        self._pass_on()
        if self.is_submitted:
            self.is_last = True
        else:
            super().shutdown()

    def reply(self, reply: Reply) -> None:
        """Send the reply to what is submitted, and read on."""
        self.is_submitted = False
        if self.transport.is_closing():
            return
        self.transport.write(self._message(reply))
        self.server_state.total_requests += 1
        self.cycle = None  # type: ignore[assignment]  # the last one is that of an earlier request
        self.rest(self.loop.time() + self.timeout_keep_alive)
        if self.later:
            later, self.later = self.later, b""
            self.flow.resume_reading()
            self.data_received(later)
        if self.is_last:
            self.shutdown()

    def _submit(self, body: bytes) -> None:
        self._stop_timer()
        path, query = self.target
        request = Request(
            method=self.parser.get_method().decode(),
            path=path,
            query=query,
            headers=dict(self.headers),
            address=self.address_of(self.client, self.headers),
            repeated=repeated_headers(self.headers),
            body=body,
        )
        self.parts, self.is_submitted = None, True
        self.submit(request, self.reply)

    def _pass_on(self) -> None:
        """Let uvicorn take what is held, as if it came now."""
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
        """Return the bytes of a reply, as uvicorn would send it."""
        length = (b"content-length", b"%d" % len(reply.body))
        headers = [*self.server_state.default_headers, length, *reply.headers]
        if reply.body:
            headers.append((b"content-type", reply.kind))
        if self.is_last and not self.later:
            headers.append((b"connection", b"close"))
        lines = [b"%s: %s\r\n" % header for header in headers]
        return b"".join([_STATUS[reply.status], *lines, b"\r\n", reply.body])


def _target(url: bytes) -> tuple[bytes, bytes] | None:
    """Return the path and the query of a request for the API; None for any other, and for no URL."""
    try:
        parsed = httptools.parse_url(url)
    except httptools.HttpParserInvalidURLError:
        return None
    path = parsed.path
    if path is None or not path.isascii() or dialect_of(path) is None:
        return None
    return path, parsed.query or b""


_known_target = lru_cache(maxsize=256)(_target)  # most requests are for the same few


def _find(url: bytes) -> tuple[bytes, bytes] | None:
    return _known_target(url) if len(url) <= LONGEST_KNOWN else _target(url)


def addresses(proxies: str) -> AddressOf:
    """Return how the address of a client is found; what `proxies` say of it in headers is trusted."""
    if not proxies:
        return lambda client, _: client[0] if client else ""
    proxied = ProxyHeadersMiddleware(_ignore, proxies)  # type: ignore[arg-type]  # as any application

    def forwarded(client: Client, headers: list[tuple[bytes, bytes]]) -> str:
        scope: dict[str, Any] = {"type": "http", "client": client, "headers": headers}
        for _ in proxied(scope, None, None).__await__():  # type: ignore[arg-type]  # nothing is received
            raise AssertionError("uvicorn reads headers without waiting for anything")
        return scope["client"][0] if scope["client"] else ""

    return forwarded


async def _ignore(scope: ASGIScope, receive: Receive, send: Send) -> None:
    """Take a request whose headers were read."""
