"""The routes of the dashboard: the page, its stream and files, sign-in and sign-out."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rbmle.service.dashboard.overview import DashboardSource, Overview, parse_dates
from rbmle.service.dashboard.pages import (
    FOLDER,
    UNSTORED,
    VENDORED,
    Files,
    dashboard,
    html,
    plain,
    redirect,
)
from rbmle.service.dashboard.sign_in import PATH, Access, Sessions
from rbmle.service.dashboard.view import ALL, View, view
from rbmle.service.statistics.lift_intervals import import_scipy
from rbmle.service.statistics.ranges import RANGES

SECONDS = 1.0  # between messages
LOOK_SECONDS = 0.2  # between checks whether the server is stopping
PATIENCE_SECONDS = 1.0  # for a client that does not read, when the server is stopping
MOST_STREAMS = 32  # at the same time

FRESH_SECONDS = 0.9  # of a view, less than the time between two messages


@dataclass(slots=True)
class Gate:
    """Counts the open streams."""

    streams: int = 0

    @property
    def is_full(self) -> bool:
        """Whether no more streams may be opened."""
        return self.streams >= MOST_STREAMS


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """A response of server-sent events; `message` returns the next one, or None to end the stream."""

    message: Callable[[], Awaitable[bytes | None]]
    is_stopping: Callable[[], bool]
    gate: Gate
    headers: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the stream ends, the client leaves, or the server stops."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        tasks = {sending, leaving, asyncio.create_task(self._wait_for_stop())}
        self.gate.streams += 1
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.gate.streams -= 1
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        with suppress(asyncio.CancelledError):
            sending.result()

    async def _send(self, send: Send) -> None:
        headers = {"content-type": "text/event-stream; charset=utf-8", **self.headers}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        while not self.is_stopping() and (message := await self.message()) is not None:
            body = b"data: " + message + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
            for _ in range(round(SECONDS / LOOK_SECONDS)):
                if not self.is_stopping():
                    await asyncio.sleep(LOOK_SECONDS)
        await send({"type": "http.response.body"})

    async def _wait_for_stop(self) -> None:
        while not self.is_stopping():
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(PATIENCE_SECONDS)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def routes(source: DashboardSource) -> list[BaseRoute]:
    """Return the routes of the dashboard, all of them below `/dashboard`."""
    access = Access(source=source, sessions=Sessions(source.sessions_path))
    board = _Board(source=source, access=access, feed=_Feed(source=source))
    return [
        Route(PATH, board.page),
        Route(f"{PATH}/login", board.login_page, methods=["GET"]),
        Route(f"{PATH}/login", access.sign_in, methods=["POST"]),
        Route(f"{PATH}/logout", access.sign_out, methods=["POST"]),
        Route(f"{PATH}/events", board.events),
        Mount(f"{PATH}/static", Files(directory=FOLDER, packages=[VENDORED])),
    ]


class _Shown(NamedTuple):
    """The view of a range, the same as JSON, and until when it is fresh."""

    view: View
    message: bytes
    until: float


@dataclass(slots=True, kw_only=True)
class _Feed:
    """The newest view of each range, computed in a thread, and once for all who look at it."""

    source: DashboardSource
    _latest: dict[str, _Shown] = field(default_factory=dict, init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def get(self, range: str) -> _Shown:
        """Return a fresh view of a range."""
        async with self._lock:
            shown = self._latest.get(range)
            if shown is None or self.source.now() >= shown.until:
                overview, until = self.source.overview(), self.source.now() + FRESH_SECONDS
                fresh, message = await asyncio.to_thread(_render, overview, range)
                shown = _Shown(fresh, message, until)
                now = (
                    self.source.now()
                )  # there are many ranges of dates: drop those that nobody looks at
                self._latest = {name: s for name, s in self._latest.items() if s.until > now}
                self._latest[range] = shown
        return shown


def _render(overview: Overview, range: str) -> tuple[View, bytes]:
    shown = view(overview, range)
    return shown, msgspec.json.encode(shown)


def _range_of(request: Request) -> str:
    """Return the range or the dates in a query; all time if it has none."""
    query = request.query_params
    if (name := query.get("range")) in RANGES:
        return name
    now = time.time_ns() // 1_000_000
    return parse_dates(query.get("from", ""), query.get("to", ""), now) or ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """The page and its stream."""

    source: DashboardSource
    access: Access
    feed: _Feed
    gate: Gate = field(default_factory=Gate)

    async def login_page(self, request: Request) -> Response:
        """Return the sign-in page, and import libraries meanwhile."""
        asyncio.get_running_loop().run_in_executor(None, import_scipy)
        return await self.access.login_page(request)

    async def page(self, request: Request) -> Response:
        """Return the dashboard, or a redirect to the sign-in page."""
        if not self.access.is_signed_in(request):
            return redirect(f"{PATH}/login")
        address = f"{request.url.scheme}://{request.url.netloc}"
        keys = None if self.source.keys is None else self.source.keys.path
        shown = await self.feed.get(_range_of(request))
        return html(dashboard(shown.view, address=address, keys=keys))

    async def events(self, request: Request) -> ASGIApp:
        """Return the stream; HEAD says whether there would be one."""
        if not self.access.is_signed_in(request):
            return plain("Sign in at /dashboard/login.\n", 401)
        if self.gate.is_full:
            return plain("Too many pages are open; close one.\n", 503, {"retry-after": "10"})
        if request.method == "HEAD":
            return plain("", 200)
        range = _range_of(request)

        async def message() -> bytes | None:
            shown = await self.feed.get(range)
            return shown.message if self.access.is_signed_in(request) else None

        return EventStream(
            message=message,
            is_stopping=lambda: self.source.is_stopping,
            gate=self.gate,
            headers=UNSTORED,
        )
