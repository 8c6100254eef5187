"""What is known of events while they wait for rewards, and after."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from rbmle.service.learning.foresight import Foresight
from rbmle.service.log.base import Stored
from rbmle.service.log.records import Decided, Play

Values = dict[str, tuple[float, int]]  # a reward and its time, by slot


class Pending(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """An event that may still be rewarded; what was offered is in the log.

    Millions may wait, and most of them get no reward: those have no dict, and are none of the
    garbage collector's business.
    """

    seq: int  # of the decision
    deadline: int
    active: bool
    counted: Values | None = None  # rewards that are not final; None: there is none
    settled: tuple[str, ...] = ()  # slots whose reward is final
    learned: bool = False  # with the rewards that it had in its turn, before it is settled

    @property
    def values(self) -> Values:
        """Return the rewards that are not final."""
        return self.counted or {}


class Early(msgspec.Struct, frozen=True):
    """A reward that came before its rank."""

    time: int
    values: dict[str, float]


class Counts(msgspec.Struct, kw_only=True):
    """What became of events and rewards."""

    decided: int = 0
    joined: int = 0  # slots with a reward
    defaulted: int = 0  # slots without one
    unactivated: int = 0  # events that were never shown
    duplicate: int = 0  # rewards of a slot that had one
    late: int = 0  # rewards of an event that was closed
    orphan: int = 0  # rewards for an unknown event


class Joined(msgspec.Struct, kw_only=True):
    """What a joiner knows after the records up to `seq`, as JSON can hold it."""

    seq: int
    time: int
    pending: dict[str, Pending]
    early: dict[str, list[Early]]
    counts: Counts
    configuration: dict[str, Any]
    foresight: Foresight = msgspec.field(default_factory=Foresight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A slot whose reward is final, or is learned before it is."""

    stored: Stored  # the decision as it was logged
    decided: Decided
    play: Play  # one of the decision's
    reward: float
    reward_time: int | None  # of the last reward that counts; None: there is the default only
    is_learned: bool = False  # before it was settled

    @property
    def is_joined(self) -> bool:
        """Return whether a reward came; else it is the default."""
        return self.reward_time is not None


class Listener(Protocol):
    """Who wants to know what became of events."""

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Take the final rewards of some slots, which became final together, in their order."""
        ...

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Take what is to be learned of some slots before they are settled."""
        ...

    def leave(self, event: str, pending: Pending) -> None:
        """Take an event some of whose slots never get a final reward: not shown, or let go."""
        ...
