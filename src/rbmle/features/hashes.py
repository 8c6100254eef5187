"""Hashes of features: 64 bits, equal in every process, on every machine, in every version of Python."""

from functools import lru_cache

import numpy as np

from rbmle.engine.json_features import text_hash

_REMEMBERED = 2**15  # features
_LONGEST = (
    200  # characters of a feature that is remembered; so what is remembered stays below 50 MB
)

NOTHING = 0  # the hash of no feature at all
IGNORED = "_"  # names that begin with it are those of no features


def feature_hash(seed: int, namespace: str, name: str, category: str | None) -> int:
    """Return the hash of the number called `name`, or of the indicator of name=category.

    Between the texts are bytes that UTF-8 does not have, so no two features are spelled alike.
    """
    value = b"" if category is None else b"\xfe" + _encoded(category)
    text = b"%s\xff%s%s" % (_encoded(namespace), _encoded(name), value)
    bytes_of = np.frombuffer(bytearray(text), np.uint8)
    return int(text_hash(seed_bits(seed), bytes_of))


def seed_bits(seed: int) -> np.uint64:
    """Return a seed of any size and sign as the kernels take it."""
    return np.uint64(seed & (2**64 - 1))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Remembered(dict[tuple[str, str, str | int | None], int]):
    """The hashes of features under one seed, by (namespace, name, category); asked twice, computed once.

    A dict, so that a known feature costs one lookup. When it is full it starts anew. An integer in
    the place of the category is a place in an array, so (…, name, 3) is the number name[3]. A name that
    begins with _ is that of no feature, so its hash is that of nothing.
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __missing__(self, feature: tuple[str, str, str | int | None]) -> int:
        """Return the hash of a feature, and remember it unless it is long."""
        namespace, name, category = feature
        if isinstance(category, int):
            name, category = f"{name}[{category}]", None
        ignored = name[:1] == IGNORED
        found = NOTHING if ignored else feature_hash(self.seed, namespace, name, category)
        if len(namespace) + len(name) + len(category or "") <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[feature] = found
        return found


@lru_cache(maxsize=8)
def remembered(seed: int) -> Remembered:
    """Return the hashes under a seed, which all featurisers of that seed share."""
    return Remembered(seed)
