"""Past contexts and rewards, in growing sparse arrays; memory can be capped."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import SettingError
from rbmle.core.types import Observation, Rows

FIRST_CAPACITY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Which observations are kept: all of them, the last n, or a uniform sample of n."""

    keep: Literal["all", "window", "reservoir"] = "all"
    size: int = 0  # n; 0 for "all"

    def __post_init__(self) -> None:
        """Raise SettingError for a cap that makes no sense."""
        if self.keep not in ("all", "window", "reservoir"):
            raise SettingError(f"memory keeps {self.keep!r}; use 'all', 'window' or 'reservoir'")
        if self.keep != "all" and self.size < 1:
            raise SettingError(
                f"a {self.keep} of size {self.size} keeps nothing; give a size of 1 or more, "
                f"as in Memory(keep={self.keep!r}, size=10_000)"
            )
        if self.keep == "all" and self.size:
            raise SettingError(
                f"size={self.size} has no meaning where all is kept; use keep='window' or 'reservoir'"
            )


@dataclass(slots=True, kw_only=True)
class History:
    """Observations as sparse rows, and for each block the list of its own.

    Observation i has its entries anywhere in the pool `indices`, `values`; `members` holds each
    block's observations in a slab of its own; `places[i]` is where i stands in its slab. Slabs and
    pool double when full. One slot beyond the cap holds a newest observation that was not kept.
    """

    starts: Int[np.ndarray, " slots"]
    lengths: Int[np.ndarray, " slots"]
    blocks: Int[np.ndarray, " slots"]
    squares: Float[np.ndarray, " slots"]  # ‖x‖²
    rewards: Float[np.ndarray, " slots"]
    serials: Int[np.ndarray, " slots"]  # the round in which it was learned
    places: Int[np.ndarray, " slots"]
    indices: Int[np.ndarray, " pool"]
    values: Float[np.ndarray, " pool"]
    members: Int[np.ndarray, " members"]
    member_starts: Int[np.ndarray, " blocks"]
    member_counts: Int[np.ndarray, " blocks"]
    member_limits: Int[np.ndarray, " blocks"]
    count: int = 0  # observations kept
    seen: int = 0  # observations ever appended
    newest: int = 0  # where the last one is
    pooled: int = 0  # entries of the pool in use, live or dead
    slabbed: int = 0  # entries of `members` in use, live or dead

    @staticmethod
    def empty(blocks: int, dtype: str) -> "History":
        """Return a history without observations."""
        slots = FIRST_CAPACITY
        return History(
            starts=np.zeros(slots, np.int64),
            lengths=np.zeros(slots, np.int64),
            blocks=np.zeros(slots, np.int64),
            squares=np.zeros(slots),
            rewards=np.zeros(slots),
            serials=np.zeros(slots, np.int64),
            places=np.zeros(slots, np.int64),
            indices=np.zeros(slots, np.int32),
            values=np.zeros(slots, dtype),
            members=np.zeros(slots, np.int64),
            member_starts=np.zeros(blocks, np.int64),
            member_counts=np.zeros(blocks, np.int64),
            member_limits=np.zeros(blocks, np.int64),
        )

    @property
    def rows(self) -> Rows:
        """Return the contexts as the engine takes them."""
        return Rows(self.starts, self.lengths, self.blocks, self.indices, self.values)

    def append(self, seen: Observation, memory: Memory, rng: np.random.Generator) -> None:
        """Keep an observation, in place of another where the memory is full."""
        slot = self._slot(memory, rng)
        if slot >= len(self.starts):
            self._more_slots(slot + 1)
        if slot < self.count:
            self._leave_block(slot)
        rows = seen.context.rows
        length, block = len(rows.indices), int(rows.blocks[0])
        self.lengths[slot] = 0
        start = self._pool_start(length)
        self.indices[start : start + length] = rows.indices
        self.values[start : start + length] = rows.values
        self.starts[slot], self.lengths[slot], self.blocks[slot] = start, length, block
        self.squares[slot] = rows.values @ rows.values
        self.rewards[slot], self.serials[slot] = seen.reward, self.seen
        if memory.keep == "all" or slot < memory.size:
            self._join_block(slot, block)
            self.count = max(self.count, slot + 1)
        self.newest = slot
        self.seen += 1

    def grow(self, blocks: int) -> None:
        """Make room for more blocks."""
        more = np.zeros(blocks - len(self.member_starts), np.int64)
        self.member_starts = np.concatenate([self.member_starts, more])
        self.member_counts = np.concatenate([self.member_counts, more])
        self.member_limits = np.concatenate([self.member_limits, more])

    def _slot(self, memory: Memory, rng: np.random.Generator) -> int:
        """Return where the next observation goes; `memory.size` if it is not kept."""
        match memory.keep:
            case "all":
                return self.count
            case "window":
                return self.seen % memory.size
            case "reservoir":
                if self.count < memory.size:
                    return self.count
                return min(int(rng.integers(self.seen + 1)), memory.size)

    def _more_slots(self, needed: int) -> None:
        """Double the number of slots."""
        slots = max(needed, 2 * len(self.starts))
        for name in ("starts", "lengths", "blocks", "squares", "rewards", "serials", "places"):
            setattr(self, name, _longer(getattr(self, name), slots))

    def _pool_start(self, length: int) -> int:
        """Return where `length` entries fit, after packing or doubling the pool if it is full."""
        if self.pooled + length > len(self.indices):
            live = int(self.lengths[: self.count + 1].sum())
            if 2 * (live + length) <= len(self.indices):
                self._pack()
            else:
                size = max(self.pooled + length, 2 * len(self.indices))
                self.indices = _longer(self.indices, size)
                self.values = _longer(self.values, size)
        start = self.pooled
        self.pooled += length
        return start

    def _pack(self) -> None:
        """Move the live entries to the front of the pool."""
        indices, values = np.zeros_like(self.indices), np.zeros_like(self.values)
        at = 0
        for slot in range(min(self.count + 1, len(self.starts))):
            start, length = int(self.starts[slot]), int(self.lengths[slot])
            indices[at : at + length] = self.indices[start : start + length]
            values[at : at + length] = self.values[start : start + length]
            self.starts[slot] = at
            at += length
        self.indices, self.values, self.pooled = indices, values, at

    def _join_block(self, slot: int, block: int) -> None:
        """Add an observation to the list of its block."""
        count, limit = int(self.member_counts[block]), int(self.member_limits[block])
        if count == limit:
            limit = max(4, 2 * limit)
            if self.slabbed + limit > len(self.members):
                self.members = _longer(self.members, 2 * (self.slabbed + limit))
            start, to = int(self.member_starts[block]), self.slabbed
            self.members[to : to + count] = self.members[start : start + count]
            self.member_starts[block], self.member_limits[block] = to, limit
            self.slabbed += limit
        self.members[self.member_starts[block] + count] = slot
        self.places[slot] = count
        self.member_counts[block] = count + 1

    def _leave_block(self, slot: int) -> None:
        """Take an observation out of its block's list; the last one takes its place."""
        block = int(self.blocks[slot])
        last = int(self.member_counts[block]) - 1
        start = int(self.member_starts[block])
        moved = int(self.members[start + last])
        self.members[start + self.places[slot]] = moved
        self.places[moved] = self.places[slot]
        self.member_counts[block] = last


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy with zeros at the end."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
