"""JSON of a client, taken literally: no NaN, no "1" for 1, no half of a character."""

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.features.limits import LIMITS, LimitError, check

T = TypeVar("T")
_PLACE = re.compile(r"(.*) - at (?:`key` in )?`\$\.?([^`]*)`", re.DOTALL)
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
        raise BodyError(message, target=target, is_json=True) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(
            f"the body is no JSON: {error}; send one JSON object in UTF-8",
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
        text += f"[{part}]" if isinstance(part, int) else f".{names.get(part, part)}"
    return text.lstrip(".")


def _place(text: str) -> tuple[str, str | None]:
    """Return the message and the place that msgspec names; a missing field is the place itself."""
    found = _PLACE.fullmatch(text)
    message, place = (text, "") if found is None else (found[1], found[2])
    field = _MISSING.search(message)
    if field is not None:
        place = f"{place}.{field[1]}".lstrip(".")
    return message, place or None
