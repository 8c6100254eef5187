"""From dictionaries of features to hashes and numbers."""

from array import array
from collections.abc import Mapping
from math import nan
from typing import Any, NamedTuple

from rbmle.features.hashes import IGNORED, NOTHING, Remembered, remembered
from rbmle.features.mistakes import LARGEST, LEVELS, SPELLED, is_number, mistakes

NO_NAMESPACE = ""  # of features that stand in none
ID_NAMESPACE = "_id"  # names of a user that begin with _ are ignored, so no other is like it
INDICATOR = nan  # of a feature that is there, and has no number
ALONE, OTHER = 0, 1  # the codes of the 1s, and of a namespace without a code of its own

_DEEPEST = 2 + LEVELS  # levels at which features can stand: a list, dictionaries, an array

_NAMES = {str}  # the type of names


class Group(NamedTuple):
    """The features of a context, or of an action, after a 1; arrays as bytes, which are quick to join."""

    size: int
    hashes: bytes  # of 64 bits
    values: bytes  # floats: numbers as they came, and INDICATOR for what is none
    codes: bytes  # of the features' namespaces, of 64 bits; empty if none are wanted


def read(
    features: object, id: str | None, seed: int, codes: dict[str, int] | None, where: str
) -> Group:
    """Return the features of {namespace: {name: value}} or {name: value}, or of a list of such.

    A number is read as it is, under its name; `rows_of` scales it. A string is the indicator of
    name=value; True, False and None are the strings "true", "false" and "null". A list is the numbers
    name[0], name[1], …, and a string in it is as if it stood alone. A dictionary in a namespace is read
    as if its features stood in the namespace itself, under outer.inner. Names that begin with _ are
    ignored. An id is the indicator of itself, unless it is None. `codes` are those of some namespaces,
    if codes are wanted.

    Raise FeatureError for what is none; `where` is how its message calls the features.
    """
    found = _group(features, id, remembered(seed), codes)
    if found is None:  # there is something in them that is not Python's own, or none
        features = plain(features)
        found = _group(features, id, remembered(seed), codes)
    if found is None:
        raise next(mistakes(features, where))
    return found


def joined(first: Group, *others: Group) -> Group:
    """Return the features of some groups as one; its 1 is there once."""
    groups = [first, *(Group(n - 1, h[8:], v[8:], c[8:]) for n, h, v, c in others)]
    counts, hashes, values, codes = zip(*groups, strict=True)
    return Group(sum(counts), b"".join(hashes), b"".join(values), b"".join(codes))


def with_prefix(outer: str, inner: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a dictionary in a namespace under the names that they have there.

    >>> with_prefix("address", {"city": "Delft", "_note": "ignored"})
    {'address.city': 'Delft'}
    """
    return {f"{outer}.{name}": value for name, value in inner.items() if name[:1] != IGNORED}


def plain(value: Any, deepest: int = _DEEPEST) -> Any:
    """Return Python's own dictionaries, lists, strings and numbers for NumPy's, pandas' and others'.

    >>> import numpy as np
    >>> plain({"age": np.float32(0.5), "at": np.arange(2), "tags": ("a", None)})
    {'age': 0.5, 'at': [0, 1], 'tags': ['a', None]}
    """
    if isinstance(value, str):
        return str.__str__(value)
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a Series
        value = value.to_dict()
    elif hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if deepest == 0:
        return value
    if isinstance(value, Mapping):
        return {plain(name, 0): plain(part, deepest - 1) for name, part in value.items()}
    return [plain(p, deepest - 1) for p in value] if isinstance(value, list | tuple) else value


def _group(
    features: object, id: str | None, known: Remembered, codes: dict[str, int] | None
) -> Group | None:
    """Return features, or None if there is something in them that is none."""
    hashes, values = [NOTHING], [INDICATOR]
    if id is not None:
        hashes.append(known[ID_NAMESPACE, "", id])
        values.append(INDICATOR)
    coded = [] if codes is None else [ALONE, codes.get(ID_NAMESPACE, OTHER)][: len(hashes)]
    items = [features] if type(features) is dict else features
    if not _take(items, known, codes, hashes, values, coded):
        return None
    return Group(
        len(hashes),
        array("Q", hashes).tobytes(),
        array("d", values).tobytes(),
        array("q", coded).tobytes() if coded else b"",
    )


def _take(
    items: object,
    known: Remembered,
    codes: dict[str, int] | None,
    hashes: list[int],
    values: list[float],
    coded: list[int],
) -> bool:
    """Add the features of some dictionaries; return False at the first thing in them that is none.

    Scalars are taken without a call of ours, since there are many.
    """
    if type(items) is not list:
        return False
    for item in items:
        if type(item) is not dict:
            return False
        groups = [(NO_NAMESPACE, item, 1)]
        for namespace, group, level in groups:
            if not {*map(type, group)} <= _NAMES:
                return False
            for name, value in group.items():
                kind = type(value)
                if kind is str:
                    if h := known[namespace, name, value]:
                        hashes.append(h)
                        values.append(INDICATOR)
                elif (kind is float or kind is int) and -LARGEST <= value <= LARGEST:
                    if h := known[namespace, name, None]:
                        hashes.append(h)
                        values.append(float(value))
                elif kind is bool or value is None:
                    if h := known[namespace, name, SPELLED[value]]:
                        hashes.append(h)
                        values.append(INDICATOR)
                elif name[:1] == IGNORED:
                    continue
                elif kind is dict and level == 1:
                    groups.append((name, value, 2))
                elif kind is dict and level < LEVELS and {*map(type, value)} <= _NAMES:
                    groups.append((namespace, with_prefix(name, value), level + 1))
                elif kind is list and all(map(is_number, value)):
                    hashes += [known[namespace, name, i] for i in range(len(value))]
                    values += map(float, value)
                elif kind is list and all(type(x) is str or is_number(x) for x in value):
                    hashes += [
                        known[namespace, name, x if type(x) is str else i]
                        for i, x in enumerate(value)
                    ]
                    values += [INDICATOR if type(x) is str else float(x) for x in value]
                else:
                    return False
            if codes is not None:
                coded += [codes.get(namespace, OTHER)] * (len(hashes) - len(coded))
    return True
