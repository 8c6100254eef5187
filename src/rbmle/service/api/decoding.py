"""Strict decoding of JSON bodies, with errors that name the invalid part."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.front.requests import Id, Reward
from rbmle.service.model.limits import LIMITS, Features, LimitError, check

T = TypeVar("T")
_SHOWN = 40  # characters of a name in a path
ANY = "[...]"  # how msgspec writes the member of a dict
OBJECTS: tuple[Any, ...] = (Features, dict[Id, Reward])  # the dicts in bodies
_PLACE = re.compile(r"(.*) - at (?:`key` in )?`\$\.?([^`]*)`", re.DOTALL)
_PART = re.compile(r"\[\.\.\.\]|\[\d+\]|[^.[]+")
_WORD = re.compile(r"[^\W\d][\w-]*")
_MISSING = re.compile(r"Object (?:missing required|contains unknown) field `([^`]*)`")


class BodyError(RBMLEError, ValueError):
    """An invalid body; `is_json` says whether it is JSON at all."""

    def __init__(self, message: str, *, target: str | None, is_json: bool) -> None:
        self.target = target
        self.is_json = is_json
        super().__init__(message)


def decode_body(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decode a body; raise a BodyError that names the invalid part."""
    try:
        most_values = sum(map(body.count, (b",", b"[", b"{")))
        if most_values >= LIMITS.values:
            check(msgspec.json.decode(body))
        return decoder.decode(body)
    except LimitError as error:
        raise BodyError(str(error), target=None, is_json=True) from None
    except msgspec.ValidationError as error:
        message, target = _split_message(str(error))
        if target is not None and ANY in target:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                target = _name_members(target, msgspec.json.decode(body))  # the rest may be no JSON
        raise BodyError(message, target=target, is_json=True) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(
            f"the body is not valid JSON: {error}; send one JSON object in UTF-8",
            target=None,
            is_json=False,
        ) from None
    except RecursionError:
        raise BodyError(
            "the body is nested too deeply; send flat features, or features in namespaces",
            target=None,
            is_json=False,
        ) from None


def target_of(path: tuple[str | int, ...], names: Mapping[str, str]) -> str:
    """Return a path as text, with the field names of a dialect.

    >>> target_of(("slots", 1, "excluded"), {"excluded": "excludedActions"})
    'slots[1].excludedActions'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else _member(names.get(part, part))
    return text.lstrip(".")


def _split_message(text: str) -> tuple[str, str | None]:
    """Return msgspec's message and the path in it, to which the name of a missing field is added."""
    parts = _PLACE.fullmatch(text)
    message, place = (text, "") if parts is None else (parts[1], parts[2])
    field = _MISSING.search(message)
    if field is not None:
        place = f"{place}.{field[1]}".lstrip(".")
    return message, place or None


def _name_members(place: str, value: Any) -> str:
    """Return a path with the names of the invalid members instead of `[...]`.

    >>> _name_members("context[...][...][1]", {"context": {"hour": 1, "user": {"age": [1, True]}}})
    'context.user.age[1]'
    """
    path = ""
    outer: list[str] = []  # the names of the objects around this one
    for part in _PART.findall(place):
        match value:
            case dict() if part == ANY and (name := _find_invalid(value, outer)) is not None:
                path, value, outer = path + _member(name), value[name], [*outer, name]
            case list() if part[0] == "[" and part != ANY and int(part[1:-1]) < len(value):
                path, value = path + part, value[int(part[1:-1])]
            case dict() if part[0] != "[":
                path, value = path + _member(part), value.get(part)
            case _:  # a name was sent twice, and its last value is valid
                return place
    return path.lstrip(".")


def _find_invalid(value: dict[str, Any], outer: list[str]) -> str | None:
    """Return the name of the first member of an object that is invalid."""
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
    if _WORD.fullmatch(name) and len(name) <= _SHOWN:
        return f".{name}"
    return f"[{msgspec.json.encode(name[:_SHOWN]).decode()}]"
