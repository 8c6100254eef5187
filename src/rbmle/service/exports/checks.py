"""Whether a log makes sense: that all of it can be read, and that what it says is possible."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rbmle.service.exports.rows import Step, read_record, unseen
from rbmle.service.learning.checkpoints import check_newest
from rbmle.service.learning.events import Counts, Pending, Settled
from rbmle.service.learning.joining import Joiner
from rbmle.service.log.base import Log, Stored
from rbmle.service.log.errors import LogDamaged
from rbmle.service.log.records import Activated, Decided, Play, Record
from rbmle.service.setting import ConfigurationError

ROUNDING = 1e-6  # by which probabilities may miss 1

# Returns the problems of a log and of the folder beside it, which is None where there is none.
LogCheck = Callable[[Log, Path | None], Sequence[str]]
CHECKS: tuple[LogCheck, ...] = (check_newest,)


@dataclass(slots=True)
class Survey:
    """What is in a log, and what is wrong with it."""

    kinds: Counter[str] = field(default_factory=Counter)  # records of each
    counts: Counts = field(default_factory=Counts)
    pending: int = 0  # events that are not settled yet
    early: int = 0  # rewards whose event may still come
    unknown: int = 0  # activations of events that never were
    problems: list[str] = field(default_factory=list)


def survey(log: Log, folder: Path | None = None, step: Step = unseen) -> Survey:
    """Return what is in a log, and every problem; records that are damaged are not looked into.

    A reward or an activation without an event is no problem of the log, but is counted.
    """
    found = Survey(problems=log.verify())
    if found.problems:
        return found
    joiner = Joiner(log=log, listener=_Deaf(), counts=found.counts)
    for stored in log.read(0, log.last()):
        found.kinds[stored.row.kind] += 1
        try:
            record = read_record(joiner, stored)
            found.problems += _problems(stored, record, found.kinds)
            found.unknown += isinstance(record, Activated) and not _is_known(log, stored)
            joiner.join(stored, record)
        except (LogDamaged, ConfigurationError) as error:
            found.problems.append(str(error))
            joiner.seq = stored.seq  # go on behind it
        step(stored.seq)
    found.pending = len(joiner.pending)
    found.early = sum(map(len, joiner.early.values()))
    for check in CHECKS:
        found.problems += check(log, folder)
    return found


class _Deaf:
    """Who does not want to know what became of events."""

    def settle_all(self, settled: Sequence[Settled]) -> None:
        """Do nothing."""

    def learn_all(self, observed: Sequence[Settled]) -> None:
        """Do nothing."""

    def leave(self, event: str, pending: Pending) -> None:
        """Do nothing."""


def _is_known(log: Log, stored: Stored) -> bool:
    """Return whether the event of a record was decided before it."""
    rows = log.of_event(stored.row.event)
    return any(s.row.kind == "decided" and s.seq < stored.seq for s in rows)


def _problems(stored: Stored, record: Record, kinds: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with a record that could be read."""
    if not isinstance(record, Decided):
        return
    if not kinds["modelled"]:
        yield f"record {stored.seq} is a decision, but no model was made before it"
    for play in record.plays:
        slot = f" in slot {play.slot!r}" if play.slot else ""
        for problem in _problems_of(play, len(record.actions)):
            yield f"record {stored.seq}, event {stored.row.event!r}{slot}: {problem}"


def _problems_of(play: Play, actions: int) -> Iterator[str]:
    """Yield what cannot be in a choice among some actions."""
    chances = play.probabilities
    if len(chances) != len(play.eligible):
        yield f"there are {len(chances)} probabilities for {len(play.eligible)} eligible actions"
        return
    for place in {*play.eligible, play.chosen, play.baseline}:
        if not 0 <= place < actions:
            yield f"there is no action {place} among {actions}"
    if not abs(math.fsum(chances) - 1) <= ROUNDING:
        yield f"the probabilities sum to {math.fsum(chances):.9g}, not to 1"
    if not all(0 <= chance <= 1 for chance in chances):
        yield f"a probability is not between 0 and 1: {chances}"
    if play.chosen not in play.eligible:
        yield f"action {play.chosen} was chosen, but only {play.eligible} were eligible"
    elif not chances[play.eligible.index(play.chosen)] > 0:
        yield f"action {play.chosen} was chosen, but its probability is 0"
