"""Connections that give a request away which came whole within a moment, before a task is made of it."""

import re
from asyncio import TimerHandle
from http import HTTPStatus
from typing import Any, Protocol

from uvicorn.config import Config

from rbmle.service.api.replies import Answer
from rbmle.service.http.connections import Connection, Crowd

HELD_SECONDS = 0.05  # for which a request waits for the rest of itself
HELD_BYTES = 2**16  # of a body that waits so
_PLAIN = re.compile(rb"/[!-~]*")  # a URL that uvicorn surely can read
_STATUS = {s.value: b"HTTP/1.1 %d %s\r\n" % (s.value, s.phrase.encode()) for s in HTTPStatus}


class Taker(Protocol):
    """Who may answer requests in the place of the application."""

    def wants(self, url: bytes) -> bool:
        """Return whether a POST to this is of interest."""
        ...

    def take(self, asker: "WholeRequests", body: bytes) -> bool:
        """Take a request, and later answer it or let it go; or return False."""
        ...


class WholeRequests(Connection):
    """A connection whose requests may be taken, if they are here at once, alone, and nothing else runs."""

    def __init__(
        self,
        config: Config,
        crowd: Crowd,
        app_state: dict[str, Any],
        taker: Taker,
        *,
        is_direct: bool,
    ) -> None:
        """Make it; if it is not `is_direct`, a proxy's headers say who asks."""
        super().__init__(config, crowd, app_state)
        self.taker = taker
        self.is_direct = is_direct
        self.parts: list[bytes] | None = None  # the body of a request that is held back
        self.is_whole = False  # all of them are here
        self.is_taken = False
        self.later = b""  # what came while a request was taken
        self.is_last = False  # close after the next answer
        self.timer: TimerHandle | None = None  # until the rest of what is held back must be here

    @property
    def address(self) -> str | None:
        """Return who asks; None if only the application can tell."""
        if not self.is_direct:
            return None
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        """Parse, and give a request away if there is just one, and all of it."""
        if self.is_taken:
            self.later += data
            self.flow.pause_reading()
            return
        super().data_received(data)
        if self.parts is None:
            return
        if self.unparsed or self.transport.is_closing():
            self._begin_held()
        elif self.is_whole:
            self._stop_timer()
            self.is_taken = self.taker.take(self, b"".join(self.parts))
            if not self.is_taken:
                self._begin_held()
        elif sum(map(len, self.parts)) > HELD_BYTES:
            self._begin_held()
        elif self.timer is None:  # many clients send a head and its body in two writes
            self.timer = self.loop.call_later(HELD_SECONDS, self._begin_held)

    def begin(self) -> None:
        """Hold a request back that may be taken, now that its head is known."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if (
            is_idle
            and self.has_place
            and not self.flow.write_paused  # else answers would pile up, unread
            and self.parser.get_method() == b"POST"
            and self.taker.wants(self.url)
            and _PLAIN.fullmatch(self.url)
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
            and not self.expect_100_continue
        ):
            self.parts, self.is_whole = [], False
        else:
            super().begin()

    def on_body(self, body: bytes) -> None:
        """Keep a part of what is held back."""
        if self.parts is None:
            super().on_body(body)
        else:
            self.unparsed = 0
            self.parts.append(body)

    def on_message_complete(self) -> None:
        """See the end of what is held back."""
        if self.parts is None:
            super().on_message_complete()
        else:
            self.unparsed = 0
            self.is_whole = True

    def on_message_begin(self) -> None:
        """Begin what is held back: another request is behind it."""
        self._begin_held()
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Begin what is held back: it is answered before what is no HTTP is refused."""
        self._begin_held()
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_timer()
        self.parts = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close, after the answer to what is taken."""
        if not self.is_taken:
            self._begin_held()
        if self.is_taken:
            self.is_last = True
        else:
            super().shutdown()

    def answer(self, answer: Answer) -> None:
        """Send the answer to what is taken, and go on."""
        self.parts, self.is_taken = None, False
        if self.transport.is_closing():
            return
        self.transport.write(self._message(answer))
        self.server_state.total_requests += 1
        self.cycle = None  # type: ignore[assignment]  # the last one is that of an earlier request
        self.rest(self.loop.time() + self.timeout_keep_alive)
        self._catch_up()

    def let_go(self) -> None:
        """Let the application answer what is taken."""
        self.is_taken = False
        if self.transport.is_closing():
            return
        self._begin_held()
        self._catch_up()

    def drop(self) -> None:
        """Hang up: what is taken cannot be answered."""
        self.transport.abort()

    def _begin_held(self) -> None:
        """Do with what is held back as if it came now."""
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

    def _catch_up(self) -> None:
        """Parse what came while a request was taken; if all is to end, it ends after that."""
        if self.later:
            later, self.later = self.later, b""
            self.flow.resume_reading()
            self.data_received(later)
        if self.is_last:
            self.shutdown()

    def _message(self, answer: Answer) -> bytes:
        """Return an answer as uvicorn would send it."""
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [*self.server_state.default_headers, length, *answer.headers]
        if answer.body:
            headers.append((b"content-type", answer.kind))
        if self.is_last and not self.later:
            headers.append((b"connection", b"close"))
        lines = [b"%s: %s\r\n" % header for header in headers]
        return b"".join([_STATUS[answer.status], *lines, b"\r\n", answer.body])
