"""Decision ids: unique across the copies of a bandit, and a memory of those that were learned.

The id of a decision is `seed-number-run`, as in "0-17-9f3a61c2d04b". The run is drawn anew for every copy
of a bandit: when it is made, loaded, copied, unpickled or forked. What a policy draws depends on `seed-number`
alone, the decision's stream, so the same seed gives the same choices in every run.
"""

import os
import re
import secrets
from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Literal, cast, get_args

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Decision

OnRepeat = Literal["raise", "ignore", "learn"]
REMEMBERED = 10_000  # learned decisions, about 1 MB
_RUN_BYTES = 6
_WITH_RUN = re.compile(rf"(-?\d+-\d+)-[0-9a-f]{{{2 * _RUN_BYTES}}}")


class Run:
    """The part of decision ids that no other copy of a bandit has."""

    __slots__ = ("_id", "_process")

    def __init__(self) -> None:
        self._draw()

    @property
    def id(self) -> str:
        """Return the run's id; a forked process draws its own."""
        if self._process != os.getpid():
            self._draw()
        return self._id

    def _draw(self) -> None:
        self._process, self._id = os.getpid(), secrets.token_hex(_RUN_BYTES)


def stream_of(id: str) -> str:
    """Return what random numbers depend on: the id, without the run of an id of ours.

    >>> stream_of("0-17-9f3a61c2d04b"), stream_of("order 12")
    ('0-17', 'order 12')
    """
    match = _WITH_RUN.fullmatch(id)
    return id if match is None else match[1]


def given_ids(ids: Any, n: int) -> list[str]:
    """Return the ids that a user gave to n decisions, as strings; raise SettingError."""
    if isinstance(ids, str | bytes):
        raise SettingError(f"`ids` must be a list with an id for each round, got the text {ids!r}")
    listed = list(ids)
    if len(listed) != n:
        raise SettingError(f"there are {len(listed)} ids for {n} rounds; give one for each")
    for id in listed:
        if id is None or isinstance(id, bytes | float | list | dict | set | np.ndarray):
            raise SettingError(f"the id of a decision must be a string, got {id!r}")
    return [str(id) for id in listed]


def on_repeat_of(value: Any) -> OnRepeat:
    """Return what to do with a decision that is learned again, or raise SettingError."""
    if value not in get_args(OnRepeat):
        raise SettingError(
            f"`on_repeat` must be 'raise', 'ignore' or 'learn', got {value!r}; it says what `learn` does "
            "with a decision that was learned before"
        )
    return cast(OnRepeat, value)


class LearnedDecisions:
    """The newest decisions that were learned; of more than `REMEMBERED`, the oldest is forgotten.

    A decision is known by its id, its arm and its context, so that an id which a user gives to several
    decisions does not make them one.
    """

    __slots__ = ("_digests", "_order")

    def __init__(self, digests: Iterable[int] = ()) -> None:
        self._order = deque(digests)  # the oldest first
        self._digests = set(self._order)

    def __contains__(self, digest: int) -> bool:
        """Return whether a decision was learned, and is not forgotten yet."""
        return digest in self._digests

    def __len__(self) -> int:
        """Return how many decisions are remembered."""
        return len(self._digests)

    def add(self, digest: int) -> None:
        """Remember a decision."""
        if len(self._order) >= REMEMBERED:
            self._digests.discard(self._order.popleft())
        self._order.append(digest)
        self._digests.add(digest)

    def as_array(self) -> np.ndarray:
        """Return all digests, the oldest first."""
        return np.array(self._order, np.uint64)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LearnedDecisions":
        """Return a copy, without a look at every number."""
        return LearnedDecisions(self._order)


def digest_of(decision: Decision) -> int:
    """Return 64 bits that tell a decision from all others."""
    rows = decision.context.rows
    name = f"{decision.id}\0{decision.arm!r}\0".encode("utf-8", "surrogatepass")
    content = name + rows.indices.tobytes() + rows.values.tobytes()
    return int.from_bytes(blake2b(content, digest_size=8).digest())
