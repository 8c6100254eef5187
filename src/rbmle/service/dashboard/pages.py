"""The HTML pages, from their templates, and the headers of all responses; names of clients are escaped."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as ASGIScope

from rbmle.service.dashboard import words
from rbmle.service.dashboard.overview import BETWEEN
from rbmle.service.dashboard.view import ALL, View, point_rows
from rbmle.service.statistics.ranges import RANGES

SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
)
# With no-referrer, browsers would send the forms of a page with the origin `null`, like those of other sites.
PAGE: Mapping[str, str] = MappingProxyType({"referrer-policy": "same-origin"})
UNSTORED: Mapping[str, str] = MappingProxyType({**SECURITY, "cache-control": "no-store"})
VENDORED = ("rbmle", "vendored")  # a package and its folder
NONE: Mapping[str, str] = MappingProxyType({})


FOLDER = Path(__file__).parent / "static"


def html(content: str, status: int = 200, more: Mapping[str, str] = NONE) -> HTMLResponse:
    """Return the response of a page."""
    return HTMLResponse(content, status, headers={**UNSTORED, **PAGE, **more})


def plain(content: str, status: int, more: Mapping[str, str] = NONE) -> PlainTextResponse:
    """Return a response of plain text."""
    return PlainTextResponse(content, status, headers={**UNSTORED, **more})


def redirect(path: str) -> RedirectResponse:
    """Return a redirect."""
    return RedirectResponse(path, 303, headers=dict(UNSTORED))


class Files(StaticFiles):
    """Starlette's static files with our headers."""

    async def get_response(self, path: str, scope: ASGIScope) -> Response:
        """Return a file, or 304 if the browser has it; a session is not needed."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            return plain("There is no such file.\n", error.status_code)
        response.headers.update({**SECURITY, "cache-control": "no-cache"})
        return response


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def dashboard(view: View, *, address: str, keys: Path | None) -> str:
    """Return the page; the address is that of this service, and `keys` the file of its keys, if it has any."""
    first, _, last = view.range.partition(BETWEEN)
    return _TEMPLATES.get_template("dashboard.html").render(
        view=view,
        points=point_rows(view.points),
        ranges={ALL: "All time", **{name: range.name for name, range in RANGES.items()}},
        dates=(first, last) if last else ("", ""),
        clock=words.clock(view.time),
        address=address,
        keys_folder=None if keys is None else quote(str(keys.absolute().parent)),
    )


def login(problem: str = "") -> str:
    """Return the sign-in page; the problem says why the last attempt failed."""
    return _TEMPLATES.get_template("login.html").render(problem=problem)
