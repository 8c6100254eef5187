"""What all dialects share: why a request is refused, and what can go wrong around a request."""

from dataclasses import dataclass
from enum import Enum

from rbmle.core.errors import RBMLEError


class Fault(Enum):
    """What can go wrong whatever is asked; its value is the HTTP status."""

    MALFORMED = 400
    UNAUTHORIZED = 401
    FORBIDDEN = 403
    NOT_FOUND = 404
    METHOD_NOT_ALLOWED = 405
    TIMEOUT = 408
    CONFLICT = 409
    TOO_LARGE = 413
    THROTTLED = 429
    INTERNAL = 500
    NOT_IMPLEMENTED = 501
    UNAVAILABLE = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is refused, in the words of its dialect."""

    status: int
    code: str
    message: str
    target: str | None = None  # the part of the request that is wrong; None: all of it
    allow: tuple[str, ...] = ()  # the methods that the path has, where this one is not among them
    retry_after: int | None = None  # seconds; None: to try again is of no use


class RefusedError(RBMLEError):
    """A request that is refused."""

    def __init__(self, problem: Refusal) -> None:
        self.problem = problem
        super().__init__(problem.message)


class BodyNotReceivedError(RBMLEError):
    """A body that was not received whole."""


class TooLargeError(BodyNotReceivedError):
    """A body over the limit; the rest of it is not wanted: TooLargeError(limit)."""

    def __str__(self) -> str:
        """Return what is wrong and what to do."""
        return f"the body is larger than {self.args[0]:,} bytes; send fewer or shorter features"


class TooSlowError(BodyNotReceivedError):
    """A body that was not there in time."""


class GoneError(BodyNotReceivedError):
    """A client that left before its body was there."""
