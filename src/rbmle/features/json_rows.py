"""Read features in JSON into sparse rows with a kernel, without making Python objects."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from rbmle.core.types import Rows, Scales
from rbmle.engine.feature_rows import feature_rows
from rbmle.engine.json_features import MORE_FEATURES, NEW_FEATURES, NEW_ID, read_groups
from rbmle.features.hashing import MOST_PRODUCTS, Hashing, interactions_of, scale, seed_bits

JSONBytes = Any  # a JSON array of objects: bytes, or msgspec's Raw, which has a buffer too

_END = b"\xff"
_NO_CODES = np.empty(0, np.int64)


class Offered(NamedTuple):
    """A call as it was sent: JSON arrays of the shared features, and of each action's with its id."""

    context: list[JSONBytes]
    ids: list[str]
    features: list[JSONBytes]


def json_rows(
    hashing: Hashing,
    offers: Sequence[Offered],
    scales: Scales | None = None,
    *,
    is_learning: bool = False,
) -> Rows | None:
    """Return a row for each action; None if the kernel cannot read them, or there are too many products.

    All features are multiplied, so the `interactions` of the hashing must be None.
    """
    pieces: list[JSONBytes] = []
    kinds: list[int] = []
    for context, ids, features in offers:
        pieces += context
        kinds += [NEW_FEATURES, *[MORE_FEATURES] * (len(context) - 1)]
        if hashing.ids_are_features:
            pieces += [part for action in zip(map(str.encode, ids), features) for part in action]  # noqa: B905
            kinds += [NEW_ID, MORE_FEATURES] * len(ids)
        else:
            pieces += features
            kinds += [NEW_FEATURES] * len(ids)
    text = np.frombuffer(bytearray(_END).join([*pieces, b""]), np.uint8)
    seed = seed_bits(hashing.seed)
    hashes, values, counts, is_read = read_groups(text, np.array(kinds), seed)
    sizes = np.array([len(offered.ids) for offered in offers])
    if not is_read or _products(counts, sizes) > MOST_PRODUCTS:
        return None
    scale(hashes, counts, sizes, scales, is_learning, values)
    chosen = interactions_of(None).chosen
    return feature_rows(hashes, values, counts, sizes, _NO_CODES, chosen, hashing.bits)


def _products(counts: Int[np.ndarray, " groups"], sizes: Int[np.ndarray, " calls"]) -> int:
    """Return how many products the largest call has; counts are those of its context and of its actions."""
    firsts = np.cumsum(sizes + 1) - sizes - 1
    shared = counts[firsts]
    return int((shared * (np.add.reduceat(counts, firsts) - shared)).max())
