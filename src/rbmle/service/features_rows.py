"""From hashed features to sparse rows: slots, signs, interactions, sums and lengths."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from rbmle.core.types import Rows
from rbmle.service.features_reading import Features
from rbmle.service.hashing import interaction_hash

CONSTANT_SLOT = 0
ROOT_HALF = 0.5**0.5

Pairs = frozenset[tuple[str, str]]

_SIGN = np.uint64(2**63)
_PLACE_BITS = 32
_PLACE = 2**_PLACE_BITS - 1
_TINY = np.finfo(np.float64).tiny


def rows_of(features: Features, bits: int, pairs: Pairs | None) -> Rows:
    """Return (√½, √½ u/‖u‖) for each action, where (1, u) = (1, context) ⊗ (1, action), hashed.

    A product with hash h is added to the slot of h's low bits, with the sign of h's top bit. Slot 0
    is the constant's alone: what would fall there goes to slot 1. With `pairs`, only features of these
    namespaces are multiplied. Sums run in the order of the hashes: neither the order in which features
    came nor the other actions make a difference to any bit of a row.
    """
    counts = features.counts
    shift = bits + _PLACE_BITS
    owners = np.repeat(np.arange(-1, len(counts) - 1) << shift, counts)  # the context's are below 0
    hashes, values = np.array(features.hashes, np.uint64), np.array(features.values)
    order = np.lexsort((values, hashes, owners))
    hashes, values = hashes[order], values[order]

    shared = counts[0]
    h = interaction_hash(hashes[:shared, None], hashes[shared:])
    products = values[:shared, None] * values[shared:]
    products.view(np.uint64)[...] ^= h & _SIGN
    slots = np.maximum(h & np.uint64(2**bits - 1), h != 0).view(np.int64)  # 1 × 1 has the hash 0
    # One sort of plain integers, (owner, slot, place), is several times faster than an argsort.
    slots <<= _PLACE_BITS
    slots |= owners[shared:]
    slots |= np.arange(slots.size).reshape(slots.shape)
    entries = slots.ravel() if pairs is None else slots[_wanted(features, order, pairs)]
    entries.sort()

    keys = entries >> _PLACE_BITS
    new = np.empty(len(keys), np.bool_)
    new[0] = True
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    sums = np.bincount(np.cumsum(new) - 1, products.ravel()[entries & _PLACE])
    kept = sums.nonzero()[0]  # two products in one slot may well be 1 − 1
    return _scaled(keys[new][kept] & 2**bits - 1, sums[kept])


def _scaled(slots: Int[np.ndarray, " entries"], sums: Float[np.ndarray, " entries"]) -> Rows:
    """Return rows that begin with the constant; the rest of each gets the squared length ½."""
    starts = (slots == CONSTANT_SLOT).nonzero()[0]
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = len(slots) - starts[-1]
    sums[starts] = 0.0
    squares = np.add.reduceat(sums * sums, starts)
    scales = ROOT_HALF / np.sqrt(np.maximum(squares, _TINY))  # finite where all features are 0
    values = sums * np.repeat(scales, lengths)
    values[starts] = ROOT_HALF
    return Rows(starts, lengths, np.zeros(len(starts), np.int64), slots.astype(np.int32), values)


def _wanted(
    features: Features, order: Int[np.ndarray, " features"], pairs: Pairs
) -> Bool[np.ndarray, "shared own"]:
    """Return which products stand: those of chosen namespaces, and every feature alone."""
    names = dict.fromkeys(features.namespaces)
    codes: dict[Any, int] = {name: code for code, name in enumerate(names)}  # of the 1s it is 0
    chosen = np.zeros((len(codes), len(codes)), np.bool_)
    chosen[0] = chosen[:, 0] = True
    for first, second in pairs:
        if first in codes and second in codes:
            chosen[codes[first], codes[second]] = True
    found = np.array([codes[name] for name in features.namespaces])[order]
    shared = features.counts[0]
    return chosen[found[:shared, None], found[shared:]]
