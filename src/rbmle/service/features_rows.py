"""From hashed features to sparse rows: slots, signs, interactions, sums and lengths."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from rbmle.core.types import Rows
from rbmle.engine.feature_rows import feature_rows
from rbmle.service.features_reading import Features

Pairs = tuple[tuple[str, str], ...]

_ALONE, _OTHER, _FIRST = range(
    3
)  # codes of the 1s, of namespaces in no pair, and of those in pairs
_NO_CODES = np.empty(0, np.int64)


class Interactions(NamedTuple):
    """Which features are multiplied: chosen[c, d] says whether those with the codes c and d are.

    The code of a feature is that of its namespace. If `chosen` is empty, all are multiplied.
    """

    codes: dict[str | None, int]
    chosen: Bool[np.ndarray, "codes codes"]


@lru_cache(maxsize=8)
def interactions_of(pairs: Pairs | None) -> Interactions:
    """Return the interactions of pairs of namespaces; None stands for all."""
    if pairs is None:
        return Interactions({}, np.empty((0, 0), np.bool_))
    codes: dict[str | None, int] = {None: _ALONE}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        codes[name] = _FIRST + len(codes) - 1
    size = _FIRST + len(codes) - 1
    chosen = np.zeros((size, size), np.bool_)
    chosen[_ALONE] = chosen[:, _ALONE] = True  # every feature alone stands in a row
    for first, second in pairs:
        chosen[codes[first], codes[second]] = True
    return Interactions(codes, chosen)


def rows_of(features: Features, bits: int, interactions: Interactions) -> Rows:
    """Return a row for each action: its features, the context's and their products, in 2^bits slots.

    A product with hash h is added to the slot of h's low bits, with the sign of h's top bit. Slot 0
    is the constant's alone: what would fall there goes to slot 1.
    """
    hashes, values, counts, namespaces = features
    codes = _NO_CODES
    if namespaces is not None:
        codes = np.array([interactions.codes.get(name, _OTHER) for name in namespaces], np.int64)
    return feature_rows(
        np.array(hashes, np.uint64),
        np.array(values, np.float64),
        np.array(counts, np.int64),
        codes,
        interactions.chosen,
        bits,
    )
