"""The model as the sum of the log: the same records in the same order give the same model, bit for bit.

Time enters by the records alone. A record's time moves the clock, and what waited for a reward until
then is closed, before the record itself is looked at.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.types import Contexts, Decision
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.logs.base import Log, Stored
from rbmle.service.records import (
    Activated,
    Configured,
    Decided,
    Play,
    Reset,
    Rewarded,
    Ticked,
    decoded,
)

EARLY = 120_000  # milliseconds by which a reward may come before its rank

Rows = Callable[[Decided, Play], Contexts]  # the context of what was chosen


@dataclass(slots=True)
class Pending:
    """An event that may still be rewarded; what was offered is in the log."""

    seq: int  # of the decision
    deadline: int
    active: bool
    values: dict[str, float] = field(default_factory=dict)  # by slot, before they are learned
    learned: set[str] = field(default_factory=set)  # slots


@dataclass(slots=True)
class Counts:
    """What became of events and rewards."""

    decided: int = 0
    joined: int = 0  # slots learned with a reward
    defaulted: int = 0  # slots learned without one
    unactivated: int = 0  # events that were never shown
    duplicate: int = 0  # rewards of a slot that had one
    late: int = 0  # rewards of an event that was closed
    orphan: int = 0  # rewards of an event that never was


@dataclass(slots=True, kw_only=True)
class Fold:
    """What the service knows after the records up to `seq`."""

    log: Log
    rows: Rows
    start: Callable[[], Bandit]  # a bandit before any data
    configuration: ServiceConfiguration
    bandit: Bandit = field(init=False)
    seq: int = 0
    time: int = 0  # milliseconds
    pending: dict[str, Pending] = field(default_factory=dict)
    early: dict[str, list[tuple[int, dict[str, float]]]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    _deadlines: list[tuple[int, int, str]] = field(default_factory=list)  # a heap
    _hopes: list[tuple[int, int, str]] = field(default_factory=list)  # of early rewards

    def __post_init__(self) -> None:
        """Start before any data."""
        self.bandit = self.start()

    def apply(self, stored: Stored) -> None:
        """Take in the next record."""
        if stored.seq != self.seq + 1:
            raise ValueError(f"record {stored.seq} came after {self.seq}; they come in order")
        row = stored.row
        self.time = max(self.time, row.time)
        self._close()
        match decoded(row.kind, row.payload):
            case Decided() as decided:
                self._decide(row.event, stored.seq, decided)
            case Activated():
                self._activate(row.event)
            case Rewarded() as rewarded:
                self._reward(row.event, stored.seq, rewarded.values)
            case Configured() as configured:
                self.configuration = ServiceConfiguration.from_json(configured.configuration)
            case Reset():
                self._reset()
            case Ticked():
                pass
        self.seq = stored.seq

    def _decide(self, event: str, seq: int, decided: Decided) -> None:
        """Wait for the rewards of an event, and take those that came before it."""
        self.counts.decided += 1
        if decided.mode == "LoggingOnly":
            return
        deadline = self.time + self.configuration.wait_milliseconds
        self.pending[event] = Pending(seq=seq, deadline=deadline, active=not decided.deferred)
        heapq.heappush(self._deadlines, (deadline, seq, event))
        for _, values in self.early.pop(event, ()):
            self._reward(event, seq, values)

    def _activate(self, event: str) -> None:
        """Learn what a deferred event was worth so far."""
        found = self.pending.get(event)
        if found is not None and not found.active:
            found.active = True
            self._learn_now(found)

    def _reward(self, event: str, seq: int, values: dict[str, float]) -> None:
        """Join a reward with its event."""
        found = self.pending.get(event)
        if found is None:
            if any(s.row.kind == "decided" and s.seq < seq for s in self.log.of_event(event)):
                self.counts.late += 1
            else:
                self.early.setdefault(event, []).append((self.time, values))
                heapq.heappush(self._hopes, (self.time + EARLY, seq, event))
            return
        for slot, value in values.items():
            if slot in found.learned or (slot in found.values and not self._sums):
                self.counts.duplicate += 1
            else:
                found.values[slot] = found.values.get(slot, 0.0) + value
        self._learn_now(found)

    @property
    def _sums(self) -> bool:
        return self.configuration.reward_aggregation == "sum"

    def _learn_now(self, found: Pending) -> None:
        """Learn what needs no more waiting: the earliest reward of an active event."""
        if found.active and not self._sums and found.values:
            self._learn(found, found.values, None)
            found.values.clear()

    def _close(self) -> None:
        """Close all that waited until now, in the order of their deadlines."""
        while self._deadlines and self._deadlines[0][0] <= self.time:
            _, seq, event = heapq.heappop(self._deadlines)
            found = self.pending.get(event)
            if found is None or found.seq != seq:
                continue
            del self.pending[event]
            if found.active:
                self._learn(found, found.values, self.configuration.default_reward)
            else:
                self.counts.unactivated += 1
        while self._hopes and self._hopes[0][0] <= self.time:
            _, _, event = heapq.heappop(self._hopes)
            self.counts.orphan += len(self.early.pop(event, ()))

    def _learn(self, found: Pending, values: dict[str, float], default: float | None) -> None:
        """Learn the slots of an event that have a reward, or all of them if there is a default."""
        stored = next(iter(self.log.read(found.seq - 1, 1)))
        decided = decoded("decided", stored.row.payload)
        assert isinstance(decided, Decided)
        for play in decided.plays:
            value = values.get(play.slot, default)
            if play.slot in found.learned or value is None:
                continue
            found.learned.add(play.slot)
            if play.slot in values:
                self.counts.joined += 1
            else:
                self.counts.defaulted += 1
            self.bandit.learn(_decision(stored.row.event, play, self.rows(decided, play)), value)

    def _reset(self) -> None:
        """Start the model anew; what is pending is dropped."""
        self.bandit = self.start()
        self.pending.clear()
        self._deadlines.clear()


def _decision(event: str, play: Play, context: Contexts) -> Decision:
    """Return what the bandit needs to learn from a reward."""
    return Decision(
        id=event,
        arm=play.chosen,
        arms=tuple(play.eligible),
        indices=np.zeros(0),
        propensity=None,
        probabilities=None,
        context=context,
    )
