"""Limits on what a client may send, and the strict decoding of JSON within them."""

import unicodedata
from dataclasses import dataclass
from typing import Any

import msgspec

from rbmle.core.errors import RBMLEError

_UNSAFE = ("Cc", "Cs")  # control characters, and halves of characters that UTF-8 cannot hold


class LimitError(RBMLEError, ValueError):
    """A request that is no JSON, or beyond a limit: LimitError(code, message).

    A code is one of malformed, depth, values, string, number, actions, slots and id; it is the same in
    every release.
    """

    @property
    def code(self) -> str:
        """Return the word that programs compare."""
        return str(self.args[0])

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that is taken of each."""

    depth: int = 16  # of arrays and objects in each other; a rank call has 7
    values: int = 50_000  # names of objects are not counted
    string: int = 10_000  # characters, of names too
    number: float = 1e15  # in size; integers up to it are exact as floats
    actions: int = 50
    slots: int = 50
    id: int = 256  # characters


LIMITS = Limits()

_decoder = msgspec.json.Decoder()


def decode(body: bytes, limits: Limits = LIMITS) -> object:
    """Return the value of a JSON text, or raise LimitError.

    NaN, Infinity, numbers that no float holds, halves of surrogate pairs, bytes that are no UTF-8, and
    anything behind the value are refused. Of equal names in one object the last counts; msgspec, like
    most decoders, does not tell.

    >>> decode(b'{"value": 0.5}')
    {'value': 0.5}
    """
    try:
        value = _decoder.decode(body)
    except RecursionError:
        raise _too_deep(limits) from None
    except msgspec.ValidationError:  # no type is asked for, so only numbers can be invalid
        raise _too_large(limits) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LimitError("malformed", f"the body is no JSON in UTF-8: {error}") from None
    _check(value, limits, has_long=len(body) > limits.string)
    return value


def check(value: Any, limits: Limits = LIMITS) -> None:
    """Raise LimitError if decoded JSON is too deep, too much or too large."""
    _check(value, limits, has_long=True)


def _check(value: Any, limits: Limits, has_long: bool) -> None:
    """Go level by level, not by recursion: no depth can exhaust the stack."""
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
                if has_long and max(map(len, item), default=0) > limits.string:
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
                "values", f"the body has more than {limits.values:,} values; send fewer features"
            )


def check_actions(count: int, limits: Limits = LIMITS) -> None:
    """Raise LimitError unless the number of actions can be served."""
    _check_count("actions", count, limits.actions)


def check_slots(count: int, limits: Limits = LIMITS) -> None:
    """Raise LimitError unless the number of slots can be served."""
    _check_count("slots", count, limits.slots)


def check_id(id: object, what: str = "eventId", limits: Limits = LIMITS) -> str:
    """Return an id that is one: not empty, not too long, and without control characters."""
    if type(id) is not str:
        raise LimitError("id", f"{what} is not a string; an id is a string")
    if not 0 < len(id) <= limits.id:
        raise LimitError(
            "id", f"{what} has {len(id):,} characters, but an id has 1 to {limits.id:,}"
        )
    if not id.isprintable() and any(unicodedata.category(c) in _UNSAFE for c in id):
        raise LimitError("id", f"{what} is {ascii(id)[:80]}, but an id has no control characters")
    return id


def _check_count(what: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise LimitError(what, f"there are {count:,} {what}, but 1 to {most:,} are expected")


def _too_deep(limits: Limits) -> LimitError:
    return LimitError(
        "depth", f"arrays and objects are nested deeper than {limits.depth}; send flat features"
    )


def _too_long(limits: Limits) -> LimitError:
    return LimitError(
        "string", f"a string or a name is longer than {limits.string:,} characters; shorten it"
    )


def _too_large(limits: Limits) -> LimitError:
    return LimitError(
        "number", f"a number is larger than {limits.number:g} in size; scale it, or send a string"
    )
