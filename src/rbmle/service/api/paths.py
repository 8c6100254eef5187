"""Paths as they came, percent-encoded: an id may contain any character, a slash among them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

T = TypeVar("T")
ID = "{id}"  # in a pattern: any one segment


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


def match(table: Mapping[tuple[str, ...], T], parts: Sequence[str]) -> tuple[T, str] | None:
    """Return what a table has for a path, if anything, and the id in it; words may be in capitals."""
    words = tuple(part.lower() for part in parts)
    if words in table and ID not in words:
        return table[words], ""
    for place in (1, 2):  # where ids stand in all tables
        pattern = (*words[:place], ID, *words[place + 1 :])
        if place < len(parts) and parts[place] and pattern in table:
            return table[pattern], parts[place]
    return None


@lru_cache(maxsize=64)  # most clients send the same few
def parameters(query: bytes) -> Mapping[str, str]:
    """Return the parameters of a query; of those with one name the last, and names in small letters."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return MappingProxyType({name.lower(): value for name, value in pairs})
