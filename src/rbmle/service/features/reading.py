"""From JSON features to hashes and numbers, and the error of features that are none."""

import sys
from array import array
from collections.abc import Iterator
from math import asinh
from typing import Any, NamedTuple

from rbmle.core.errors import RBMLEError
from rbmle.service.features.hashing import IGNORED, NOTHING, Remembered, remembered

NO_NAMESPACE = ""  # of features that stand in none
ID_NAMESPACE = "_id"  # names of a client that begin with _ are ignored, so no other is like it
ALONE, OTHER = 0, 1  # the codes of the 1s, and of a namespace without a code of its own
LARGEST = sys.float_info.max

_SPELLED = {True: "true", False: "false", None: "null"}
_SHOWN = 40  # characters of a value or a name in a message


class FeatureError(RBMLEError, ValueError):
    """Features that are not of the form the service takes."""


class Group(NamedTuple):
    """The features of a context, or of an action, after a 1; arrays as bytes, which are quick to join."""

    size: int
    hashes: bytes  # of 64 bits
    values: bytes  # floats
    codes: bytes  # of the features' namespaces, of 64 bits; empty if none are wanted


def read(
    features: object, id: str | None, seed: int, codes: dict[str, int] | None, place: int = 0
) -> Group:
    """Return the features of an array of objects {namespace: {name: value}} or {name: value}.

    A number x is arcsinh(x) under its name: near 0 that is x, far away ± log 2|x|, so a number of any
    size is taken, and unlike a running mean it depends on the number alone. A string is the indicator
    of name=value; true, false and null are the strings "true", "false" and "null". An array is the
    numbers name[0], name[1], … Names and namespaces that begin with _ are ignored. An id is the
    indicator of itself, unless it is None. `codes` are those of some namespaces, if codes are wanted.

    Raise FeatureError for what is none; in a call, the context has the place 0 and actions 1, 2, …
    """
    known = remembered(seed)
    hashes, values = [NOTHING], [1.0]
    if id is not None:
        hashes.append(known[ID_NAMESPACE, "", id])
        values.append(1.0)
    coded = [] if codes is None else [ALONE, codes.get(ID_NAMESPACE, OTHER)][: len(hashes)]
    if not _take(features, known, codes, hashes, values, coded):
        raise next(_mistakes(features, place))
    return Group(
        len(hashes),
        array("Q", hashes).tobytes(),
        array("d", values).tobytes(),
        array("q", coded).tobytes() if coded else b"",
    )


def joined(first: Group, *others: Group) -> Group:
    """Return the features of some groups as one; its 1 is there once."""
    groups = [first, *(Group(n - 1, h[8:], v[8:], c[8:]) for n, h, v, c in others)]
    counts, hashes, values, codes = zip(*groups, strict=True)
    return Group(sum(counts), b"".join(hashes), b"".join(values), b"".join(codes))


def _take(
    features: object,
    known: Remembered,
    codes: dict[str, int] | None,
    hashes: list[int],
    values: list[float],
    coded: list[int],
) -> bool:
    """Add the features of one array; return False at the first thing in it that is none.

    Scalars are taken without a call of ours, since there are many.
    """
    if type(features) is not list:
        return False
    for item in features:
        if type(item) is not dict:
            return False
        groups = [(NO_NAMESPACE, item)]
        for namespace, group in groups:
            for name, value in group.items():
                kind = type(value)
                if kind is str:
                    if h := known[namespace, name, value]:
                        hashes.append(h)
                        values.append(1.0)
                elif (kind is float or kind is int) and -LARGEST <= value <= LARGEST:
                    if h := known[namespace, name, None]:
                        hashes.append(h)
                        values.append(asinh(value))
                elif kind is bool or value is None:
                    if h := known[namespace, name, _SPELLED[value]]:
                        hashes.append(h)
                        values.append(1.0)
                elif name[:1] == IGNORED:
                    continue
                elif kind is dict and group is item:
                    groups.append((name, value))
                elif kind is list and all(map(_is_number, value)):
                    hashes += [known[namespace, name, i] for i in range(len(value))]
                    values += map(asinh, value)
                else:
                    return False
            if codes is not None:
                coded += [codes.get(namespace, OTHER)] * (len(hashes) - len(coded))
    return True


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


def _mistakes(features: object, place: int) -> Iterator[FeatureError]:
    """Return the errors of what is no feature, the form of the array before what stands in it."""
    if type(features) is not list:
        yield FeatureError(
            f"{_path(place)} is {shown(features)}, but an array of objects is expected"
        )
        return
    for at, item in enumerate(features):
        if type(item) is not dict:
            yield FeatureError(f"{_path(place)}[{at}] is {shown(item)}, but an object is expected")
            return
    for at, item in enumerate(features):
        spaces = {n: group for n, group in item.items() if type(group) is dict}
        bare = {name: value for name, value in item.items() if name not in spaces}
        for namespace, group in (*spaces.items(), (NO_NAMESPACE, bare)):
            for name, value in group.items() if namespace[:1] != IGNORED else ():
                if name[:1] == IGNORED or _is_scalar(value):
                    continue
                if type(value) is not list:
                    yield _wrong(place, at, namespace, name, "", value)
                    continue
                for i, x in enumerate(value):
                    if not _is_number(x):
                        yield _wrong(place, at, namespace, name, f"[{i}]", x)


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, bool) or value is None or _is_number(value)


def _is_number(x: Any) -> bool:
    return type(x) in (float, int) and -LARGEST <= x <= LARGEST


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
