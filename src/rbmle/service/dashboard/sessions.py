"""Who is signed in: a signed cookie that every front end with the same key accepts.

The cookie is `1.EXPIRES.ID.SIGNATURE`: a version, seconds since the epoch, a random id, and the HMAC-SHA256
of what stands before it, under a secret derived from the key that was entered. Nothing has to be remembered
to check it, so it is valid at every worker and at every front end that knows the key, and after a restart.
A session ends when it expires, when its key is replaced, or when its reader signs out.

Signing out is the one thing a signature cannot express. Ids of ended sessions are kept until they would have
expired, in a file in the data folder, which all front ends with this folder read.
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

from rbmle.service.access.keys import Scope
from rbmle.service.dashboard.overview import Guard

LIFETIME_SECONDS = 12 * 60 * 60
MOST_ENDED = 10_000  # sessions that were ended early; beyond them the oldest is forgotten
VERSION = "1"
LONGEST_TOKEN = 128  # characters; ours have 78
_PURPOSE = b"rbmle dashboard session"  # so that no other use of a key gives the same secret


@dataclass(slots=True)
class Sessions:
    """Opens, checks and ends sessions; without a path, ended sessions are known to this process only."""

    path: Path | None = None
    _ended: dict[str, int] = field(default_factory=dict, repr=False)  # when each would have expired
    _stamp: tuple[int, int] = field(default=(0, 0), repr=False)  # of the file that was read last

    def open(self, key: str, now: float) -> str:
        """Return the token of a new session; `now` is in seconds since the epoch."""
        payload = f"{VERSION}.{int(now) + LIFETIME_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{payload}.{_signature(payload, _digest(key))}"

    def is_open(self, token: str, guard: Guard, now: float) -> bool:
        """Return whether a token was signed with a key that still opens the dashboard, and has not ended."""
        verified = _verify(token, guard)
        if verified is None:
            return False
        id, expires = verified
        if now >= expires:
            return False
        self._read(now)
        return id not in self._ended

    def close(self, token: str, guard: Guard, now: float) -> None:
        """End a session at all front ends with this data folder; a token that is not ours changes nothing."""
        verified = _verify(token, guard)
        if verified is None or now >= verified[1]:
            return
        id, expires = verified
        self._ended[id] = expires
        with suppress(OSError):  # a full disk: this process has ended it, and the cookie is deleted
            self._write(id, expires, now)

    def _read(self, now: float) -> None:
        """Take in what other processes have written since the last look."""
        if self.path is None:
            return
        with suppress(OSError):
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._ended = _newest(self._ended | _parse(self.path.read_text()), now)
                self._stamp = stamp

    def _write(self, id: str, expires: int, now: float) -> None:
        """Add a session to the file, and drop those that have expired by themselves."""
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


def _verify(token: str, guard: Guard) -> tuple[str, int] | None:
    """Return the id of a session and when it expires; None if no key that may look has signed it."""
    if len(token) > LONGEST_TOKEN or not token.isascii():
        return None
    payload, _, signature = token.rpartition(".")
    version, _, rest = payload.partition(".")
    expires, _, id = rest.partition(".")
    # Every key is tried, and each comparison takes the same time: it shows nothing about the keys.
    signed = [
        hmac.compare_digest(_signature(payload, digest), signature)
        for digest in guard.digests(Scope.READ)
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
    """Return ended sessions and when each would have expired; a line that was cut off is skipped."""
    lines = [line.split(" ") for line in text.split("\n")]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def _newest(ended: dict[str, int], now: float) -> dict[str, int]:
    """Return the sessions that have not expired, as many as are kept."""
    open_still = {id: expires for id, expires in ended.items() if now < expires}
    return dict(sorted(open_still.items(), key=lambda item: item[1])[-MOST_ENDED:])
