"""From JSON features to hashes and numbers, and the error of features that are none."""

import sys
from collections.abc import Sequence
from math import asinh
from typing import Any, NamedTuple

from rbmle.core.errors import RBMLEError
from rbmle.service.hashing import NOTHING, remembered

NO_NAMESPACE = ""  # of features that stand in none
ID_NAMESPACE = "_id"  # names of a client that begin with _ are ignored, so no other is like it
LARGEST = sys.float_info.max

_SPELLED = {True: "true", False: "false", None: "null"}
_SHOWN = 40  # characters of a value or a name in a message


class FeatureError(RBMLEError, ValueError):
    """Features that are not of the form the service takes."""


class Features(NamedTuple):
    """The features of the context and then of each action, of each group after a 1.

    `counts` are the sizes of the groups, `namespaces` those of the features; that of a 1 is None.
    """

    hashes: list[int]
    values: list[float]
    namespaces: list[str | None]
    counts: list[int]


def read(
    context: object, actions: Sequence[object], ids: Sequence[str] | None, seed: int
) -> Features:
    """Return the features of arrays of objects {namespace: {name: value}} or {name: value}.

    A number x is arcsinh(x) under its name: near 0 that is x, far away ± log 2|x|, so a number of any
    size is taken, and unlike a running mean it depends on the number alone. A string is the indicator
    of name=value; true, false and null are the strings "true", "false" and "null". An array is the
    numbers name[0], name[1], … Names and namespaces that begin with _ are ignored. An id is the
    indicator of itself, unless ids is None.
    """
    known = remembered(seed)
    hashes: list[int] = []
    values: list[float] = []
    namespaces: list[str | None] = []
    counts: list[int] = []
    for place, features in enumerate((context, *actions)):
        before = len(hashes)
        hashes.append(NOTHING)
        values.append(1.0)
        namespaces.append(None)
        if ids is not None and place > 0:
            hashes.append(known[ID_NAMESPACE, "", ids[place - 1]])
            values.append(1.0)
            namespaces.append(ID_NAMESPACE)
        for at, namespace, group in _groups(features, place):
            for name, value in group.items():
                if name[:1] == "_":
                    continue
                kind = type(value)
                if kind is str:
                    hashes.append(known[namespace, name, value])
                    values.append(1.0)
                elif (kind is float or kind is int) and abs(value) <= LARGEST:
                    hashes.append(known[namespace, name, None])
                    values.append(asinh(value))
                elif kind is bool or value is None:
                    hashes.append(known[namespace, name, _SPELLED[value]])
                    values.append(1.0)
                elif kind is list:
                    for i, x in enumerate(value):
                        if not _is_number(x):
                            raise _wrong(place, at, namespace, name, f"[{i}]", x)
                        hashes.append(known[namespace, f"{name}[{i}]", None])
                        values.append(asinh(x))
                else:
                    raise _wrong(place, at, namespace, name, "", value)
            namespaces += [namespace] * (len(hashes) - len(namespaces))
        counts.append(len(hashes) - before)
    return Features(hashes, values, namespaces, counts)


def shown(value: Any) -> str:
    """Return a value for a message: short, in one line, and of what has parts only what it is."""
    kind = type(value)
    if kind is dict or kind is list:
        return "an object" if kind is dict else "an array"
    if kind is bool or value is None:
        return _SPELLED[value]
    if kind is int and abs(value) > LARGEST:
        return f"an integer of {value.bit_length()} bits"
    if kind is str:
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    return repr(value)


def _groups(features: object, place: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the namespaces of each object, and what stands in them."""
    if type(features) is not list:
        raise FeatureError(
            f"{_path(place)} is {shown(features)}, but an array of objects is expected"
        )
    groups = []
    for at, item in enumerate(features):
        if type(item) is not dict:
            raise FeatureError(f"{_path(place)}[{at}] is {shown(item)}, but an object is expected")
        bare = item
        for name, value in item.items():
            if type(value) is dict:
                if bare is item:
                    bare = {n: v for n, v in item.items() if type(v) is not dict}
                if name[:1] != "_":
                    groups.append((at, name, value))
        if bare:
            groups.append((at, NO_NAMESPACE, bare))
    return groups


def _is_number(x: Any) -> bool:
    return type(x) in (float, int) and abs(x) <= LARGEST


def _wrong(place: int, at: int, namespace: str, name: str, index: str, value: Any) -> FeatureError:
    """Return the error of a value that is no feature."""
    inside = _step(namespace) if namespace else ""
    expected = (
        "a finite number"
        if index
        else "a finite number, a string, true, false, null or an array of finite numbers"
    )
    nested = "; namespaces are not nested" if type(value) is dict else ""
    return FeatureError(
        f"{_path(place)}[{at}]{inside}{_step(name)}{index} is {shown(value)}, "
        f"but {expected} is expected{nested}"
    )


def _path(place: int) -> str:
    return f"actions[{place - 1}].features" if place else "contextFeatures"


def _step(name: str) -> str:
    """Return a name as a step of a path, in quotes if it is no plain word."""
    return f".{name}" if name.isidentifier() and len(name) <= _SHOWN else f"[{shown(name)}]"
