"""Answers of the dashboard, all with the headers that keep a browser from doing more than they say."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

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
