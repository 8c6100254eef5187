"""Error messages for invalid feature values."""

import sys
from collections.abc import Iterator
from math import isnan
from typing import Any

from rbmle.core.errors import FeatureError

IGNORED = "_"  # names that begin with it are not features
LARGEST = sys.float_info.max
LEVELS = 11  # of nested dictionaries, so that a JSON body with an array in the last has 16
SPELLED = {True: "true", False: "false", None: "null"}

_SHOWN = 40  # characters of a value or a name in a message
_ITEM = "a finite number or a string"
_FEATURE = "a finite number, a string, True, False, None or a list of finite numbers and strings"


def find_errors(features: object, where: str) -> Iterator[FeatureError]:
    """Yield an error for each invalid feature; those of a list come before those of its items."""
    if type(features) is dict:
        yield from _in_dictionary(features, where)
        return
    if type(features) is not list:
        yield _wrong(where, features, "a dictionary, or a list of dictionaries,")
        return
    for at, item in enumerate(features):
        if type(item) is not dict:
            yield _wrong(f"{where}[{at}]", item, "a dictionary")
            return
    for at, item in enumerate(features):
        yield from _in_dictionary(item, f"{where}[{at}]")


def is_number(x: Any) -> bool:
    """Return whether this is a finite Python number."""
    return type(x) in (float, int) and -LARGEST <= x <= LARGEST


def _in_dictionary(item: dict[Any, Any], where: str) -> Iterator[FeatureError]:
    spaces = {name: group for name, group in item.items() if type(group) is dict}
    bare = {name: value for name, value in item.items() if name not in spaces}
    for namespace, group in spaces.items():
        if type(namespace) is not str:
            yield _wrong_name(where, namespace)
        elif namespace[:1] != IGNORED:
            yield from _in_group(group, f"{where}[{_format_value(namespace)}]", 2)
    yield from _in_group(bare, where, 1)


def _in_group(group: dict[Any, Any], where: str, level: int) -> Iterator[FeatureError]:
    for name, value in group.items():
        if type(name) is not str:
            yield _wrong_name(where, name)
        elif name[:1] == IGNORED or type(value) in (str, bool) or value is None or is_number(value):
            continue
        elif type(value) is list:
            for i, x in enumerate(value):
                if type(x) is not str and not is_number(x):
                    yield _wrong(f"{where}[{_format_value(name)}][{i}]", x, _ITEM)
        elif type(value) is dict and level < LEVELS:
            yield from _in_group(value, f"{where}[{_format_value(name)}]", level + 1)
        else:
            yield _wrong(f"{where}[{_format_value(name)}]", value, _FEATURE)


def _wrong(where: str, value: Any, expected: str) -> FeatureError:
    advice = ""
    if type(value) is dict:
        advice = f"; dictionaries are nested up to {LEVELS} levels deep, and not in lists"
    elif type(value) is float and isnan(value):
        advice = "; leave out what is missing, or give None"
    return FeatureError(f"{where} is {_format_value(value)}, but {expected} is expected{advice}")


def _wrong_name(where: str, name: Any) -> FeatureError:
    return FeatureError(f"{where} has the name {_format_value(name)}, but names must be strings")


def _format_value(value: Any) -> str:
    """Return a value for a message, short and in one line; of containers only their kind."""
    kind = type(value)
    if kind is dict or kind is list:
        return "a dictionary" if kind is dict else "a list"
    if kind is int and abs(value) > LARGEST:
        return f"an integer of {value.bit_length()} bits"
    if kind is str:
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    text = repr(value)
    is_short = len(text) <= _SHOWN and text.isprintable()
    return text if is_short else f"a {kind.__name__}"
