"""Limits of requests, and the types of feature values in JSON."""

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from rbmle.core.errors import RBMLEError
from rbmle.features.errors import LEVELS
from rbmle.features.hashing import MOST_PRODUCTS

# Control characters, characters that change how others are shown, and surrogates.
_UNSAFE = ("Cc", "Cf", "Cs")
_JOINERS = "\u200c\u200d"  # zero width: they separate or join neighbours in words and emoji
_VIRAMA = 9  # the combining class
_EMOJI_ENDS = ("\ufe0f", *map(chr, range(0x1F3FB, 0x1F400)))  # a variant, and colours of skin


class LimitError(RBMLEError, ValueError):
    """A request beyond a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest request that is accepted."""

    depth: int = 16  # of nested arrays and objects; in features, LEVELS objects and an array
    values: int = 50_000  # names of objects are not counted
    string: int = 10_000  # characters, of names too
    number: float = 1e15  # in size; integers up to it are exact as floats
    actions: int = 50
    slots: int = 50
    id: int = 256  # characters
    products: int = MOST_PRODUCTS  # of the context's features and the actions'


LIMITS = Limits()

FeatureName = Annotated[str, Meta(min_length=1, max_length=LIMITS.string)]
FeatureNumber = Annotated[float, Meta(ge=-LIMITS.number, le=LIMITS.number)]
FeatureText = Annotated[str, Meta(max_length=LIMITS.string)]
FeatureValue = bool | FeatureNumber | FeatureText | list[FeatureNumber | FeatureText] | None
# By name, or by namespace and name, with more objects in a namespace: LEVELS in all.
if TYPE_CHECKING:
    Features = dict[str, Any]
else:
    Features = dict[FeatureName, FeatureValue]
    for _ in range(LEVELS - 1):
        Features = dict[FeatureName, FeatureValue | Features]


def check(value: Any, limits: Limits = LIMITS) -> None:
    """Raise LimitError if decoded JSON exceeds a limit.

    It goes level by level, without recursion, so that no depth can exhaust the stack.
    """
    level, depth, count = [value], 0, 1
    while True:
        below: list[Any] = []
        containers = 0
        for item in level:
            kind = type(item)
            if kind is str:
                if len(item) > limits.string:
                    raise _too_long(limits)
            elif kind is int or kind is float:
                if not abs(item) <= limits.number:  # NaN is not either
                    raise _too_large(limits)
            elif kind is dict:
                containers += 1
                if max(map(len, item), default=0) > limits.string:
                    raise _too_long(limits)
                below += item.values()
            elif kind is list:
                containers += 1
                below += item
        if not containers:
            return
        depth, count, level = depth + 1, count + len(below), below
        if depth > limits.depth:
            raise _too_deep(limits)
        if count > limits.values:
            raise LimitError(
                f"the body has more than {limits.values:,} values; send fewer features"
            )


def check_id(id: str, what: str) -> None:
    """Raise LimitError if an id is empty, too long, or has invisible characters."""
    if not 0 < len(id) <= LIMITS.id:
        raise LimitError(f"{what} has {len(id):,} characters, but an id has 1 to {LIMITS.id:,}")
    if not id.isprintable() and any(
        unicodedata.category(c) in _UNSAFE and not _joins(id, place) for place, c in enumerate(id)
    ):
        raise LimitError(
            f"{what} is {ascii(id)[:80]}, but an id has no control characters, and none that change the "
            "direction of a text; joiners are allowed in words and emoji only"
        )


def _joins(id: str, place: int) -> bool:
    """Return whether a character is a joiner within an emoji, or a word of an Indic or Arabic script.

    These are, roughly, the places where Unicode (UAX #31, section 2.3) allows joiners in identifiers.
    """
    if id[place] not in _JOINERS or place == 0:
        return False
    before, after = id[place - 1], id[place + 1 : place + 2]
    if unicodedata.combining(before) == _VIRAMA:
        return True
    if not after:
        return False
    if id[place] == "\u200d" and unicodedata.category(after) in {"So", "Sm"}:
        return unicodedata.category(before) == "So" or before in _EMOJI_ENDS
    letters = id[:place].rstrip("".join(c for c in id[:place] if unicodedata.combining(c)))[-1:]
    return all(c and unicodedata.bidirectional(c) in {"AL", "R"} for c in (letters, after))


def _too_deep(limits: Limits) -> LimitError:
    return LimitError(
        f"arrays and objects are nested deeper than {limits.depth}; send flat features"
    )


def _too_long(limits: Limits) -> LimitError:
    return LimitError(f"a string or a name is longer than {limits.string:,} characters; shorten it")


def _too_large(limits: Limits) -> LimitError:
    return LimitError(
        f"a number is larger than {limits.number:g} in size; scale it, or send a string"
    )
