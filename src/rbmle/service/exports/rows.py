"""What a log is as a table: one row for each settled decision in each slot, with the reward that counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rbmle.service.learning.events import Pending, Settled
from rbmle.service.learning.joining import Joiner
from rbmle.service.log.base import Log, Stored
from rbmle.service.log.errors import LogDamaged
from rbmle.service.log.records import SHARED_ALIKE, Decided, Play, Record

PAIR = 2  # actions: the probability of one tells that of the other


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRow:
    """A decision in one slot, and what became of it."""

    stored: Stored
    decided: Decided
    play: Play
    reward: float | None  # None: none came in time, or the event was never shown, or let go
    reward_time: int | None  # None: there is no reward
    final_reward: float | None  # with the default; None: the event was never shown, or let go
    is_activated: bool

    @property
    def arm(self) -> str:
        """Return the id of the action that was chosen."""
        return self.decided.actions[self.play.chosen].id

    @property
    def eligible(self) -> list[str]:
        """Return the ids of the actions that could have been chosen."""
        return [self.decided.actions[place].id for place in self.play.eligible]

    @property
    def propensity(self) -> float:
        """Return the probability with which the chosen action was chosen."""
        return self.play.probabilities[self.play.eligible.index(self.play.chosen)]

    @property
    def probabilities(self) -> list[float] | None:
        """Return those of the eligible actions; None if only that of the chosen one is known."""
        is_known = self.decided.digest != SHARED_ALIKE or len(self.play.eligible) <= PAIR
        return self.play.probabilities if is_known else None


Take = Callable[[ExportRow], None]
Step = Callable[[int], None]  # told the seq of each record that was read


def unseen(seq: int) -> None:
    """Show nobody how much was read."""


def entries(log: Log, last: int) -> Iterator[ExportRow]:
    """Yield each entry of the records up to `last`, as `gather` gives them."""
    found: list[ExportRow] = []
    rows = _Rows(log, found.append)
    for stored in log.read(0, last):
        rows.joiner.join(stored, read_record(rows.joiner, stored))
        yield from found
        found.clear()


def gather(log: Log, last: int, take: Take, step: Step) -> int:
    """Give each entry of the records up to `last` to `take`, when it is known what became of it.

    So they come in the order in which rewards became final. Return how many events are pending after
    the last record: those with a reward so far would say too much good of what was chosen, so none is
    given. Held in memory is what is pending, and of that no features.
    """
    rows = _Rows(log, take)
    for stored in log.read(0, last):
        record = read_record(rows.joiner, stored)
        rows.joiner.join(stored, record)
        step(stored.seq)
    return len(rows.joiner.pending)


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


@dataclass(slots=True)
class _Rows:
    """Turns what a joiner tells into entries."""

    log: Log
    take: Take
    joiner: Joiner = field(init=False)

    def __post_init__(self) -> None:
        self.joiner = Joiner(log=self.log, listener=self)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        for one in settled:
            self.take(
                ExportRow(
                    stored=one.stored,
                    decided=one.decided,
                    play=one.play,
                    reward=one.reward if one.is_joined else None,
                    reward_time=one.reward_time,
                    final_reward=one.reward,
                    is_activated=True,
                )
            )

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Do nothing: an entry is of what is settled."""

    def leave(self, event: str, pending: Pending) -> None:
        stored, decided = self.joiner.decision(pending)
        for play in decided.plays:
            if play.slot in pending.settled:
                continue
            self.take(
                ExportRow(
                    stored=stored,
                    decided=decided,
                    play=play,
                    reward=None,
                    reward_time=None,
                    final_reward=None,
                    is_activated=pending.active,
                )
            )
