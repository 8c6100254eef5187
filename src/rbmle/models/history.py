"""Past contexts and rewards, in growing sparse arrays; memory can be capped."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.checks import Settings, whole_number
from rbmle.core.errors import SettingError
from rbmle.core.trees import copy_tree
from rbmle.core.types import Observation, Rows
from rbmle.engine.layout import Fit, Past, Samples
from rbmle.engine.replay import FEWEST, Sizes, keep

FIRST_CAPACITY = 64
ENDLESS = 2**62  # slots
USUAL = 50_000  # observations that a model remembers by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Settings):
    """Which observations are kept: all of them, the last n, or a uniform sample of n."""

    keep: Literal["all", "window", "reservoir"] = "all"
    size: int = 0  # n; 0 for "all"

    def __post_init__(self) -> None:
        if self.keep not in ("all", "window", "reservoir"):
            raise SettingError(f"`keep` must be 'all', 'window' or 'reservoir', got {self.keep!r}")
        whole_number("size", self.size)
        if self.keep != "all" and self.size < 1:
            raise SettingError(
                f"`size` must be at least 1 for a {self.keep}, got {self.size}; "
                f"write Memory(keep={self.keep!r}, size=10_000)"
            )
        if self.keep == "all" and self.size:
            raise SettingError(
                f"`size` must be 0 where all is kept, got {self.size}; "
                "use keep='window' or keep='reservoir' to keep fewer"
            )

    def count(self, seen: int) -> int:
        return seen if self.keep == "all" else min(seen, self.size)

    @property
    def listed(self) -> int:
        """The number of slots in which observations are kept; the newest may be in the one after them."""
        return ENDLESS if self.keep == "all" else self.size

    @property
    def overwrites(self) -> bool:
        return self.keep != "all"

    @property
    def is_random(self) -> bool:
        return self.keep == "reservoir"

    def slot(self, round: int, rng: np.random.Generator) -> int:
        """Return where the observation of a round goes."""
        if self.keep == "reservoir" and round >= self.size:
            return min(int(rng.integers(round + 1)), self.size)
        return round % self.size if self.keep == "window" else round

    def slots(self, round: int, count: int) -> Int[np.ndarray, " count"]:
        """Return where the observations from a round on go, if slots are not random."""
        rounds = np.arange(round, round + count)
        return rounds % self.size if self.keep == "window" else rounds


def usual_memory() -> Memory:
    """Return the default memory of models: bounded, so that a bandit can run indefinitely."""
    return Memory(keep="window", size=USUAL)


@dataclass(slots=True, kw_only=True)
class History:
    """Observations as sparse rows, and a list of them for each block.

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
        return Rows(self.starts, self.lengths, self.blocks, self.indices, self.values)

    @property
    def past(self) -> Past:
        return Past(
            self.rows,
            self.squares,
            self.rewards,
            self.serials,
            self.places,
            self.members,
            self.member_starts,
            self.member_counts,
            self.member_limits,
        )

    @property
    def samples(self) -> Samples:
        return Samples(self.rows, self.rewards, self.count)

    def samples_in(self, fit: Fit) -> Samples:
        """Return the observations that are kept, with rewards in the units in which they are learned."""
        rewards = (self.rewards - fit.centre) * fit.gain if fit.is_standardised else self.rewards
        return Samples(self.rows, rewards, self.count)

    @property
    def sizes(self) -> Sizes:
        """A copy of the counters, in the order that the engine expects."""
        return np.array([self.count, self.seen, self.newest, self.pooled, self.slabbed])

    @property
    def forgotten(self) -> "History":
        """A history without observations, which still knows how many were seen."""
        empty = History.empty(len(self.member_starts), self.values.dtype.name)
        return replace(empty, seen=self.seen)

    def frozen(self, memory: Memory) -> "History":
        """Return a copy that can be read while this one learns.

        If all observations are kept, they are only appended, and a full list moves to a new slab: what is in
        use is never written again, so it is shared. Only the places and lengths of the lists are copied.
        """
        if memory.overwrites:
            return copy_tree(self)
        return replace(
            self,
            member_starts=self.member_starts.copy(),
            member_counts=self.member_counts.copy(),
            member_limits=self.member_limits.copy(),
        )

    def resize(self, sizes: Sizes) -> None:
        self.count, self.seen, self.newest, self.pooled, self.slabbed = sizes.tolist()

    def append(self, seen: Observation, memory: Memory, rng: np.random.Generator) -> None:
        """Keep an observation, in place of another where the memory is full."""
        slot, rows = memory.slot(self.seen, rng), seen.context.rows
        sizes = self.sizes
        while not keep(self.past, sizes, rows, 0, seen.reward, slot, memory.listed):
            self.make_room(slot, rows, 0)
            sizes = self.sizes
        self.resize(sizes)

    def make_room(self, slot: int, rows: Rows, i: int) -> None:
        """Make room for row i in a slot: double what is full, or pack it."""
        length, block = int(rows.lengths[i]), int(rows.blocks[i])
        if slot >= len(self.starts):
            self._more_slots(slot + 1)
        self.lengths[slot] = 0  # the observation there is replaced
        if self.pooled + length > len(self.indices):
            self._more_entries(length)
        limit = max(FEWEST, 2 * int(self.member_limits[block]))
        is_full = self.member_counts[block] == self.member_limits[block]
        if is_full and self.slabbed + limit > len(self.members):
            self.members = _longer(self.members, 2 * (self.slabbed + limit))

    def grow(self, blocks: int) -> None:
        more = np.zeros(blocks - len(self.member_starts), np.int64)
        self.member_starts = np.concatenate([self.member_starts, more])
        self.member_counts = np.concatenate([self.member_counts, more])
        self.member_limits = np.concatenate([self.member_limits, more])

    def _more_slots(self, needed: int) -> None:
        slots = max(needed, 2 * len(self.starts))
        for name in ("starts", "lengths", "blocks", "squares", "rewards", "serials", "places"):
            setattr(self, name, _longer(getattr(self, name), slots))

    def _more_entries(self, length: int) -> None:
        """Pack the pool if that gives room, or double it."""
        live = int(self.lengths[: self.count + 1].sum())
        if 2 * (live + length) > len(self.indices):
            size = max(self.pooled + length, 2 * len(self.indices))
            self.indices = _longer(self.indices, size)
            self.values = _longer(self.values, size)
            return
        lengths = self.lengths[: self.count + 1]
        starts = np.cumsum(lengths) - lengths
        moved = np.repeat(self.starts[: len(starts)] - starts, lengths) + np.arange(live)
        self.indices = _longer(self.indices[moved], len(self.indices))
        self.values = _longer(self.values[moved], len(self.values))
        self.starts[: len(starts)], self.pooled = starts, live


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy with zeros at the end."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
