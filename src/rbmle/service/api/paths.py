"""Paths as they came, percent-encoded: an id may contain any character, a slash among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

Operation = TypeVar("Operation")
ID = "{id}"  # in a pattern: any one segment

Table = Mapping[tuple[str, ...], Mapping[str, Operation]]  # pattern, method, what is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Generic[Operation]):
    """What a path offers, by method, and the id in it."""

    methods: Mapping[str, Operation]
    id: str | None  # None: the path has none


def segments(raw_path: bytes) -> list[str] | None:
    """Return the parts of a path, each decoded on its own; None if one is no UTF-8.

    Slashes at the start are one: a client whose endpoint ends in a slash sends two.

    >>> segments(b"//v1/events/a%2Fb%20%C3%A9/reward")
    ['v1', 'events', 'a/b é', 'reward']
    """
    path = raw_path.partition(b"?")[0].lstrip(b"/").removesuffix(b"/")
    try:
        return [
            (unquote_to_bytes(part) if b"%" in part else part).decode() for part in path.split(b"/")
        ]
    except UnicodeDecodeError:
        return None


def match(table: Table[Operation], parts: Sequence[str]) -> Match[Operation] | None:
    """Return what the table has for a path, if anything; words are the same in capitals."""
    words = tuple(part.lower() for part in parts)
    methods = table.get(words)
    if methods is not None and ID not in words:
        return Match(methods=methods, id=None)
    for place in (1, 2):  # where ids stand in all tables
        if place < len(parts) and parts[place]:
            methods = table.get((*words[:place], ID, *words[place + 1 :]))
            if methods is not None:
                return Match(methods=methods, id=parts[place])
    return None


@lru_cache(maxsize=64)  # most clients send the same few
def parameters(query: bytes) -> Mapping[str, str]:
    """Return the parameters of a query; of those with one name the last, and names in small letters."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return MappingProxyType({name.lower(): value for name, value in pairs})
