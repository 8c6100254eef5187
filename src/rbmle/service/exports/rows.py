"""A log as a table: one row for each slot of each settled decision, with the reward that counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from rbmle.service.learner.joining import Joiner, Listener, Pending, Settled
from rbmle.service.log.base import Log, LogDamaged, Stored
from rbmle.service.log.records import SHARED_ALIKE, Decided, Play, Record

PAIR = 2  # actions: the probability of one tells that of the other


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A decision in one slot, and its reward."""

    stored: Stored
    decided: Decided
    play: Play
    reward: (
        float | None
    )  # None: none came in time, or the event was not shown or dropped by a reset
    reward_time: int | None  # None: there is no reward
    final_reward: float | None  # with the default; None: the event was not shown, or dropped
    is_activated: bool

    @property
    def arm(self) -> str:
        return self.decided.actions[self.play.chosen].id

    @property
    def unit(self) -> str | None:
        """Return the digest of the unit; None if there was no holdout."""
        return None if self.decided.assignment is None else self.decided.assignment.unit

    @property
    def eligible(self) -> list[str]:
        return [self.decided.actions[place].id for place in self.play.eligible]

    @property
    def propensity(self) -> float:
        """Return the probability of the chosen action."""
        return self.play.probabilities[self.play.eligible.index(self.play.chosen)]

    @property
    def probabilities(self) -> list[float] | None:
        """Return the probabilities of the eligible actions; None if only that of the chosen one is known."""
        is_known = self.decided.digest != SHARED_ALIKE or len(self.play.eligible) <= PAIR
        return self.play.probabilities if is_known else None


Step = Callable[[int], None]  # called with the seq of each record that was read


def ignore_step(seq: int) -> None:
    pass


class SettledRows(Listener):
    """The rows of the records up to `last`, in the order in which rewards became final.

    After that, `pending` is the number of events that are left out: to export those that have a reward already
    would bias the mean reward upward. Memory holds pending events only, without features.
    """

    def __init__(self, log: Log, last: int, step: Step = ignore_step) -> None:
        self._log, self._last, self._step = log, last, step
        self._joiner = Joiner(log=log, listener=self, skips=None)
        self._ready: list[Settled | Pending] = []

    @property
    def pending(self) -> int:
        return len(self._joiner.pending)

    def __iter__(self) -> Iterator[ExportRow]:
        for stored in self._log.read():
            if stored.seq > self._last:
                return
            while self._joiner.close_some(stored.row.time):
                yield from self._take()
            self._joiner.join(stored, read_record(self._joiner, stored))
            yield from self._take()
            self._step(stored.seq)

    def _take(self) -> Iterator[ExportRow]:
        ready, self._ready = self._ready, []
        for item in ready:
            if isinstance(item, Settled):
                reward = item.reward if item.is_joined else None
                decision = item.stored, item.decided, item.play
                yield ExportRow(*decision, reward, item.reward_time, item.reward, True)
                continue
            stored, decided = self._joiner.decision(item)
            for play in decided.plays:
                if play.slot not in item.settled:
                    yield ExportRow(stored, decided, play, None, None, None, item.active)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        self._ready += settled

    def leave(self, event: str, pending: Pending) -> None:
        self._ready.append(pending)


def read_record(joiner: Joiner, stored: Stored) -> Record:
    """Return the next record; raise LogDamaged if this version of rbmle cannot read it."""
    try:
        return joiner.advance(stored)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = str(error)
    except KeyError:
        why = "its kind is unknown; use the version of rbmle that wrote it, or a later one"
    raise LogDamaged(
        f"record {stored.seq} of the log, {stored.row.kind!r}, cannot be read: {why}", stored.seq
    )
