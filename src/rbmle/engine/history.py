"""Observations in sparse arrays, and how one more is kept."""

import numpy as np
from jaxtyping import Int

from rbmle.engine.compiled import in_order, inlined, kernel
from rbmle.engine.layout import Past, Rows

COUNT, SEEN, NEWEST, POOLED, SLABBED = range(5)  # places in `Sizes`
FEWEST = 4  # members in a slab

Sizes = Int[np.ndarray, " 5"]


@kernel
def keep(
    past: Past, sizes: Sizes, rows: Rows, i: int, reward: float, slot: int, listed: int
) -> bool:
    """Keep row i in a slot; return False, with nothing changed, where there is no room for it.

    The first `listed` slots are those of the memory; the next one is for the newest alone.
    """
    is_listed = slot < listed
    length, block = rows.lengths[i], rows.blocks[i]
    is_taken = slot < sizes[COUNT]
    if slot >= past.squares.shape[0] or sizes[POOLED] + length > past.rows.indices.shape[0]:
        return False
    count, limit = past.member_counts[block], past.member_limits[block]
    if is_taken and past.rows.blocks[slot] == block:
        count -= 1
    is_full = is_listed and count == limit
    if is_full and sizes[SLABBED] + max(FEWEST, 2 * limit) > past.members.shape[0]:
        return False
    if is_taken:
        leave_block(past, slot)
    start, at = sizes[POOLED], rows.starts[i]
    for k in range(length):
        past.rows.indices[start + k] = rows.indices[at + k]
        past.rows.values[start + k] = rows.values[at + k]
    past.rows.starts[slot], past.rows.lengths[slot], past.rows.blocks[slot] = start, length, block
    past.squares[slot], past.rewards[slot] = _squared_length(rows, i), reward
    past.serials[slot] = sizes[SEEN]
    sizes[POOLED] += length
    if is_listed:
        join_block(past, sizes, slot, block)
        sizes[COUNT] = max(sizes[COUNT], slot + 1)
    sizes[NEWEST] = slot
    sizes[SEEN] += 1
    return True


@in_order
def _squared_length(rows: Rows, i: int) -> float:
    """Return ‖x_i‖², summed in order: in vector registers its last bit would depend on where arrays lie."""
    square = 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        square += np.float64(rows.values[k]) * np.float64(rows.values[k])
    return square


@inlined
def join_block(past: Past, sizes: Sizes, slot: int, block: int) -> None:
    """Add an observation to the list of its block, which moves to a larger slab if it is full."""
    count, limit = past.member_counts[block], past.member_limits[block]
    if count == limit:
        limit = max(FEWEST, 2 * limit)
        start, to = past.member_starts[block], sizes[SLABBED]
        for k in range(count):
            past.members[to + k] = past.members[start + k]
        past.member_starts[block], past.member_limits[block] = to, limit
        sizes[SLABBED] += limit
    past.members[past.member_starts[block] + count] = slot
    past.places[slot] = count
    past.member_counts[block] = count + 1


@inlined
def leave_block(past: Past, slot: int) -> None:
    """Take an observation out of its block's list; the last one takes its place."""
    block, place = past.rows.blocks[slot], past.places[slot]
    last, start = past.member_counts[block] - 1, past.member_starts[block]
    moved = past.members[start + last]
    past.members[start + place] = moved
    past.places[moved] = place
    past.member_counts[block] = last
