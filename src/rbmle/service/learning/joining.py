"""Which reward belongs to which decision: waits, sums, early and late ones, by the log's own clock.

Time enters by the records alone. A record's time moves the clock forward, and what waited for a reward
until then is closed, before the record itself is looked at. Waits end at whole seconds of that clock, so
that many events are closed together.

The clock goes back by one kind of record only, ClockCorrected, which the learner writes when the log's
clock is ahead of the wall clock. So learners, standbys and exports agree on the time whatever their own
clocks say.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from rbmle.service.configuration import Aggregation, LearningMode, ServiceConfiguration, Settle
from rbmle.service.learning.deadlines import Deadlines
from rbmle.service.learning.decision_cache import DecisionCache, DecisionRow, decisions_at
from rbmle.service.learning.events import Counts, Early, Joined, Listener, Pending, Settled
from rbmle.service.learning.foresight import Foresight
from rbmle.service.learning.settling import deadline_of, finals, late, so_far
from rbmle.service.log.base import Log, Stored
from rbmle.service.log.records import (
    Activated,
    ClockCorrected,
    Configured,
    Decided,
    Modelled,
    Record,
    Reset,
    Rewarded,
    decoded,
)

EARLY = 120_000  # milliseconds by which a reward may come before its rank
CHUNK = 256  # events that are closed at a time


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
    foresight: Foresight = field(default_factory=Foresight)
    _deadlines: Deadlines = field(init=False)
    _due: list[str] = field(init=False, default_factory=list)  # to be closed, the first one last
    _early_ends: list[tuple[int, str]] = field(init=False)  # of early rewards, a heap too
    _recent: DecisionCache = field(init=False)

    def __post_init__(self) -> None:
        """List what waits."""
        self._recent = DecisionCache(self.log)
        self._list_waiting()

    def _list_waiting(self) -> None:
        self._deadlines = Deadlines(self.pending)
        self._early_ends = [(e.time + EARLY, event) for event, es in self.early.items() for e in es]
        heapq.heapify(self._early_ends)

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
            foresight=self.foresight,
        )

    @classmethod
    def resume(cls, joined: Joined, log: Log, listener: Listener) -> "Joiner":
        """Return a joiner that goes on as if it had never stopped."""
        return cls(
            log=log,
            listener=listener,
            configuration=ServiceConfiguration.from_record(joined.configuration),
            seq=joined.seq,
            time=joined.time,
            pending=joined.pending,
            early=joined.early,
            counts=joined.counts,
            foresight=joined.foresight,
        )

    def apply(self, stored: Stored) -> None:
        """Take in the next record."""
        self.join(stored, self.advance(stored))

    def advance(self, stored: Stored) -> Record:
        """Close all that waited until the next record, and return it; `join` has to follow."""
        if stored.seq != self.seq + 1:
            raise ValueError(f"record {stored.seq} came after {self.seq}; they come in order")
        while self.close_some(stored.row.time):
            pass
        return decoded(stored.row.kind, stored.row.payload)

    def close_some(self, time: int) -> bool:
        """Close some of what waited until a time; return whether there may be more.

        In the order of deadlines, and of decisions where they are equal.
        """
        self.time = max(self.time, time)
        self._due = self._due or self._deadlines.over(self.time)[::-1]
        if self._due:
            self._end(self._due[: -CHUNK - 1 : -1])
            del self._due[-CHUNK:]
            return True
        if self._deadlines.first is not None and self._deadlines.first <= self.time:
            return True
        while self._early_ends and self._early_ends[0][0] <= self.time:
            _, event = heapq.heappop(self._early_ends)
            self._give_up(event)
        return False

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
                self.configuration = ServiceConfiguration.from_record(record.configuration)
                if not self._is_delayed:
                    self.foresight.waiting.clear()
            case ClockCorrected():
                self._set_back(stored.row.time)
            case Modelled():
                self._begin_anew()
            case Reset():
                self.let_go()
                self.foresight.begin_anew()
            case _:  # the clock, or a model that was learned elsewhere
                pass
        self.seq = stored.seq

    def let_go(self) -> None:
        """Wait for no event any more; each leaves with what it has."""
        for event, pending in self.pending.items():
            self.listener.leave(event, pending)
        self.pending.clear()
        self.foresight.waiting.clear()
        self._due.clear()
        self._deadlines = Deadlines(self.pending)

    def decision(self, pending: Pending) -> DecisionRow:
        """Return the decision of an event."""
        return self._recent.at(pending.seq)

    @property
    def next_deadline(self) -> int | None:
        """Return the time at which something is over, if nothing else happens; None if nothing waits."""
        ends = [self._deadlines.first, *(time for time, _ in self._early_ends[:1])]
        return min((end for end in ends if end is not None), default=None)

    @property
    def _sums(self) -> bool:
        return self.configuration.reward_aggregation is Aggregation.SUM

    @property
    def _is_delayed(self) -> bool:
        """Return whether events are learned before they are settled."""
        return self.configuration.settle is Settle.DELAYED and not self._sums

    @property
    def _waits(self) -> bool:
        """Return whether no reward is final before the deadline."""
        return self._sums or self.configuration.settle is not Settle.ON_REWARD

    def _decide(self, stored: Stored, decided: Decided) -> None:
        """Wait for the rewards of an event, and take those that came before it."""
        event = stored.row.event
        is_learned = not decided.deferred and decided.mode != LearningMode.LOGGING_ONLY
        takes_turn = self._is_delayed and is_learned
        due = self.foresight.due(stored.seq) if takes_turn else []
        own = (stored, decided)
        learned = [own if seq == stored.seq else self._recent.at(seq) for seq in due]  # may fail
        self.counts.decided += 1
        if event in self.pending:
            self.listener.leave(event, self.pending.pop(event))
        self._recent.add(own)
        deadline = deadline_of(self.time, self.configuration)
        pending = Pending(seq=stored.seq, deadline=deadline, active=not decided.deferred)
        self.pending[event] = pending
        self._deadlines.add(event)
        if takes_turn:
            self.foresight.enter(stored.seq, len(decided.plays))
        for early in self.early.pop(event, ()):
            self._count(pending, early.values, early.time)
        self._learn_in_turn(learned)
        self._settle_now(event, pending, own)

    def _activate(self, event: str) -> None:
        """Let a deferred event be learned, at once if its reward is final."""
        pending = self.pending.get(event)
        if pending is None or pending.active:
            return
        if self._waits:
            pending.active = True
            return
        decision = self.decision(pending)  # it may fail, so before anything changes
        pending.active = True
        self._settle_now(event, pending, decision)

    def _reward(self, event: str, seq: int, values: dict[str, float]) -> None:
        """Join a reward with its event."""
        pending = self.pending.get(event)
        if pending is None:
            self._miss(event, seq, values)
        elif pending.active and not self._waits:
            decision = self.decision(pending)  # it may fail, so before anything changes
            self._count(pending, values, self.time)
            self._settle_now(event, pending, decision)
        elif pending.learned and self._is_delayed:
            decision, before = self.decision(pending), pending.values
            self._count(pending, values, self.time)
            slots = pending.values.keys() - before.keys()
            default = self.configuration.default_reward
            self.listener.learn_all(late(pending, decision, slots, self.foresight, default))
        else:
            self._count(pending, values, self.time)

    def _miss(self, event: str, seq: int, values: dict[str, float]) -> None:
        """Keep a reward whose event is still to come; that of a closed one is a duplicate, or late."""
        before = [s for s in self.log.of_event(event) if s.row.kind == "decided" and s.seq < seq]
        if before:
            is_late = deadline_of(before[-1].row.time, self.configuration) <= self.time
            self.counts.late += is_late
            self.counts.duplicate += not is_late
            return
        self.early.setdefault(event, []).append(Early(self.time, values))
        heapq.heappush(self._early_ends, (self.time + EARLY, event))

    def _count(self, pending: Pending, values: dict[str, float], time: int) -> None:
        """Add rewards to those of an event, where they are summed; else only the first counts."""
        for slot, value in values.items():
            if slot in pending.settled or (slot in pending.values and not self._sums):
                self.counts.duplicate += 1
            else:
                self.foresight.rewarded += self._is_delayed
                before, _ = pending.values.get(slot, (0.0, time))
                pending.counted = {**pending.values, slot: (before + value, time)}

    def _settle_now(self, event: str, pending: Pending, decision: DecisionRow) -> None:
        """Settle what needs no more waiting: the first reward of an active event, if that is the rule."""
        if not pending.active or self._waits or not pending.values:
            return
        settled = finals(pending, decision, None, self.counts)
        pending.counted = None
        if len(pending.settled) == len(decision[1].plays):
            del self.pending[event]
            self._deadlines.forget_stale()
        self.listener.settle_all(settled)

    def _learn_in_turn(self, decisions: Sequence[DecisionRow]) -> None:
        """Learn what events are worth so far, if they are still pending."""
        observed: list[Settled] = []
        for decision in decisions:
            stored, _ = decision
            pending = self.pending.get(stored.row.event)
            if pending is not None and pending.seq == stored.seq:
                pending.learned = True
                self.foresight.learned += 1
                observed += so_far(pending, decision, self.configuration.default_reward)
        self.listener.learn_all(observed)

    def _begin_anew(self) -> None:
        """Let a model that has learned nothing learn all that is pending."""
        self.foresight.begin_anew()
        for pending in self.pending.values():
            pending.learned = False

    def _end(self, events: Sequence[str]) -> None:
        """Settle events with what they have and the default, if they were shown."""
        ending = [(event, self.pending[event]) for event in events]
        seqs = [pending.seq for _, pending in ending if pending.active]
        decisions = decisions_at(self.log, seqs)  # it may fail, so before anything changes
        settled = []
        for event, pending in ending:
            if pending.active:
                default = self.configuration.default_reward
                settled += finals(pending, decisions[pending.seq], default, self.counts)
            else:
                self.counts.unactivated += 1
                self.listener.leave(event, pending)
            del self.pending[event]
        self.listener.settle_all(settled)

    def _set_back(self, time: int) -> None:
        """Set the clock back, and let what waits end when its own time, or at most this one, says so.

        Deadlines that were given while the clock was ahead would not come for as long as it was.
        """
        if time >= self.time:
            return
        deadlines: dict[str, int] = {}
        waiting = iter(self.pending.items())
        while some := dict(islice(waiting, CHUNK)):
            decided = decisions_at(self.log, sorted(pending.seq for pending in some.values()))
            for event, pending in some.items():
                began = min(decided[pending.seq][0].row.time, time)
                deadlines[event] = min(pending.deadline, deadline_of(began, self.configuration))
        self.time = (
            time  # nothing below fails, so a record whose decisions cannot be read is taken again
        )
        for event, deadline in deadlines.items():
            self.pending[event].deadline = deadline
        for event, rewards in self.early.items():
            self.early[event] = [Early(min(early.time, time), early.values) for early in rewards]
        self._list_waiting()

    def _give_up(self, event: str) -> None:
        """Forget the rewards of an event that did not come in time."""
        kept = [e for e in self.early.get(event, ()) if e.time + EARLY > self.time]
        self.counts.orphan += len(self.early.pop(event, ())) - len(kept)
        if kept:
            self.early[event] = kept
