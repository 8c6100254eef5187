"""What can go wrong with a log, as its callers need to tell it apart.

LogError
├── LogUnavailable     a disk or a server that does not serve at the moment; try again later
├── DuplicateRequest   rows whose request was stored before
├── LeaseLost          another learner has taken over; nothing was stored
├── LogDamaged         a row that is not what was stored
└── LogRefused         a log that must not be opened: in use, foreign, or from a later version
"""

import re
from collections.abc import Sequence

from rbmle.core.errors import RBMLEError

PUBLIC_MESSAGE = "the log is not available at the moment; send the same request again"  # to clients


class LogError(RBMLEError):
    """The root of the tree."""


class LogUnavailable(LogError):
    """A full disk, a failed read, write or sync, a lost connection, or a closed log.

    The log stays usable, and the same call may be repeated. `may_be_stored` tells that an append
    failed so late that its rows, all of them, may be found stored: at once by another connection,
    or after a restart. Repeated by the same log with the same rows, it stores them once; anybody
    else asks `of_request`.

    The message is for the operator, and may name files and hosts; clients are told it only if it
    `is_public`.
    """

    def __init__(
        self, message: str, *, may_be_stored: bool = False, is_public: bool = False
    ) -> None:
        LogError.__init__(self, message)
        self.may_be_stored = may_be_stored
        self.public_message = message if is_public else PUBLIC_MESSAGE


class DuplicateRequest(LogError):
    """Rows whose request was stored before, or stands twice in one batch; nothing of it is stored.

    `places` are theirs in the batch: all that has to be left out for the rest to be stored.
    """

    def __init__(self, message: str, places: Sequence[int]) -> None:
        LogError.__init__(self, message)
        self.places = tuple(places)


class LeaseLost(LogError):
    """What a learner wanted to write after another one had taken over; nothing of it is stored."""

    def __init__(self, token: int, newer: int) -> None:
        self.newer = newer
        LogError.__init__(self, f"the lease {token} is over: another learner has the lease {newer}")


class LogDamaged(LogError):
    """A row that is not what was stored; `seq` is its number, or None if the damage hides it."""

    def __init__(self, message: str, seq: int | None = None) -> None:
        LogError.__init__(self, message)
        self.seq = seq


class LogRefused(LogError):
    """A log that must not be opened: in use by another writer, foreign, or from a later version."""


_PASSWORD = re.compile(r"(?i)(postgres(?:ql)?://[^\s:/@]*):\S*@|(password=)[^\s&]*")


def masked(text: str) -> str:
    """Return a text without the passwords of the URLs of databases in it.

    >>> masked("postgresql://me:secret@host/data?sslpassword=secret")
    'postgresql://me:***@host/data?sslpassword=***'
    """
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", text)
