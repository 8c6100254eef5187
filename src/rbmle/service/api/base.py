"""Requests and replies of the API as values, and what a dialect has: endpoints, and the wording of refusals."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec import Struct

from rbmle.core.errors import RBMLEError
from rbmle.service.access.keys import Scope
from rbmle.service.api.operations import Operations
from rbmle.service.front.requests import ActivateRequest, RankAnswer, RankRequest, RewardRequest

JSON = b"application/json"
BYTES = b"application/octet-stream"
MOST_BYTES = 2**20  # of a body


class Fault(Enum):
    """What can go wrong with any request; the value is the HTTP status."""

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
    """Why a request is refused, with the codes of its dialect."""

    status: int
    code: str
    message: str
    target: str | None = None  # the invalid part of the request; None: all of it
    allow: tuple[str, ...] = ()  # the methods of the path, if it does not have this one
    retry_after: int | None = None  # seconds; None: a retry would be refused as well


class RefusedError(RBMLEError):
    """Refuses a request."""

    def __init__(self, problem: Refusal) -> None:
        self.problem = problem
        super().__init__(problem.message)


class BodyNotReceivedError(RBMLEError):
    """A body did not arrive completely."""


class TooLargeError(BodyNotReceivedError):
    """A body is over the limit: TooLargeError(limit)."""

    def __str__(self) -> str:
        return f"the body is larger than {self.args[0]:,} bytes; send fewer or shorter features"


class TooSlowError(BodyNotReceivedError):
    """A body did not arrive in time."""


class GoneError(BodyNotReceivedError):
    """The client disconnected before its body arrived."""


Headers = tuple[tuple[bytes, bytes], ...]
Decoded = RankRequest | RewardRequest | ActivateRequest
Decode = Callable[[str, bytes], Decoded]  # from the id in the path, and the body
Encode = Callable[[RankAnswer], bytes]
Operate = Callable[[Operations, str, bytes], Awaitable[bytes]]  # with the id, and the body


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One call of the API: a rank, reward or activation, which is decoded, or an operation."""

    name: str  # in metrics
    scope: Scope  # that a key needs
    status: int = 200  # of success
    most_bytes: int = MOST_BYTES  # of a body
    kind: bytes = JSON  # the media type of a reply
    decode: Decode | None = None  # None: it is an operation
    unpack: Decode | None = None  # like `decode`, without checking features; None: it has none
    encode: Encode | None = None  # None: the reply has no body
    operate: Operate | None = None  # None: it is decoded


EndpointTable = Mapping[tuple[str, ...], Mapping[str, Endpoint]]  # by pattern and method


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format: its endpoints, and how it words refusals."""

    request_header: bytes  # with the idempotency key
    checks_rewards: bool  # refuse rewards that their event cannot have
    endpoints: EndpointTable
    fault: Callable[[Fault, str], Refusal]
    refuse: Callable[[Refusal], "Reply"]


@dataclass(frozen=True, slots=True)
class Route:
    """Where the method and the path of a request lead."""

    dialect: Dialect
    endpoint: Endpoint
    id: str = ""  # empty if the path has none
    problem: Refusal | None = None  # why it leads nowhere

    def decode(self, body: bytes, *, is_strict: bool) -> Decoded | None:
        """Return a rank, reward or activate request, or raise; None for an operation.

        If `is_strict`, features are checked too, and RefusedError names the invalid part.
        """
        endpoint = self.endpoint
        decode = endpoint.decode if is_strict else endpoint.unpack or endpoint.decode
        return None if decode is None else decode(self.id, body)

    def encode(self, answer: RankAnswer | None) -> "Reply":
        """Return the reply of success to a decoded request; only a rank has an answer."""
        encode = self.endpoint.encode
        if answer is None or encode is None:
            return Reply(self.endpoint.status)
        return Reply(self.endpoint.status, encode(answer))


class Request(Struct, frozen=True, kw_only=True):
    """A request of the API, without what its route already says."""

    route: Route
    headers: dict[bytes, bytes]  # by lower-case name; of repeated ones the last
    address: str  # of the client
    repeated: tuple[bytes, ...] = ()  # names of headers that were sent more than once
    body: bytes = b""


class Reply(Struct, frozen=True):
    """An HTTP response."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    kind: bytes = JSON  # the media type of a body that is not empty


ReplyTo = Callable[[Reply], None]  # is called once, in the loop


def repeated_headers(headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, ...]:
    """Return the names of headers that were sent more than once."""
    names = [name for name, _ in headers]
    if len(set(names)) == len(names):
        return ()
    return tuple(sorted({name for name in names if names.count(name) > 1}))


def deciding(
    name: str, decode: Decode, *, unpack: Decode | None = None, encode: Encode | None = None
) -> Endpoint:
    """Return the endpoint of a rank, which has an answer to encode, a reward or an activation."""
    status = 204 if encode is None else 201
    return Endpoint(
        name=name, scope=Scope.DECIDE, status=status, decode=decode, unpack=unpack, encode=encode
    )


def reading(name: str, operate: Operate, *, kind: bytes = JSON) -> Endpoint:
    """Return the endpoint of an operation that changes nothing."""
    return Endpoint(name=name, scope=Scope.READ, operate=operate, kind=kind)


def changing(
    name: str, operate: Operate, *, status: int = 200, most_bytes: int = MOST_BYTES
) -> Endpoint:
    """Return the endpoint of an operation that changes something."""
    return Endpoint(
        name=name, scope=Scope.ADMIN, status=status, operate=operate, most_bytes=most_bytes
    )


def table_of(endpoints: Mapping[str, Endpoint]) -> EndpointTable:
    """Return endpoints by pattern and method, from keys such as `GET events/{id}`."""
    table: dict[tuple[str, ...], dict[str, Endpoint]] = {}
    for place, endpoint in endpoints.items():
        method, pattern = place.split(" ")
        table.setdefault(tuple(pattern.split("/")), {})[method] = endpoint
    return table
