"""Answers of the dashboard, all with the headers that keep a browser from doing more than they say."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as ASGIScope

SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
)
# With no-referrer a browser would send the forms of a page with the origin `null`, as a foreign one.
PAGE: Mapping[str, str] = MappingProxyType({"referrer-policy": "same-origin"})
UNSTORED: Mapping[str, str] = MappingProxyType({**SECURITY, "cache-control": "no-store"})
FOLDER = Path(__file__).parent / "static"
VENDORED = ("rbmle", "vendored")  # a package and its folder
NONE: Mapping[str, str] = MappingProxyType({})


def html(content: str, status: int = 200, more: Mapping[str, str] = NONE) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(content, status, headers={**UNSTORED, **PAGE, **more})


def plain(content: str, status: int, more: Mapping[str, str] = NONE) -> PlainTextResponse:
    """Return a line of text."""
    return PlainTextResponse(content, status, headers={**UNSTORED, **more})


def redirect(path: str) -> RedirectResponse:
    """Return where to look instead."""
    return RedirectResponse(path, 303, headers=dict(UNSTORED))


class Files(StaticFiles):
    """Starlette's files with our headers; to override `get_response` is how it takes them."""

    async def get_response(self, path: str, scope: ASGIScope) -> Response:
        """Return a file, or that the browser's copy is the same; nobody needs to be signed in."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            return plain("There is no such file.\n", error.status_code)
        response.headers.update({**SECURITY, "cache-control": "no-cache"})
        return response
