"""Joins rewards with decisions, by the log's own clock: deadlines, sums, early and late rewards.

Time enters by the records alone. A record's time moves the clock forward, and events whose wait is over by
then are closed before the record itself is handled. Deadlines fall on whole seconds of that clock, so that
many events are closed together.

The clock goes back by one kind of record only, ClockCorrected, which the learner writes when the log's
clock is ahead of the wall clock. So learners, standbys and exports agree on the time whatever their own
clocks say.

With `settle = "delayed"` an event is learned before its reward is final. Events take turns in the order of
their decisions: an event is learned with its reward if one has come, else with the default reward d. A reward
r that comes later is an observation of its own (a fake negative and then a positive, as in Ktena et al. 2019):

    y = d + (1 + q) (r − d),    q the share of all plays that get a reward.

This keeps the mean unbiased: of n similar plays let q n get the reward r, l n of them late; the (1 + l) n
observations sum to n d + (q − l) n (r − d) + l n (1 + q) (r − d) = (1 + l) n (d + q (r − d)). Plays that are
rewarded with another probability p are drawn towards the others, by (1 + q)/(1 + p) at most, and keep their
order.

An event whose reward has not come yet counts too little. If all events waited long for their rewards, a model
that knows nothing of a new action would go on trying it. So one event waits for ten that are learned.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from rbmle.service.log.base import Log, LogChanged, Stored
from rbmle.service.log.records import (
    Activated,
    ClockCorrected,
    Configured,
    Decided,
    Modelled,
    Play,
    Record,
    Reset,
    Rewarded,
    decode_record,
)
from rbmle.service.model.report import Counts
from rbmle.service.settings import Aggregation, LearningMode, ServiceConfiguration, Settle

EARLY = 120_000  # milliseconds by which a reward may come before its rank
SECOND = 1_000  # milliseconds
CHUNK = 256  # events that are closed at a time
STALE = 1_000  # closed events that may stay in the lists of deadlines
REMEMBERED = 4096  # decisions
APART = 16  # records between two decisions that are read in one go
WAITING_SHARE = 10  # one event may wait for its turn for so many that are learned
MOST_WAITING = 2_000  # events that wait for their turn

Values = dict[str, tuple[float, int]]  # a reward and its time, by slot
DecisionRow = tuple[Stored, Decided]


class Pending(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """An event that may still be rewarded; what was offered is in the log.

    Millions may wait, and most of them get no reward: those have no dict, and the garbage collector does not
    visit them.
    """

    seq: int  # of the decision
    deadline: int
    active: bool
    counted: Values | None = None  # rewards that are not final; None: there is none
    settled: tuple[str, ...] = ()  # slots whose reward is final
    learned: bool = False  # with the rewards that it had in its turn, before it is settled
    is_held: bool = False  # in the holdout, which takes no turn

    @property
    def values(self) -> Values:
        return self.counted or {}


class Early(msgspec.Struct, frozen=True):
    """A reward that came before its rank."""

    time: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Settled:
    """A slot whose reward is final, or is learned before it is."""

    stored: Stored  # the decision as it was logged
    decided: Decided
    play: Play  # one of the decision's
    reward: float
    reward_time: int | None  # of the last reward that counts; None: there is the default only
    is_learned: bool  # before it was settled

    @property
    def is_joined(self) -> bool:
        """Return whether a reward came; else it is the default."""
        return self.reward_time is not None


class Listener:
    """Hears what becomes of events; this one ignores it."""

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Take the final rewards of some slots, which became final together, in their order."""

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Take what is to be learned of some slots before they are settled."""

    def leave(self, event: str, pending: Pending) -> None:
        """Take an event some of whose slots never get a final reward: not shown, or dropped by a reset."""


class Deadlines:
    """The deadlines of pending events, which the owner of `pending` changes.

    An event that is settled stays listed until its deadline, or until there are many such.
    """

    def __init__(self, pending: Mapping[str, Pending]) -> None:
        self._pending = pending
        self._list_all()

    @property
    def first(self) -> int | None:
        return self._heap[0] if self._heap else None

    def add(self, event: str) -> None:
        """List an event that has become pending."""
        pending = self._pending[event]
        known = self._lists.get(pending.deadline)
        if known is None:
            known = self._lists[pending.deadline] = (pending.deadline, [])
            heapq.heappush(self._heap, pending.deadline)
        pending.deadline, events = known
        events.append(event)
        self.listed += 1

    def forget_stale(self) -> None:
        """Rebuild the lists if most events in them are no longer pending."""
        if self.listed > 2 * len(self._pending) + STALE:
            self._list_all()

    def over(self, time: int) -> list[str]:
        """Remove and return the events of the first deadline, in their order, unless it is after `time`."""
        if not self._heap or self._heap[0] > time:
            return []
        deadline = heapq.heappop(self._heap)
        _, events = self._lists.pop(deadline)
        self.listed -= len(events)
        listed = [(event, self._pending.get(event)) for event in dict.fromkeys(events)]
        due = [(p.seq, event) for event, p in listed if p is not None and p.deadline == deadline]
        return [event for _, event in sorted(due)]

    def _list_all(self) -> None:
        # Events of one deadline share one int object, which saves memory when millions wait.
        self._lists: dict[int, tuple[int, list[str]]] = {}
        self._heap: list[int] = []
        self.listed = 0  # events
        for event in self._pending:
            self.add(event)


class DecisionCache:
    """The last decisions: most rewards are for one of them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._ring: list[DecisionRow | None] = [None] * REMEMBERED

    def add(self, decision: DecisionRow) -> None:
        self._ring[decision[0].seq % REMEMBERED] = decision

    def at(self, seq: int) -> DecisionRow:
        """Return the decision of a record, from the log if it is an old one."""
        decision = self._ring[seq % REMEMBERED]
        if decision is not None and decision[0].seq == seq:
            return decision
        return decisions_at(self._log, [seq])[seq]


def decisions_at(log: Log, seqs: Sequence[int]) -> dict[int, DecisionRow]:
    """Return the decisions of some records, whose numbers ascend, in few reads."""
    wanted = set(seqs)
    decisions = {}
    for first, last in _ranges(seqs):
        for stored in log.read(first - 1, last - first + 1):
            if stored.seq in wanted:
                record = decode_record(stored.row)
                if isinstance(record, Decided):
                    decisions[stored.seq] = stored, record
    if len(decisions) < len(wanted):
        raise LogChanged("a decision that waits for its reward was erased or deleted")
    return decisions


def _ranges(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that are close together.

    >>> list(_ranges([1, 2, 5, 100]))
    [(1, 5), (100, 100)]
    """
    start = 0
    for place, seq in enumerate(seqs):
        is_last = place + 1 == len(seqs)
        if is_last or seqs[place + 1] - seq > APART:
            yield seqs[start], seq
            start = place + 1


def deadline_of(time: int, configuration: ServiceConfiguration) -> int:
    """Return when an event is over: at the first whole second after its wait."""
    return -(-(time + configuration.wait_milliseconds) // SECOND) * SECOND


class Turns(msgspec.Struct):
    """The events that wait to be learned before their reward is final, and how many get a reward."""

    waiting: list[int] = msgspec.field(default_factory=list)  # the seqs of their decisions
    learned: int = 0  # events that the model has learned in their turn
    plays: int = 0  # of events that have taken a turn, or wait for it
    rewarded: int = 0  # of these, those that have got a reward

    def due(self, seq: int) -> list[int]:
        """Return whose turn it is once the decision `seq` waits too; nothing changes."""
        count = self._excess
        return [*self.waiting, seq] if count > len(self.waiting) else self.waiting[:count]

    def enter(self, seq: int, plays: int) -> None:
        """Let a decision wait, and remove those whose turn it is."""
        count = self._excess
        self.waiting.append(seq)
        del self.waiting[:count]
        self.plays += plays

    @property
    def _excess(self) -> int:
        """Return how many too many would wait with one more."""
        return max(0, len(self.waiting) + 1 - min(self.learned // WAITING_SHARE, MOST_WAITING))

    def late(self, reward: float, default: float) -> float:
        """Return y, what a reward counts whose event was learned with the default.

        >>> Turns(plays=4, rewarded=1).late(1.0, 0.0)
        1.25
        """
        share = min(1.0, self.rewarded / self.plays) if self.plays else 0.0  # q
        return default + (1.0 + share) * (reward - default)


class Joined(msgspec.Struct, kw_only=True):
    """What a joiner knows after the records up to `seq`, as JSON can hold it."""

    seq: int
    time: int
    pending: dict[str, Pending]
    early: dict[str, list[Early]]
    counts: Counts
    configuration: dict[str, Any]
    turns: Turns = msgspec.field(default_factory=Turns, name="foresight")


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
    turns: Turns = field(default_factory=Turns)
    skips: int | None = 0  # records up to this one may be missing; None: all that retention deletes
    _deadlines: Deadlines = field(init=False)
    _due: list[str] = field(init=False, default_factory=list)  # to be closed, the first one last
    _early_ends: list[tuple[int, str]] = field(init=False)  # of early rewards, a heap too
    _recent: DecisionCache = field(init=False)

    def __post_init__(self) -> None:
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
            turns=self.turns,
        )

    @classmethod
    def resume(cls, joined: Joined, log: Log, listener: Listener) -> "Joiner":
        """Return a joiner that goes on as if it had never stopped."""
        known = {name: getattr(joined, name) for name in Joined.__struct_fields__}
        known["configuration"] = ServiceConfiguration.from_record(joined.configuration)
        return cls(log=log, listener=listener, **known)

    def apply(self, stored: Stored) -> None:
        self.join(stored, self.advance(stored))

    def advance(self, stored: Stored) -> Record:
        """Close all that waited until the next record, and return it; `join` has to follow."""
        if stored.seq != self.seq + 1:
            self._check_gap(stored.seq)
        while self.close_some(stored.row.time):
            pass
        return decode_record(stored.row)

    def close_some(self, time: int) -> bool:
        """Close some of what waited until a time; return whether there may be more.

        In the order of deadlines, and of decisions where they are equal.
        """
        self.time = max(self.time, time)
        self._due = self._due or self._deadlines.over(self.time)[::-1]
        if self._due:
            self._close(self._due[: -CHUNK - 1 : -1])
            del self._due[-CHUNK:]
            return True
        if self._deadlines.first is not None and self._deadlines.first <= self.time:
            return True
        while self._early_ends and self._early_ends[0][0] <= self.time:
            _, event = heapq.heappop(self._early_ends)
            self._forget_early(event)
        return False

    def _check_gap(self, seq: int) -> None:
        """Raise LogChanged if records before one are missing that this joiner has to take in."""
        deleted = self.log.extent().deleted if self.skips is None else self.skips
        if not self.seq < seq <= deleted + 1:
            raise LogChanged(f"record {seq} came after {self.seq}; those between are deleted")

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
                    self.turns.waiting.clear()
            case ClockCorrected():
                self._set_back(stored.row.time)
            case Modelled():  # the new model has to learn all that is pending
                self.turns.learned = 0
                for pending in self.pending.values():
                    pending.learned = False
            case Reset():
                self.drop_pending()
                self.turns.learned = 0
            case _:  # the clock, or a model that was learned elsewhere
                pass
        self.seq = stored.seq

    def drop_pending(self) -> None:
        """Stop waiting for any event; each leaves with what it has."""
        for event, pending in self.pending.items():
            self.listener.leave(event, pending)
        self.pending.clear()
        self.turns.waiting.clear()
        self._due.clear()
        self._deadlines = Deadlines(self.pending)

    def decision(self, pending: Pending) -> DecisionRow:
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
        return self.configuration.settle is Settle.DELAYED and not self._sums

    @property
    def _waits(self) -> bool:
        """Return whether no reward is final before the deadline."""
        return self._sums or self.configuration.settle is not Settle.ON_REWARD

    def _decide(self, stored: Stored, decided: Decided) -> None:
        """Wait for the rewards of an event, and take those that came before it."""
        event = stored.row.event
        is_logged_only = decided.mode == LearningMode.LOGGING_ONLY or decided.is_held
        is_learned = not decided.deferred and not is_logged_only
        takes_turn = self._is_delayed and is_learned
        due = self.turns.due(stored.seq) if takes_turn else []
        decision = (stored, decided)
        learned = [decision if s == stored.seq else self._recent.at(s) for s in due]  # may fail
        self.counts.decided += 1
        if event in self.pending:
            self.listener.leave(event, self.pending.pop(event))
        self._recent.add(decision)
        deadline = deadline_of(self.time, self.configuration)
        pending = Pending(
            seq=stored.seq,
            deadline=deadline,
            active=not decided.deferred,
            is_held=decided.is_held,
        )
        self.pending[event] = pending
        self._deadlines.add(event)
        if takes_turn:
            self.turns.enter(stored.seq, len(decided.plays))
        for early in self.early.pop(event, ()):
            self._count(pending, early.values, early.time)
        self._learn_in_turn(learned)
        self._settle_now(event, pending, decision)

    def _activate(self, event: str) -> None:
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
            self._learn_late(pending, decision, pending.values.keys() - before.keys())
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
                self.turns.rewarded += self._is_delayed and not pending.is_held
                before, _ = pending.values.get(slot, (0.0, time))
                pending.counted = {**pending.values, slot: (before + value, time)}

    def _settle_now(self, event: str, pending: Pending, decision: DecisionRow) -> None:
        """Settle the slots that have a reward, if an event is active and its first reward is final."""
        if not pending.active or self._waits or not pending.values:
            return
        settled = self._settle(pending, decision, None)
        pending.counted = None
        if len(pending.settled) == len(decision[1].plays):
            del self.pending[event]
            self._deadlines.forget_stale()
        self.listener.settle_all(settled)

    def _settle(
        self, pending: Pending, decision: DecisionRow, default: float | None
    ) -> list[Settled]:
        """Settle the slots of an event that have a reward, or all of them if there is a default."""
        settled = []
        for play in decision[1].plays:
            value, time = pending.values.get(play.slot, (default, None))
            if play.slot in pending.settled or value is None:
                continue
            pending.settled += (play.slot,)
            self.counts.joined += time is not None
            self.counts.defaulted += time is None
            settled.append(Settled(*decision, play, value, time, pending.learned))
        return settled

    def _learn_in_turn(self, decisions: Sequence[DecisionRow]) -> None:
        """Learn what events are worth so far, if they are still pending."""
        observed: list[Settled] = []
        for decision in decisions:
            stored, decided = decision
            pending = self.pending.get(stored.row.event)
            if pending is None or pending.seq != stored.seq:
                continue
            pending.learned = True
            self.turns.learned += 1
            for play in decided.plays:
                default = self.configuration.default_reward, None
                value, time = pending.values.get(play.slot, default)
                observed.append(Settled(*decision, play, value, time, is_learned=True))
        self.listener.learn_all(observed)

    def _learn_late(self, pending: Pending, decision: DecisionRow, slots: Collection[str]) -> None:
        """Learn the rewards of slots that were learned before with the default reward."""
        observed = []
        for play in decision[1].plays:
            if play.slot in slots:
                value, time = pending.values[play.slot]
                reward = self.turns.late(value, self.configuration.default_reward)
                observed.append(Settled(*decision, play, reward, time, is_learned=True))
        self.listener.learn_all(observed)

    def _close(self, events: Sequence[str]) -> None:
        """Settle events with what they have and the default, if they were shown."""
        closing = [(event, self.pending[event]) for event in events]
        seqs = [pending.seq for _, pending in closing if pending.active]
        decisions = decisions_at(self.log, seqs)  # it may fail, so before anything changes
        settled: list[Settled] = []
        for event, pending in closing:
            if pending.active:
                default = self.configuration.default_reward
                settled += self._settle(pending, decisions[pending.seq], default)
            else:
                self.counts.unactivated += 1
                self.listener.leave(event, pending)
            del self.pending[event]
        self.listener.settle_all(settled)

    def _set_back(self, time: int) -> None:
        """Set the clock back; deadlines that were given while it was ahead become earlier."""
        if time >= self.time:
            return
        deadlines: dict[str, int] = {}
        waiting = iter(self.pending.items())
        while some := dict(islice(waiting, CHUNK)):
            decisions = decisions_at(self.log, sorted(pending.seq for pending in some.values()))
            for event, pending in some.items():
                began = min(decisions[pending.seq][0].row.time, time)
                deadlines[event] = min(pending.deadline, deadline_of(began, self.configuration))
        self.time = time  # nothing below fails; if a read above does, the record is taken again
        for event, deadline in deadlines.items():
            self.pending[event].deadline = deadline
        for event, rewards in self.early.items():
            self.early[event] = [Early(min(early.time, time), early.values) for early in rewards]
        self._list_waiting()

    def _forget_early(self, event: str) -> None:
        """Forget the rewards of an event that did not come in time."""
        kept = [e for e in self.early.get(event, ()) if e.time + EARLY > self.time]
        self.counts.orphan += len(self.early.pop(event, ())) - len(kept)
        if kept:
            self.early[event] = kept


@dataclass(frozen=True, slots=True, kw_only=True)
class EventState:
    """What the records of one event come to."""

    rewards: dict[str, float]  # by slot, the ones that are not final yet included
    deadline: int | None  # in milliseconds; None: the event is closed


class EventJoiner(Listener):
    """Joins the records of a single event, and ignores all others of the log."""

    def __init__(self, log: Log, configuration: ServiceConfiguration) -> None:
        self._joiner = Joiner(log=log, listener=self, configuration=configuration)
        self._rewards: dict[str, float] = {}

    def join(self, event: str, records: Iterable[Stored], time: int) -> EventState:
        """Return the state of an event at a time, from its records in their order."""
        for stored in records:
            self._joiner.seq = stored.seq - 1
            self._joiner.apply(stored)
        while self._joiner.close_some(time):
            pass
        pending = self._joiner.pending.get(event)
        if pending is None:
            return EventState(rewards=self._rewards, deadline=None)
        waiting = {slot: reward for slot, (reward, _) in pending.values.items()}
        return EventState(rewards=self._rewards | waiting, deadline=pending.deadline)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        self._rewards |= {slot.play.slot: slot.reward for slot in settled if slot.is_joined}
