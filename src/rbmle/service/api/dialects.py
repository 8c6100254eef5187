"""The dialects that are spoken here, by the first part of a path."""

from functools import lru_cache
from typing import Any

from msgspec import Struct

from rbmle.service.api.base import Dialect, Request
from rbmle.service.api.faults import Problem
from rbmle.service.api.native.dialect import Native
from rbmle.service.api.personalizer.dialect import Personalizer

LONGEST_KNOWN = 48  # bytes of a path; the paths that are asked for most have no ids, and are short

NATIVE: Dialect[Any] = Native()
_DIALECTS: dict[bytes, Dialect[Any]] = {b"v1": NATIVE, b"personalizer": Personalizer()}


def dialect_of(path: bytes) -> Dialect[Any] | None:
    """Return the dialect of a path; None for one that is not of the API."""
    return _DIALECTS.get(path.lstrip(b"/").partition(b"/")[0].lower())


class Resolved(Struct, frozen=True):
    """What a method and a path lead to."""

    dialect: Dialect[Any]
    route: Any  # of the dialect, or a Problem
    operation: str  # its name; "none" for a Problem


def resolve(request: Request) -> Resolved:
    """Return what a request leads to."""
    find = _resolve_known if len(request.path) <= LONGEST_KNOWN else _resolve
    return find(request.method, request.path, request.query)


def _resolve(method: str, path: bytes, query: bytes) -> Resolved:
    dialect = dialect_of(path) or NATIVE
    route = dialect.route(method, path, query)
    if isinstance(route, Problem):
        return Resolved(dialect, route, "none")
    return Resolved(dialect, route, route.operation.name.lower())


_resolve_known = lru_cache(maxsize=256)(_resolve)
