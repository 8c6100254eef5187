"""A request and its reply as values, and the promise that a dialect keeps: route, decode, encode."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from rbmle.service.access.keys import Scope
from rbmle.service.api.faults import Fault, Refusal
from rbmle.service.api.operations import Operations
from rbmle.service.api.paths import match, segments
from rbmle.service.deciding.requests import ActivateRequest, RankAnswer, RankRequest, RewardRequest

JSON = b"application/json"
BYTES = b"application/octet-stream"
MOST_BYTES = 2**20  # of a body

Headers = tuple[tuple[bytes, bytes], ...]
Decoded = RankRequest | RewardRequest | ActivateRequest
Decode = Callable[[str, bytes], Decoded]  # given the id in the path, and the body
Encode = Callable[[RankAnswer], bytes]
Operate = Callable[
    [Operations, str, bytes], Awaitable[bytes]
]  # and the id in the path, and the body
Segments = Sequence[str]
EndpointTable = Mapping[tuple[str, ...], Mapping[str, "Endpoint"]]  # by pattern and method


class Request(Struct, frozen=True, kw_only=True):
    """An HTTP request, whoever received it."""

    method: str
    path: bytes  # percent-encoded, as it was sent
    query: bytes
    headers: dict[bytes, bytes]  # names are in lower case; of equal ones the last counts
    address: str  # of the client
    repeated: tuple[bytes, ...] = ()  # names of headers that were sent more than once
    body: bytes = b""


def repeated_headers(sent: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, ...]:
    """Return the names of headers that were sent more than once."""
    names = [name for name, _ in sent]
    if len(set(names)) == len(names):
        return ()
    return tuple(sorted({name for name in names if names.count(name) > 1}))


class Reply(Struct, frozen=True):
    """What an HTTP response says."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    kind: bytes = JSON  # the media type of a body that is not empty


ReplyTo = Callable[[Reply], None]  # is called once, in the loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked: a rank, reward or activation, which is decoded, or an operation."""

    name: str  # in metrics
    scope: Scope  # that a key needs
    status: int = 200  # of success
    most_bytes: int = MOST_BYTES  # of a body
    kind: bytes = JSON  # the media type of a reply
    decode: Decode | None = None  # None: it is an operation
    unpack: Decode | None = None  # as `decode`, but does not look at features; None: there are none
    encode: Encode | None = None  # None: the reply has no body
    operate: Operate | None = None  # None: it is decoded


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
    """Return endpoints by pattern and method, given as `GET events/{id}`."""
    table: dict[tuple[str, ...], dict[str, Endpoint]] = {}
    for place, endpoint in endpoints.items():
        method, pattern = place.split(" ")
        table.setdefault(tuple(pattern.split("/")), {})[method] = endpoint
    return table


@dataclass(frozen=True, slots=True)
class Route:
    """What a request asks for, by its method and path."""

    endpoint: Endpoint
    id: str = ""  # empty: the path has none

    def decode(self, body: bytes, *, is_strict: bool) -> Decoded | None:
        """Return a rank, reward or activate request, or raise; None for an operation.

        If it `is_strict`, features are checked too, and RefusedError names the part that is wrong.
        """
        endpoint = self.endpoint
        decode = endpoint.decode if is_strict else endpoint.unpack or endpoint.decode
        return None if decode is None else decode(self.id, body)

    def encode(self, answer: RankAnswer | None) -> Reply:
        """Return the reply of success to a decoded request; only a rank request has an answer."""
        encode = self.endpoint.encode
        if answer is None or encode is None:
            return Reply(self.endpoint.status)
        return Reply(self.endpoint.status, encode(answer))

    async def operate(self, operations: Operations, body: bytes) -> Reply:
        """Do an operation, and return the reply of success, or raise."""
        endpoint = self.endpoint
        assert endpoint.operate is not None
        done = await endpoint.operate(operations, self.id, body)
        return Reply(endpoint.status, done, kind=endpoint.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format: where its endpoints are, and how it words a refusal.

    `table` takes the parts of a path and the query, and returns endpoints and the rest of the path.
    """

    request_header: bytes  # whose value is the same when a client sends a request again
    checks_rewards: bool  # refuse those that their event cannot have
    table: Callable[[Segments, bytes], tuple[EndpointTable, Segments] | Refusal]
    fault: Callable[[Fault, str], Refusal]  # what can go wrong whatever is asked
    refuse: Callable[[Refusal, bytes], Reply]  # given a problem and the path

    def route(self, method: str, path: bytes, query: bytes) -> Route | Refusal:
        """Return what is asked, or why that cannot be."""
        parts = segments(path)
        if parts is None:
            return self.fault(Fault.MALFORMED, "the path is not valid UTF-8; encode ids as UTF-8")
        found = self.table(parts, query)
        if isinstance(found, Refusal):
            return found
        matched = match(*found)
        if matched is None:
            return self.fault(Fault.NOT_FOUND, f"there is no resource at /{'/'.join(parts)}")
        methods, id = matched
        if method not in methods:
            allow = tuple(sorted(methods))
            message = f"{method} is not allowed here; allowed are {', '.join(allow)}"
            return replace(self.fault(Fault.METHOD_NOT_ALLOWED, message), allow=allow)
        return Route(methods[method], id)
