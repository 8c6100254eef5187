"""JSON of a client, taken literally: no NaN, no "1" for 1, no half of a character."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.deciding.requests import Id, Reward
from rbmle.service.features.limits import LIMITS, Features, LimitError, check

T = TypeVar("T")
_SHOWN = 40  # characters of a name in a path
ANY = "[...]"  # how msgspec writes any member of an object
OBJECTS: tuple[Any, ...] = (Features, dict[Id, Reward])  # of which it does so
_PLACE = re.compile(r"(.*) - at (?:`key` in )?`\$\.?([^`]*)`", re.DOTALL)
_PART = re.compile(r"\[\.\.\.\]|\[\d+\]|[^.[]+")
_WORD = re.compile(r"[^\W\d][\w-]*")
_MISSING = re.compile(r"Object (?:missing required|contains unknown) field `([^`]*)`")


class BodyError(RBMLEError, ValueError):
    """A body that cannot be read; `is_json` says whether it is JSON at all."""

    def __init__(self, message: str, *, target: str | None, is_json: bool) -> None:
        self.target = target
        self.is_json = is_json
        super().__init__(message)


def decoded(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Return what a body says, or raise a BodyError that names the part that is wrong."""
    try:
        if (
            sum(map(body.count, (b",", b"[", b"{"))) >= LIMITS.values
        ):  # else there are no more values
            check(msgspec.json.decode(body))
        return decoder.decode(body)
    except LimitError as error:
        raise BodyError(str(error), target=None, is_json=True) from None
    except msgspec.ValidationError as error:
        message, target = _place(str(error))
        if target is not None and ANY in target:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                target = _named(target, msgspec.json.decode(body))  # what follows may be no JSON
        raise BodyError(message, target=target, is_json=True) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(
            f"the body is not valid JSON: {error}; send one JSON object in UTF-8",
            target=None,
            is_json=False,
        ) from None
    except RecursionError:
        raise BodyError(
            "the body is nested too deeply; send features in namespaces, and no deeper",
            target=None,
            is_json=False,
        ) from None


def target_of(path: tuple[str | int, ...], names: Mapping[str, str]) -> str:
    """Return a path as text, in the names of a dialect.

    >>> target_of(("slots", 1, "excluded"), {"excluded": "excludedActions"})
    'slots[1].excludedActions'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else _member(names.get(part, part))
    return text.lstrip(".")


def _place(text: str) -> tuple[str, str | None]:
    """Return the message and the place that msgspec names; a missing field is the place itself."""
    found = _PLACE.fullmatch(text)
    message, place = (text, "") if found is None else (found[1], found[2])
    field = _MISSING.search(message)
    if field is not None:
        place = f"{place}.{field[1]}".lstrip(".")
    return message, place or None


def _named(place: str, value: Any) -> str:
    """Return a place with the names of members that are wrong, where it says that any is.

    >>> _named("context[...][...][1]", {"context": {"hour": 1, "user": {"age": [1, True]}}})
    'context.user.age[1]'
    """
    path = ""
    outer: list[str] = []  # names around the object at hand, from one that is checked alone
    for part in _PART.findall(place):
        match value:
            case dict() if part == ANY and (name := _wrong_member(value, outer)) is not None:
                path, value, outer = path + _member(name), value[name], [*outer, name]
            case list() if part[0] == "[" and part != ANY and int(part[1:-1]) < len(value):
                path, value = path + part, value[int(part[1:-1])]
            case dict() if part[0] != "[":
                path, value = path + _member(part), value.get(part)
            case _:  # a name came twice, and the value that is wrong is not the last one
                return place
    return path.lstrip(".")


def _wrong_member(value: dict[str, Any], outer: list[str]) -> str | None:
    """Return the first name in an object whose value is none that it can have."""
    for kind in OBJECTS:
        for name, member in value.items():
            alone: dict[str, Any] = {name: member}
            for around in reversed(outer):
                alone = {around: alone}
            try:
                msgspec.convert(alone, kind)
            except msgspec.ValidationError:
                return name
    return None


def _member(name: str) -> str:
    """Return how a member of an object is written in a path."""
    if _WORD.fullmatch(name) and len(name) <= _SHOWN:
        return f".{name}"
    return f"[{msgspec.json.encode(name[:_SHOWN]).decode()}]"
