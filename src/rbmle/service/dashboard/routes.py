"""The routes of the dashboard: the page, its stream, its files, and the way in and out."""

from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from rbmle.service.dashboard.access import PATH, Access
from rbmle.service.dashboard.answers import FOLDER, UNSTORED, VENDORED, Files, html, plain, redirect
from rbmle.service.dashboard.overview import Backend
from rbmle.service.dashboard.pages import dashboard
from rbmle.service.dashboard.stream import EventStream, Gate
from rbmle.service.dashboard.view import View, view

FRESH_SECONDS = 0.9  # of what is shown, less than the time between two messages


def routes(source: Backend) -> list[BaseRoute]:
    """Return the routes of the dashboard, all of them below `/dashboard`."""
    access = Access(source=source)
    board = _Board(source=source, access=access, feed=_Feed(source=source))
    return [
        Route(PATH, board.page),
        Route(f"{PATH}/login", access.login_page, methods=["GET"]),
        Route(f"{PATH}/login", access.sign_in, methods=["POST"]),
        Route(f"{PATH}/logout", access.sign_out, methods=["POST"]),
        Route(f"{PATH}/events", board.events),
        Mount(f"{PATH}/static", Files(directory=FOLDER, packages=[VENDORED])),
    ]


@dataclass(slots=True, kw_only=True)
class _Feed:
    """What is shown now, and its JSON: made once, however many look."""

    source: Backend
    _view: View | None = field(default=None, init=False, repr=False)
    _message: bytes = field(default=b"", init=False, repr=False)
    _until: float = field(default=0.0, init=False)

    def view(self) -> View:
        """Return what is to be shown."""
        now = self.source.now()
        if self._view is None or now >= self._until:
            self._view = view(self.source.overview())
            self._message = msgspec.json.encode(self._view)
            self._until = now + FRESH_SECONDS
        return self._view

    def message(self) -> bytes:
        """Return the same as JSON."""
        self.view()
        return self._message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """The page and what it loads."""

    source: Backend
    access: Access
    feed: _Feed
    gate: Gate = field(default_factory=Gate)

    async def page(self, request: Request) -> Response:
        """Return the page, or the way to the login."""
        if not self.access.is_signed_in(request):
            return redirect(f"{PATH}/login")
        address = f"{request.url.scheme}://{request.url.netloc}"
        has_keys = self.source.keys is not None
        return html(dashboard(self.feed.view(), address=address, has_keys=has_keys))

    async def events(self, request: Request) -> ASGIApp:
        """Return the stream; HEAD tells whether there would be one."""
        if not self.access.is_signed_in(request):
            return plain("Sign in at /dashboard/login.\n", 401)
        if self.gate.is_full:
            return plain("Too many pages are open; close one.\n", 503, {"retry-after": "10"})
        if request.method == "HEAD":
            return plain("", 200)
        return EventStream(
            message=lambda: self.feed.message() if self.access.is_signed_in(request) else None,
            is_stopping=lambda: self.source.is_stopping,
            gate=self.gate,
            headers=UNSTORED,
        )
