"""Sign-in: sessions in a signed cookie that every front end with the same key accepts.

The cookie is `1.EXPIRES.ID.SIGNATURE`: a version, seconds since the epoch, a random id, and the HMAC-SHA256 of
all that, with a secret derived from the key that was entered. No server state is needed to check it, so it is
valid at every worker, at every front end that knows the key, and after a restart. A session ends when it
expires, when its key is rotated, or when the user signs out.

A signature cannot express a sign-out. The ids of sessions that were signed out are kept until they expire, in a
file in the data folder that all its front ends read.

Other sites cannot send the forms on behalf of a visitor (CSRF): the cookie is SameSite=Strict, and forms are
accepted only if the browser says that they come from this site.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.dashboard.overview import DashboardSource
from rbmle.service.dashboard.pages import html, login, redirect

LIFETIME_SECONDS = 12 * 60 * 60
MOST_ENDED = 10_000  # sessions that were signed out; if there are more, the oldest is dropped
VERSION = "1"
LONGEST_TOKEN = 128  # characters; ours have 78
_PURPOSE = b"rbmle dashboard session"  # so that other uses of a key have other secrets

PATH = "/dashboard"
COOKIE = "rbmle_session"
LONGEST_FORM = 4096  # bytes


@dataclass(slots=True)
class Sessions:
    """Opens, checks and ends sessions; without a path, only this process knows which were ended."""

    path: Path | None = None
    _ended: dict[str, int] = field(default_factory=dict, repr=False)  # when each would have expired
    _stamp: tuple[int, int] = field(default=(0, 0), repr=False)  # of the file when it was read

    def open(self, key: str, now: float) -> str:
        """Return the token of a new session; `now` is in seconds since the epoch."""
        payload = f"{VERSION}.{int(now) + LIFETIME_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{payload}.{_signature(payload, _digest(key))}"

    def is_open(self, token: str, keys: KeyRing, now: float) -> bool:
        """Return whether a token was signed with a valid key, and its session has not ended."""
        verified = _verify(token, keys)
        if verified is None:
            return False
        id, expires = verified
        if now >= expires:
            return False
        self._read(now)
        return id not in self._ended

    def close(self, token: str, keys: KeyRing, now: float) -> None:
        """End a session at all front ends with this data folder; ignore tokens that are not valid."""
        verified = _verify(token, keys)
        if verified is None or now >= verified[1]:
            return
        id, expires = verified
        self._ended[id] = expires
        with suppress(OSError):  # on a full disk, at least this process ends it
            self._write(id, expires, now)

    def _read(self, now: float) -> None:
        """Read the file if another process has changed it."""
        if self.path is None:
            return
        with suppress(OSError):
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._ended = _newest(self._ended | _parse(self.path.read_text()), now)
                self._stamp = stamp

    def _write(self, id: str, expires: int, now: float) -> None:
        """Add a session to the file, and drop expired ones."""
        if self.path is None:
            self._ended = _newest(self._ended, now)
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = _parse(file.read())
            kept = _newest(known, now)
            if len(kept) < len(known):
                file.truncate(0)
                file.write("".join(f"{id} {end}\n" for id, end in kept.items()))
            file.write(f"{id} {expires}\n")
        self._ended = kept | {id: expires}


def _verify(token: str, keys: KeyRing) -> tuple[str, int] | None:
    """Return the id and the expiry of a session; None if it was not signed with a valid key."""
    if len(token) > LONGEST_TOKEN or not token.isascii():
        return None
    payload, _, signature = token.rpartition(".")
    version, _, rest = payload.partition(".")
    expires, _, id = rest.partition(".")
    # Every key is tried in constant time, so that the time says nothing about the keys.
    signed = [
        hmac.compare_digest(_signature(payload, digest), signature)
        for digest in keys.digests(Scope.READ)
    ]
    if version != VERSION or not any(signed):
        return None
    return id, int(expires)


def _signature(payload: str, digest: bytes) -> str:
    secret = hmac.digest(digest, _PURPOSE, "sha256")
    signed = hmac.digest(secret, payload.encode(), "sha256")
    return urlsafe_b64encode(signed).decode().rstrip("=")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def _parse(text: str) -> dict[str, int]:
    """Return ended sessions and when each would have expired; skip incomplete lines."""
    lines = [line.split(" ") for line in text.split("\n")]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def _newest(ended: dict[str, int], now: float) -> dict[str, int]:
    """Drop the sessions that have expired, and the oldest if there are too many."""
    open_still = {id: expires for id, expires in ended.items() if now < expires}
    return dict(sorted(open_still.items(), key=lambda item: item[1])[-MOST_ENDED:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Signs users in and out."""

    source: DashboardSource
    sessions: Sessions

    def is_signed_in(self, request: Request) -> bool:
        """Return whether a request has a valid cookie, or needs none."""
        keys = self.source.keys
        token = request.cookies.get(COOKIE, "")
        return keys is None or self.sessions.is_open(token, keys, self.source.wall_clock())

    async def login_page(self, request: Request) -> Response:
        """Return the sign-in page, unless the user is signed in."""
        return redirect(PATH) if self.is_signed_in(request) else html(login())

    async def sign_in(self, request: Request) -> Response:
        """Accept a key, and set a cookie."""
        keys, throttle, now = self.source.keys, self.source.throttle, self.source.now()
        if keys is None:
            return redirect(PATH)
        if not _is_same_origin(request):
            return html(login("This form was sent by another site. Sign in here."), 403)
        address = request.client.host if request.client is not None else ""
        body = await _read_body(request)
        if body is None:
            return html(login(f"The form has more than {LONGEST_FORM} bytes. Enter a key."), 413)
        key = parse_qs(body.decode(errors="replace")).get("key", [""])[0].strip()
        scope = keys.scope_of(key)
        if scope is None or not scope.covers(Scope.READ):
            if wait := throttle.retry_after(address, now):
                problem = f"Too many wrong keys. Try again in {wait} s."
                return html(login(problem), 429, {"retry-after": str(wait)})
            throttle.count_failure(address, now)
            problem = "This key cannot open the dashboard. Check it, and try again."
            return html(login(problem), 401)
        token = self.sessions.open(key, self.source.wall_clock())
        return _set_cookie(redirect(PATH), request, token, LIFETIME_SECONDS)

    async def sign_out(self, request: Request) -> Response:
        """End the session, and delete the cookie."""
        if not _is_same_origin(request):
            return html(login("This form was sent by another site. Sign out here."), 403)
        if self.source.keys is not None:
            token = request.cookies.get(COOKIE, "")
            self.sessions.close(token, self.source.keys, self.source.wall_clock())
        return _set_cookie(redirect(f"{PATH}/login"), request, "", 0)


def _set_cookie(response: Response, request: Request, token: str, seconds: int) -> Response:
    response.set_cookie(
        COOKIE,
        token,
        max_age=seconds,
        path=PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _is_same_origin(request: Request) -> bool:
    """Return whether a form is from this site, by headers that no page can forge.

    Browsers send Sec-Fetch-Site on secure connections, and else Origin. A client that sends neither is not a
    browser, and has no visitor's cookie to misuse.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _read_body(request: Request) -> bytes | None:
    """Return the body of a form; None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            return None
    return body
