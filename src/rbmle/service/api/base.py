"""A request and its reply as values, and the promise that a dialect keeps."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeVar

from msgspec import Struct

from rbmle.service.access.keys import Scope
from rbmle.service.api.faults import Fault, Problem
from rbmle.service.api.operations import Operations
from rbmle.service.deciding.requests import ActivateRequest, RankAnswer, RankRequest, RewardRequest

JSON = b"application/json"
BYTES = b"application/octet-stream"
MOST_BYTES = 2**20  # of a body

Headers = tuple[tuple[bytes, bytes], ...]
Decoded = RankRequest | RewardRequest | ActivateRequest


class Request(Struct, frozen=True, kw_only=True):
    """An HTTP request, whoever received it."""

    method: str
    path: bytes  # percent-encoded, as it was sent
    query: bytes
    headers: dict[bytes, bytes]  # names are in lower case; of equal ones the last counts
    address: str  # of the client
    body: bytes = b""


class Reply(Struct, frozen=True):
    """What an HTTP response says."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    kind: bytes = JSON  # the media type of a body that is not empty


ReplyTo = Callable[[Reply], None]  # is called once, in the loop


class Route(Protocol):
    """What a request asks for, by its method and path."""

    @property
    def operation(self) -> Enum:
        """Return what is to be done."""
        ...

    @property
    def scope(self) -> Scope:
        """Return what a key needs."""
        ...


Routed = TypeVar("Routed", bound=Route)


class Dialect(Protocol[Routed]):
    """A wire format: from requests to what the service is asked, and from its answers to replies."""

    checks_rewards: bool  # refuse those that their event cannot have
    request_header: bytes  # whose value is the same when a client sends a request again

    def route(self, method: str, path: bytes, query: bytes) -> Routed | Problem:
        """Return what is asked, or why that cannot be."""
        ...

    def most_bytes(self, route: Routed) -> int:
        """Return how large the body of such a request may be."""
        ...

    def decode(self, route: Routed, body: bytes, *, is_strict: bool) -> Decoded | None:
        """Return a rank, reward or activate request, or raise; None for any other operation.

        If it `is_strict`, features are checked too, and RefusedError names the part that is wrong.
        """
        ...

    def encode(self, route: Routed, answer: RankAnswer | None) -> Reply:
        """Return the reply of success to a decoded request; only a rank request has an answer."""
        ...

    async def operate(self, operations: Operations, route: Routed, body: bytes) -> Reply:
        """Do any other operation, and return the reply of success, or raise."""
        ...

    def fault(self, what: Fault, message: str) -> Problem:
        """Return the refusal of what can go wrong whatever is asked."""
        ...

    def refuse(self, problem: Problem, path: bytes) -> Reply:
        """Return the reply of a refusal."""
        ...
