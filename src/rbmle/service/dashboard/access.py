"""The way in and out: a form that takes a key, and a cookie that stands for it.

No other site can send the form for a visitor. The cookie is SameSite=Strict, so a foreign form comes
without it; and a form is only taken if the browser says that it is one of ours.
"""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from rbmle.service.dashboard.answers import html, redirect
from rbmle.service.dashboard.overview import Backend, may_look
from rbmle.service.dashboard.pages import login
from rbmle.service.dashboard.sessions import LIFETIME_SECONDS, Sessions

PATH = "/dashboard"
COOKIE = "rbmle_session"
LONGEST_FORM = 4096  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may look."""

    source: Backend
    sessions: Sessions

    def is_signed_in(self, request: Request) -> bool:
        """Return whether a request comes with a cookie of ours, or none is needed."""
        guard = self.source.keys
        token = request.cookies.get(COOKIE, "")
        return guard is None or self.sessions.is_open(token, guard, self.source.wall_clock())

    async def login_page(self, request: Request) -> Response:
        """Return the form, unless there is no need for it."""
        return redirect(PATH) if self.is_signed_in(request) else html(login())

    async def sign_in(self, request: Request) -> Response:
        """Take a key, and give a cookie for it."""
        guard, throttle, now = self.source.keys, self.source.throttle, self.source.now()
        if guard is None:
            return redirect(PATH)
        if not _is_from_here(request):
            return html(login("This form was sent by another site. Sign in here."), 403)
        address = request.client.host if request.client is not None else ""
        body = await _body(request)
        if body is None:
            return html(login(f"The form has more than {LONGEST_FORM} bytes. Enter a key."), 413)
        key = parse_qs(body.decode(errors="replace")).get("key", [""])[0].strip()
        if not may_look(guard, key):
            if wait := throttle.retry_after(address, now):
                problem = f"Too many wrong keys. Try again in {wait} s."
                return html(login(problem), 429, {"retry-after": str(wait)})
            throttle.failed(address, now)
            problem = "This key may not see the dashboard. Check it, and try again."
            return html(login(problem), 401)
        token = self.sessions.open(key, self.source.wall_clock())
        return _with_cookie(redirect(PATH), request, token, LIFETIME_SECONDS)

    async def sign_out(self, request: Request) -> Response:
        """End the session, and delete the cookie."""
        if not _is_from_here(request):
            return html(login("This form was sent by another site. Sign out here."), 403)
        if self.source.keys is not None:
            token = request.cookies.get(COOKIE, "")
            self.sessions.close(token, self.source.keys, self.source.wall_clock())
        return _with_cookie(redirect(f"{PATH}/login"), request, "", 0)


def _with_cookie(answer: Response, request: Request, token: str, seconds: int) -> Response:
    answer.set_cookie(
        COOKIE,
        token,
        max_age=seconds,
        path=PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


def _is_from_here(request: Request) -> bool:
    """Return whether a form is ours, by what no page can forge.

    Browsers say it by Sec-Fetch-Site where the connection can be trusted, and else by Origin. What says
    neither is no browser, and has no visitor's cookie to misuse.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _body(request: Request) -> bytes | None:
    """Return the body of a form; None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            return None
    return body
