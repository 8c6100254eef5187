"""The routes of the dashboard: the page, its stream, its files, and the way in and out."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from rbmle.service.dashboard.access import PATH, Access
from rbmle.service.dashboard.answers import FOLDER, UNSTORED, VENDORED, Files, html, plain, redirect
from rbmle.service.dashboard.dates import dates_named
from rbmle.service.dashboard.lifts import lifts_of
from rbmle.service.dashboard.overview import Backend, Overview
from rbmle.service.dashboard.pages import dashboard
from rbmle.service.dashboard.sessions import Sessions
from rbmle.service.dashboard.stream import EventStream, Gate
from rbmle.service.dashboard.view import ALL, View, view
from rbmle.service.statistics import StatisticsSummary
from rbmle.service.statistics.ranges import RANGES

FRESH_SECONDS = 0.9  # of what is shown, less than the time between two messages


def routes(source: Backend) -> list[BaseRoute]:
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
    """What is shown of a range, its JSON, and until when."""

    view: View
    message: bytes
    until: float


@dataclass(slots=True, kw_only=True)
class _Feed:
    """What is shown now, of each range: made once, however many look, and beside the loop."""

    source: Backend
    _shown: dict[str, _Shown] = field(default_factory=dict, init=False, repr=False)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def shown(self, range: str) -> _Shown:
        """Return what is to be shown."""
        async with self._making:
            found = self._shown.get(range)
            if found is None or self.source.now() >= found.until:
                overview, until = self.source.overview(), self.source.now() + FRESH_SECONDS
                made, message = await asyncio.to_thread(_made, overview, range)
                found = _Shown(made, message, until)
                now = self.source.now()  # of dates there are many: those that are not looked at go
                self._shown = {name: one for name, one in self._shown.items() if one.until > now}
                self._shown[range] = found
        return found


def _made(overview: Overview, range: str) -> tuple[View, bytes]:
    """Return what is to be shown, and the same as JSON."""
    made = view(overview, range)
    return made, msgspec.json.encode(made)


def _range(request: Request) -> str:
    """Return the range that is asked for, or the dates; all time if there is no such."""
    given = request.query_params
    if (name := given.get("range")) in RANGES:
        return name
    now = time.time_ns() // 1_000_000
    return dates_named(given.get("from", ""), given.get("to", ""), now) or ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """The page and what it loads."""

    source: Backend
    access: Access
    feed: _Feed
    gate: Gate = field(default_factory=Gate)

    async def login_page(self, request: Request) -> Response:
        """Return the form that asks for a key; while it is filled in, libraries are imported."""
        asyncio.get_running_loop().run_in_executor(None, lifts_of, StatisticsSummary())
        return await self.access.login_page(request)

    async def page(self, request: Request) -> Response:
        """Return the page, or the way to the login."""
        if not self.access.is_signed_in(request):
            return redirect(f"{PATH}/login")
        address = f"{request.url.scheme}://{request.url.netloc}"
        keys = None if self.source.keys is None else self.source.keys.path
        shown = await self.feed.shown(_range(request))
        return html(dashboard(shown.view, address=address, keys=keys))

    async def events(self, request: Request) -> ASGIApp:
        """Return the stream; HEAD tells whether there would be one."""
        if not self.access.is_signed_in(request):
            return plain("Sign in at /dashboard/login.\n", 401)
        if self.gate.is_full:
            return plain("Too many pages are open; close one.\n", 503, {"retry-after": "10"})
        if request.method == "HEAD":
            return plain("", 200)
        range = _range(request)

        async def message() -> bytes | None:
            shown = await self.feed.shown(range)
            return shown.message if self.access.is_signed_in(request) else None

        return EventStream(
            message=message,
            is_stopping=lambda: self.source.is_stopping,
            gate=self.gate,
            headers=UNSTORED,
        )
