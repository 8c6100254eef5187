"""What our own dialect can be asked: `/v1/rank`, `/v1/events/{id}/reward`, and a few more."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from rbmle.service.access.keys import Scope
from rbmle.service.api.faults import Fault, Problem
from rbmle.service.api.paths import ID, Table, match, segments

PREFIX = "v1"
REQUEST_HEADER = "idempotency-key"


class Operation(Enum):
    """What a client asks."""

    RANK = auto()
    REWARD = auto()
    ACTIVATE = auto()
    GET_EVENT = auto()
    GET_CONFIGURATION = auto()
    PUT_CONFIGURATION = auto()
    PATCH_CONFIGURATION = auto()
    GET_STATUS = auto()


TABLE: Table[Operation] = MappingProxyType(
    {
        ("rank",): {"POST": Operation.RANK},
        ("events", ID): {"GET": Operation.GET_EVENT},
        ("events", ID, "reward"): {"POST": Operation.REWARD},
        ("events", ID, "activate"): {"POST": Operation.ACTIVATE},
        ("configuration",): {
            "GET": Operation.GET_CONFIGURATION,
            "PUT": Operation.PUT_CONFIGURATION,
            "PATCH": Operation.PATCH_CONFIGURATION,
        },
        ("status",): {"GET": Operation.GET_STATUS},
    }
)

SUCCESS: Mapping[Operation, int] = MappingProxyType(
    {
        Operation.RANK: 201,
        Operation.REWARD: 204,
        Operation.ACTIVATE: 204,
        Operation.GET_EVENT: 200,
        Operation.GET_CONFIGURATION: 200,
        Operation.PUT_CONFIGURATION: 200,
        Operation.PATCH_CONFIGURATION: 200,
        Operation.GET_STATUS: 200,
    }
)

_DECIDING = frozenset({Operation.RANK, Operation.REWARD, Operation.ACTIVATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What is asked, and of which event."""

    operation: Operation
    id: str | None = None  # None: the path has none
    is_read: bool  # it changes nothing

    @property
    def scope(self) -> Scope:
        """Return what a key needs."""
        if self.operation in _DECIDING:
            return Scope.DECIDE
        return Scope.READ if self.is_read else Scope.ADMIN

    @property
    def status(self) -> int:
        """Return the status of success."""
        return SUCCESS[self.operation]


def route(method: str, raw_path: bytes, query: bytes = b"") -> Route | Problem | None:
    """Return what is asked, why it cannot be, or None if the path is not of this dialect."""
    parts = segments(raw_path)
    if parts is None:
        if not raw_path.lstrip(b"/").lower().startswith(PREFIX.encode() + b"/"):
            return None
        return fault(Fault.MALFORMED, "the path is no UTF-8; encode ids as UTF-8")
    if parts[0].lower() != PREFIX:
        return None
    found = match(TABLE, parts[1:])
    if found is None:
        return fault(Fault.NOT_FOUND, f"there is nothing at /{'/'.join(parts)}")
    if method not in found.methods:
        return refusal_of_method(method, tuple(sorted(found.methods)))
    return Route(operation=found.methods[method], id=found.id, is_read=method == "GET")


def fault(what: Fault, message: str, *, target: str | None = None) -> Problem:
    """Return a refusal; its code is the name of what went wrong."""
    return Problem(status=what.value, code=what.name.lower(), message=message, target=target)


def refusal_of_method(method: str, allow: tuple[str, ...]) -> Problem:
    """Return the refusal of a method that a path does not have."""
    return Problem(
        status=Fault.METHOD_NOT_ALLOWED.value,
        code=Fault.METHOD_NOT_ALLOWED.name.lower(),
        message=f"{method} is not possible here; there is {', '.join(allow)}",
        allow=allow,
    )
