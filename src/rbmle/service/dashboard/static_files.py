"""Scripts and styles; a browser asks whether its copy is still the newest."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rbmle.service.dashboard.answers import SECURITY, plain

FOLDER = Path(__file__).parent / "static"
VENDORED = ("rbmle", "vendored")  # a package and its folder


class Files(StaticFiles):
    """Starlette's files with our headers; to override `get_response` is how it takes them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, or that the browser's copy is the same; nobody needs to be signed in."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            return plain("There is no such file.\n", error.status_code)
        response.headers.update({**SECURITY, "cache-control": "no-cache"})
        return response
