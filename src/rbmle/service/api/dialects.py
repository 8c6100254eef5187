"""The dialects that are spoken here, by the first part of a path."""

from functools import lru_cache

from msgspec import Struct

from rbmle.service.access.keys import Scope
from rbmle.service.api.base import Dialect, Endpoint, Request, Route
from rbmle.service.api.faults import Fault, Refusal
from rbmle.service.api.native.dialect import NATIVE
from rbmle.service.api.personalizer.dialect import PERSONALIZER

LONGEST_KNOWN = 48  # bytes of a path; the paths that are asked for most have no ids, and are short

_DIALECTS = {b"v1": NATIVE, b"personalizer": PERSONALIZER}


def dialect_of(path: bytes) -> Dialect | None:
    """Return the dialect of a path; None for one that is not of the API."""
    return _DIALECTS.get(path.lstrip(b"/").partition(b"/")[0].lower())


_NOWHERE = Route(Endpoint(name="none", scope=Scope.ADMIN))


class Resolved(Struct, frozen=True):
    """What a method and a path lead to."""

    dialect: Dialect
    route: Route
    problem: Refusal | None = None  # why they lead nowhere


def resolve(request: Request) -> Resolved:
    """Return what a request leads to."""
    find = _resolve_known if len(request.path) <= LONGEST_KNOWN else _resolve
    return find(request.method, request.path, request.query)


def _resolve(method: str, path: bytes, query: bytes) -> Resolved:
    dialect = dialect_of(path)
    if dialect is None:
        return Resolved(
            NATIVE, _NOWHERE, NATIVE.fault(Fault.NOT_FOUND, "there is no such resource")
        )
    route = dialect.route(method, path, query)
    if isinstance(route, Refusal):
        return Resolved(dialect, _NOWHERE, route)
    return Resolved(dialect, route)


_resolve_known = lru_cache(maxsize=256)(_resolve)
