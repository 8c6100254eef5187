"""Which reward belongs to which decision: waits, sums, early and late ones, by the log's own clock.

Time enters by the records alone. A record's time moves the clock, and what waited for a reward until
then is closed, before the record itself is looked at.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from rbmle.service.configuration import Aggregation, ServiceConfiguration
from rbmle.service.events import Counts, Early, Joined, Listener, Pending, Settled
from rbmle.service.logs.base import Log, Stored
from rbmle.service.records import (
    Activated,
    Configured,
    Decided,
    Record,
    Reset,
    Rewarded,
    decoded,
)

STALE = 1_000  # deadlines of events that are settled, which may stay
EARLY = 120_000  # milliseconds by which a reward may come before its rank


@dataclass(slots=True, kw_only=True)
class Joiner:
    """Joins the records up to `seq`; events in logging-only mode are joined as all others are.

    If the log cannot be read, nothing of a record was taken twice or lost: apply it again.
    """

    log: Log
    listener: Listener
    configuration: ServiceConfiguration = field(default_factory=ServiceConfiguration)
    seq: int = 0
    time: int = 0  # milliseconds
    pending: dict[str, Pending] = field(default_factory=dict)
    early: dict[str, list[Early]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    _deadlines: list[tuple[int, int, str]] = field(init=False)  # a heap
    _hopes: list[tuple[int, str]] = field(init=False)  # of early rewards, a heap too

    def __post_init__(self) -> None:
        """Make the heaps of what waits."""
        self._deadlines = _heap_of(self.pending)
        self._hopes = [(e.time + EARLY, event) for event, es in self.early.items() for e in es]
        heapq.heapify(self._hopes)

    @property
    def joined(self) -> Joined:
        """Return all that is known; it changes as the joiner goes on."""
        return Joined(
            seq=self.seq,
            time=self.time,
            pending=self.pending,
            early=self.early,
            counts=self.counts,
            configuration=self.configuration.to_json(),
        )

    @classmethod
    def resume(cls, joined: Joined, log: Log, listener: Listener) -> "Joiner":
        """Return a joiner that goes on as if it had never stopped."""
        return cls(
            log=log,
            listener=listener,
            configuration=ServiceConfiguration.from_json(joined.configuration),
            seq=joined.seq,
            time=joined.time,
            pending=joined.pending,
            early=joined.early,
            counts=joined.counts,
        )

    def apply(self, stored: Stored) -> None:
        """Take in the next record."""
        self.join(stored, self.advance(stored))

    def advance(self, stored: Stored) -> Record:
        """Close all that waited until the next record, and return it; `join` has to follow."""
        if stored.seq != self.seq + 1:
            raise ValueError(f"record {stored.seq} came after {self.seq}; they come in order")
        self.time = max(self.time, stored.row.time)
        self._close()
        return decoded(stored.row.kind, stored.row.payload)

    def join(self, stored: Stored, record: Record) -> None:
        """Take in the record that `advance` returned."""
        event = stored.row.event
        match record:
            case Decided():
                self._decide(stored, record)
            case Activated():
                self._activate(event)
            case Rewarded():
                self._reward(event, stored.seq, record.values)
            case Configured():
                self.configuration = ServiceConfiguration.from_json(record.configuration)
            case Reset():
                self.let_go()
            case _:  # a model or the clock, which rewards do not depend on
                pass
        self.seq = stored.seq

    def let_go(self) -> None:
        """Wait for no event any more; each leaves with what it has."""
        for event, pending in self.pending.items():
            self.listener.leave(event, pending)
        self.pending.clear()
        self._deadlines.clear()

    def decision(self, pending: Pending) -> tuple[Stored, Decided]:
        """Return the decision of an event, from the log."""
        stored = next(iter(self.log.read(pending.seq - 1, 1)))
        record = decoded(stored.row.kind, stored.row.payload)
        assert isinstance(record, Decided)
        return stored, record

    @property
    def next_deadline(self) -> int | None:
        """Return the time at which something is over, if nothing else happens; None if nothing waits."""
        waits = [heap[0][0] for heap in (self._deadlines, self._hopes) if heap]
        return min(waits, default=None)

    @property
    def _sums(self) -> bool:
        return self.configuration.reward_aggregation is Aggregation.SUM

    def _decide(self, stored: Stored, decided: Decided) -> None:
        """Wait for the rewards of an event, and take those that came before it."""
        self.counts.decided += 1
        event = stored.row.event
        if event in self.pending:
            self.listener.leave(event, self.pending[event])
        deadline = self.time + self.configuration.wait_milliseconds
        pending = Pending(seq=stored.seq, deadline=deadline, active=not decided.deferred)
        self.pending[event] = pending
        heapq.heappush(self._deadlines, (deadline, stored.seq, event))
        for early in self.early.pop(event, ()):
            self._count(pending, early.values, early.time)
        self._settle_now(event, pending, (stored, decided))

    def _activate(self, event: str) -> None:
        """Settle what a deferred event was worth so far."""
        pending = self.pending.get(event)
        if pending is not None and not pending.active:
            decision = self.decision(pending)  # it may fail, so before anything changes
            pending.active = True
            self._settle_now(event, pending, decision)

    def _reward(self, event: str, seq: int, values: dict[str, float]) -> None:
        """Join a reward with its event."""
        pending = self.pending.get(event)
        if pending is None:
            self._miss(event, seq, values)
        elif pending.active and not self._sums:
            decision = self.decision(pending)  # it may fail, so before anything changes
            self._count(pending, values, self.time)
            self._settle_now(event, pending, decision)
        else:
            self._count(pending, values, self.time)

    def _miss(self, event: str, seq: int, values: dict[str, float]) -> None:
        """Keep a reward whose event is still to come; that of a closed one is a duplicate, or late."""
        before = [s for s in self.log.of_event(event) if s.row.kind == "decided" and s.seq < seq]
        if before:
            is_late = before[-1].row.time + self.configuration.wait_milliseconds <= self.time
            self.counts.late += is_late
            self.counts.duplicate += not is_late
            return
        self.early.setdefault(event, []).append(Early(self.time, values))
        heapq.heappush(self._hopes, (self.time + EARLY, event))

    def _count(self, pending: Pending, values: dict[str, float], time: int) -> None:
        """Add rewards to those of an event, where they are summed; else only the first counts."""
        for slot, value in values.items():
            if slot in pending.settled or (slot in pending.values and not self._sums):
                self.counts.duplicate += 1
            else:
                before, _ = pending.values.get(slot, (0.0, time))
                pending.values[slot] = (before + value, time)

    def _settle_now(self, event: str, pending: Pending, decision: tuple[Stored, Decided]) -> None:
        """Settle what needs no more waiting: the earliest reward of an active event."""
        if not pending.active or self._sums or not pending.values:
            return
        self._settle(pending, decision, None)
        pending.values.clear()
        if len(pending.settled) == len(decision[1].plays):
            del self.pending[event]
            self._forget_stale()

    def _forget_stale(self) -> None:
        """Keep the heap of deadlines from growing with events that are settled."""
        if len(self._deadlines) > 2 * len(self.pending) + STALE:
            self._deadlines = _heap_of(self.pending)

    def _close(self) -> None:
        """Close all that waited until now, in the order of their deadlines."""
        while self._deadlines and self._deadlines[0][0] <= self.time:
            _, seq, event = self._deadlines[0]
            pending = self.pending.get(event)
            if pending is not None and pending.seq == seq:
                self._end(event, pending)
            heapq.heappop(self._deadlines)
        while self._hopes and self._hopes[0][0] <= self.time:
            _, event = heapq.heappop(self._hopes)
            self._give_up(event)

    def _end(self, event: str, pending: Pending) -> None:
        """Settle an event with what it has and the default, if it was shown."""
        if pending.active:
            decision = self.decision(pending)  # it may fail, so before anything changes
            self._settle(pending, decision, self.configuration.default_reward)
        else:
            self.counts.unactivated += 1
            self.listener.leave(event, pending)
        del self.pending[event]

    def _give_up(self, event: str) -> None:
        """Forget the rewards of an event that did not come in time."""
        kept = [e for e in self.early.get(event, ()) if e.time + EARLY > self.time]
        self.counts.orphan += len(self.early.pop(event, ())) - len(kept)
        if kept:
            self.early[event] = kept

    def _settle(
        self, pending: Pending, decision: tuple[Stored, Decided], default: float | None
    ) -> None:
        """Settle the slots of an event that have a reward, or all of them if there is a default."""
        stored, decided = decision
        for play in decided.plays:
            value, time = pending.values.get(play.slot, (default, None))
            if play.slot in pending.settled or value is None:
                continue
            pending.settled += (play.slot,)
            if time is None:
                self.counts.defaulted += 1
            else:
                self.counts.joined += 1
            self.listener.settle(
                Settled(stored=stored, decided=decided, play=play, reward=value, reward_time=time)
            )


def _heap_of(pending: Mapping[str, Pending]) -> list[tuple[int, int, str]]:
    """Return the deadlines of what waits, the next one first."""
    heap = [(found.deadline, found.seq, event) for event, found in pending.items()]
    heapq.heapify(heap)
    return heap
