"""Routes: from a method, a path and a query to the endpoint of a dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote_to_bytes

from rbmle.service.access.keys import Scope
from rbmle.service.api.base import Dialect, Endpoint, EndpointTable, Fault, Route
from rbmle.service.api.native import NATIVE, PREFIX
from rbmle.service.api.personalizer.dialect import choose_version

ID = "{id}"  # in a pattern: any one segment
_NOWHERE = Endpoint(name="none", scope=Scope.ADMIN)


def is_api(path: bytes) -> bool:
    """Return whether a path belongs to a dialect."""
    return _first_segment(path) in (PREFIX.encode(), b"personalizer")


def find_route(method: str, path: bytes, query: bytes) -> Route:
    """Return the route of a path of the API, percent-encoded as it was sent."""
    parts = split_path(path)
    rest: Sequence[str] = (parts or [])[1:]
    if _first_segment(path) == PREFIX.encode():
        dialect, problem = NATIVE, None
    else:
        dialect, rest, problem = choose_version(parts or [], query)
    if parts is None:
        problem = dialect.fault(Fault.MALFORMED, "the path is not valid UTF-8; encode ids as UTF-8")
    if problem is not None:
        return Route(dialect, _NOWHERE, problem=problem)
    match = _match(dialect.endpoints, rest)
    if match is None:
        return _refuse(
            dialect, Fault.NOT_FOUND, f"there is no resource at /{'/'.join(parts or [])}"
        )
    methods, id = match
    if method in methods:
        return Route(dialect, methods[method], id)
    allow = tuple(sorted(methods))
    message = f"{method} is not allowed here; allowed are {', '.join(allow)}"
    return _refuse(dialect, Fault.METHOD_NOT_ALLOWED, message, allow)


def split_path(path: bytes) -> list[str] | None:
    """Return the segments of a path, each decoded on its own; None if one is not valid UTF-8.

    Extra slashes at the start are ignored: a client whose endpoint ends in a slash sends two.

    >>> split_path(b"//v1/events/a%2Fb%20%C3%A9/reward")
    ['v1', 'events', 'a/b é', 'reward']
    """
    path = path.partition(b"?")[0].lstrip(b"/").removesuffix(b"/")
    try:
        return [
            (unquote_to_bytes(part) if b"%" in part else part).decode() for part in path.split(b"/")
        ]
    except UnicodeDecodeError:
        return None


def _first_segment(path: bytes) -> bytes:
    return path.lstrip(b"/").partition(b"/")[0].lower()


def _match(table: EndpointTable, parts: Sequence[str]) -> tuple[Mapping[str, Endpoint], str] | None:
    """Return the methods of a path, and the id in it; words may be in upper case."""
    words = tuple(part.lower() for part in parts)
    if words in table and ID not in words:
        return table[words], ""
    for place in (1, 2):  # where the ids of all dialects are
        pattern = (*words[:place], ID, *words[place + 1 :])
        if place < len(parts) and parts[place] and pattern in table:
            return table[pattern], parts[place]
    return None


def _refuse(dialect: Dialect, fault: Fault, message: str, allow: tuple[str, ...] = ()) -> Route:
    problem = replace(dialect.fault(fault, message), allow=allow)
    return Route(dialect, _NOWHERE, problem=problem)
