"""From hashed features to sparse rows: slots, signs, interactions, sums and lengths."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from rbmle.core.types import Rows
from rbmle.engine.feature_rows import feature_rows
from rbmle.service.features.reading import ALONE, OTHER, Features

Pairs = tuple[tuple[str, str], ...]


class Interactions(NamedTuple):
    """Which features are multiplied: chosen[c, d] says whether those with the codes c and d are.

    The code of a feature is that of its namespace. Without codes, all are multiplied.
    """

    codes: dict[str, int] | None
    chosen: Bool[np.ndarray, "codes codes"]


@lru_cache(maxsize=8)
def interactions_of(pairs: Pairs | None) -> Interactions:
    """Return the interactions of pairs of namespaces; None stands for all."""
    if pairs is None:
        return Interactions(None, np.empty((0, 0), np.bool_))
    names = dict.fromkeys(name for pair in pairs for name in pair)
    codes = {name: code for code, name in enumerate(names, OTHER + 1)}
    size = len(codes) + OTHER + 1
    chosen = np.zeros((size, size), np.bool_)
    chosen[ALONE] = chosen[:, ALONE] = True  # a feature times 1 is the feature alone
    for first, second in pairs:
        chosen[codes[first], codes[second]] = True
    return Interactions(codes, chosen)


def rows_of(features: Features, bits: int, chosen: Bool[np.ndarray, "codes codes"]) -> Rows:
    """Return a row for each action: its features, the context's and their products, in 2^bits slots.

    A product with hash h is added to the slot of h's low bits, with the sign of h's top bit. Slot 0
    is the constant's alone: what would fall there goes to slot 1.
    """
    hashes, values, counts, codes = features
    return feature_rows(
        np.array(hashes, np.uint64),
        np.array(values, np.float64),
        np.array(counts, np.int64),
        np.array(codes, np.int64),
        chosen,
        bits,
    )
