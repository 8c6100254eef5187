"""Who is signed in: a random token for each browser, kept in memory."""

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from rbmle.service.dashboard.overview import Guard, may_look

LIFETIME_SECONDS = 12 * 60 * 60
MOST_SESSIONS = 1000  # beyond them the oldest ends


@dataclass(frozen=True, slots=True)
class Session:
    """The key that opened a session, and when it ends."""

    key: str = field(repr=False)
    end: float


@dataclass(slots=True)
class Sessions:
    """Sessions by the digest of their token; one lasts no longer than its key."""

    _sessions: OrderedDict[bytes, Session] = field(default_factory=OrderedDict, repr=False)

    def open(self, key: str, now: float) -> str:
        """Return the token of a new session."""
        token = secrets.token_urlsafe(32)
        self._sessions[_digest(token)] = Session(key, now + LIFETIME_SECONDS)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return token

    def is_open(self, token: str, guard: Guard, now: float) -> bool:
        """Return whether a token is one, its time is not over, and its key still opens the dashboard."""
        session = self._sessions.get(_digest(token))
        if session is None:
            return False
        if now < session.end and may_look(guard, session.key):
            return True
        self.close(token)
        return False

    def close(self, token: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(_digest(token), None)

    def __len__(self) -> int:
        """Return how many sessions are remembered."""
        return len(self._sessions)


def _digest(token: str) -> bytes:
    """Return what is looked up: the time that takes tells nothing of a token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
