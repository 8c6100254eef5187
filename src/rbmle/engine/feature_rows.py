"""Sparse rows from hashed features: the products of a context and its actions, summed in slots."""

import math

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from rbmle.core.types import Rows
from rbmle.engine.compiled import in_order, inlined, kernel

CONSTANT_SLOT = 0
ROOT_HALF = 0.5**0.5

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴/φ
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # of SplitMix64
_HALF, _TOP = np.uint64(32), np.uint64(63)
_TINY = float(np.finfo(np.float64).tiny)
_BLOCK = 128  # squares that are summed without halving them


def interaction_hash(
    first: UInt64[np.ndarray, "..."], second: UInt64[np.ndarray, "..."]
) -> UInt64[np.ndarray, "..."]:
    """Return the hashes of pairs of features; the order of a pair counts.

    One round of mixing is enough, because the inputs are random already. A pair of zeros has the hash 0.
    """
    z = first + second * _GOLDEN
    z ^= z >> _HALF
    z *= _MIX
    z ^= z >> _HALF
    return z


_pair_hash = inlined(interaction_hash)


@kernel
def feature_rows(
    hashes: UInt64[np.ndarray, " features"],
    values: Float[np.ndarray, " features"],
    counts: Int[np.ndarray, " groups"],
    sizes: Int[np.ndarray, " calls"],
    codes: Int[np.ndarray, " features"],
    chosen: Bool[np.ndarray, "codes codes"],
    bits: int,
) -> Rows:
    """Return (√½, √½ u/‖u‖) for each action, where (1, u) = (1, context) ⊗ (1, action), hashed.

    The first group of a call is its context's, and the next `sizes[call]` are its actions'. Features
    with the codes c and d are multiplied if chosen[c, d]; if `chosen` is empty, so are `codes`, and all
    are multiplied. Sums run in the order of the hashes, so no bit of a row depends on the order of its
    features, or on other actions and calls.
    """
    order = _sort_features(hashes, values, counts)
    hashes, values = hashes.take(order), values.take(order)
    n = len(counts) - len(sizes)
    starts, lengths, blocks = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    most, total = _products(counts, sizes)
    indices, sums = np.empty(total, np.int32), np.empty(total)
    slots, products, places = np.empty(most, np.int32), np.empty(most), np.empty(2 * most, np.int64)
    group = row = start = last = 0
    for size in sizes:
        context, last = last, last + counts[group]
        shared = last
        for size_of_action in counts[group + 1 : group + 1 + size]:
            first, last = last, last + size_of_action
            ranges = (context, shared, first, last)
            count = _multiply(hashes, values, order, codes, chosen, ranges, bits, slots, products)
            _sort(slots[:count], products, bits, places, indices[start:], sums[start:])
            count = _add_up(indices[start : start + count], sums[start:])
            _scale(sums[start : start + count])
            starts[row], lengths[row] = start, count
            start += count
            row += 1
        group += size + 1
    return Rows(starts, lengths, blocks, indices[:start], sums[:start])


@inlined
def _products(
    counts: Int[np.ndarray, " groups"], sizes: Int[np.ndarray, " calls"]
) -> tuple[int, int]:
    """Return the largest number of products of an action, and the number of all."""
    most = total = group = 0
    for size in sizes:
        for size_of_action in counts[group + 1 : group + 1 + size]:
            most = max(most, counts[group] * size_of_action)
            total += counts[group] * size_of_action
        group += size + 1
    return most, total


@inlined
def _sort_features(
    hashes: UInt64[np.ndarray, " features"],
    values: Float[np.ndarray, " features"],
    counts: Int[np.ndarray, " groups"],
) -> Int[np.ndarray, " features"]:
    """Return the places of each group's features in the order of (hash, value), by Shell's sort."""
    order = np.arange(len(hashes))
    start = 0
    for count in counts:
        group = order[start : start + count]
        start += count
        gap = count // 2
        while gap > 0:
            for i in range(gap, count):
                place, k = group[i], i
                h, x = hashes[place], values[place]
                while k >= gap:
                    other = group[k - gap]
                    if hashes[other] < h or (hashes[other] == h and values[other] <= x):
                        break
                    group[k] = other
                    k -= gap
                group[k] = place
            gap = 1 if gap == 2 else gap * 5 // 11  # Gonnet's
    return order


@inlined
def _multiply(
    hashes: UInt64[np.ndarray, " features"],
    values: Float[np.ndarray, " features"],
    order: Int[np.ndarray, " features"],
    codes: Int[np.ndarray, " features"],
    chosen: Bool[np.ndarray, "codes codes"],
    ranges: tuple[int, int, int, int],
    bits: int,
    slots: Int[np.ndarray, " products"],
    products: Float[np.ndarray, " products"],
) -> int:
    """Write the products of the features in two ranges, a context's and an action's; return their number."""
    context, shared, first, last = ranges
    mask = np.uint64((1 << bits) - 1)
    count = 0
    for i in range(context, shared):
        for j in range(first, last):
            if len(chosen) > 0 and not chosen[codes[order[i]], codes[order[j]]]:
                continue
            z = _pair_hash(hashes[i], hashes[j])
            x = values[i] * values[j]
            slots[count] = max(np.int64(z & mask), np.int64(z != 0))  # 1 × 1 has the hash 0
            products[count] = -x if z >> _TOP else x
            count += 1
    return count


@inlined
def _sort(
    slots: Int[np.ndarray, " products"],
    products: Float[np.ndarray, " products"],
    bits: int,
    places: Int[np.ndarray, " buckets"],
    sorted_slots: Int[np.ndarray, " products"],
    sorted_products: Float[np.ndarray, " products"],
) -> None:
    """Write the products in the order of their slots; those of one slot stay in their order.

    Slots are random: in as many buckets as there are products, by the slot's top bits, nearly all are
    in their places, and an insertion sort has little to do.
    """
    count, shift = len(slots), bits
    while shift > 0 and count >> (bits - shift) > 0:
        shift -= 1
    buckets = 1 << (bits - shift)
    for bucket in range(buckets):
        places[bucket] = 0
    for slot in slots:
        places[slot >> shift] += 1
    total = 0
    for bucket in range(buckets):
        size = places[bucket]
        places[bucket] = total
        total += size
    for i in range(count):
        bucket = slots[i] >> shift
        sorted_slots[places[bucket]] = slots[i]
        sorted_products[places[bucket]] = products[i]
        places[bucket] += 1
    for i in range(1, count):
        k, slot, product = i, sorted_slots[i], sorted_products[i]
        while k > 0 and sorted_slots[k - 1] > slot:
            sorted_slots[k] = sorted_slots[k - 1]
            sorted_products[k] = sorted_products[k - 1]
            k -= 1
        sorted_slots[k] = slot
        sorted_products[k] = product


@in_order
def _add_up(slots: Int[np.ndarray, " products"], sums: Float[np.ndarray, " products"]) -> int:
    """Write each slot once, with its sum if that is not 0, and return how many there are."""
    kept, i = 0, 0
    while i < len(slots):
        slot, total = slots[i], 0.0
        while i < len(slots) and slots[i] == slot:
            total += sums[i]
            i += 1
        if total != 0.0:  # two products in one slot may well be 1 − 1
            slots[kept] = slot
            sums[kept] = total
            kept += 1
    return kept


@in_order
def _scale(row: Float[np.ndarray, " entries"]) -> None:
    """Make the first entry the constant √½; the rest gets the squared length ½."""
    square = _squared_length(row[1:])
    scale = ROOT_HALF / math.sqrt(max(square, _TINY))  # finite where all features are 0
    for i in range(len(row)):
        row[i] *= scale
    row[CONSTANT_SLOT] = ROOT_HALF


@in_order
def _squared_length(x: Float[np.ndarray, " n"]) -> float:
    """Return ‖x‖² by pairwise summation, with eight sums at a time, as NumPy does."""
    n = len(x)
    if n > _BLOCK:
        half = n // 16 * 8
        return _squared_length(x[:half]) + _squared_length(x[half:])
    a = b = c = d = e = f = g = h = 0.0
    for i in range(0, n - 7, 8):
        a += x[i] * x[i]
        b += x[i + 1] * x[i + 1]
        c += x[i + 2] * x[i + 2]
        d += x[i + 3] * x[i + 3]
        e += x[i + 4] * x[i + 4]
        f += x[i + 5] * x[i + 5]
        g += x[i + 6] * x[i + 6]
        h += x[i + 7] * x[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(n // 8 * 8, n):
        total += x[i] * x[i]
    return total
