"""Checks of a log: that all of it can be read, and that its records are possible."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rbmle.service.exports.rows import Step, ignore_step, read_record
from rbmle.service.learner.checkpoints import check_newest
from rbmle.service.learner.joining import Joiner, Listener
from rbmle.service.log.base import Log, LogDamaged, Stored
from rbmle.service.log.records import Activated, Decided, Play, Record
from rbmle.service.model.report import Counts
from rbmle.service.settings import ConfigurationError

ROUNDING = 1e-6  # by which probabilities may miss 1


@dataclass(slots=True)
class LogSummary:
    """The contents of a log, and its problems."""

    kinds: Counter[str] = field(default_factory=Counter)  # records of each
    counts: Counts = field(default_factory=Counts)
    pending: int = 0  # events that are not settled yet
    early: int = 0  # rewards whose event may still come
    unknown: int = 0  # activations of events without a decision
    problems: list[str] = field(default_factory=list)


def check_log(log: Log, folder: Path | None = None, step: Step = ignore_step) -> LogSummary:
    """Return the contents of a log and every problem; if records are damaged, only that is checked.

    Rewards and activations without an event are counted, and are no problem.
    """
    summary = LogSummary(problems=log.verify())
    if summary.problems:
        return summary
    joiner = Joiner(log=log, listener=Listener(), counts=summary.counts, skips=None)
    last = log.last()
    for stored in log.read():
        if stored.seq > last:
            break
        summary.kinds[stored.row.kind] += 1
        try:
            record = read_record(joiner, stored)
            summary.problems += _problems(stored, record, summary.kinds)
            summary.unknown += isinstance(record, Activated) and not _is_known(log, stored)
            joiner.join(stored, record)
        except (LogDamaged, ConfigurationError) as error:
            summary.problems.append(str(error))
            joiner.seq = stored.seq  # go on after it
        step(stored.seq)
    summary.pending = len(joiner.pending)
    summary.early = sum(map(len, joiner.early.values()))
    summary.problems += check_newest(log, folder)
    return summary


def _is_known(log: Log, stored: Stored) -> bool:
    rows = log.of_event(stored.row.event)
    return any(s.row.kind == "decided" and s.seq < stored.seq for s in rows)


def _problems(stored: Stored, record: Record, kinds: Counter[str]) -> Iterator[str]:
    if not isinstance(record, Decided):
        return
    if not kinds["modelled"]:
        yield f"record {stored.seq} is a decision, but no model was made before it"
    for play in record.plays:
        slot = f" in slot {play.slot!r}" if play.slot else ""
        for problem in _problems_of(play, len(record.actions)):
            yield f"record {stored.seq}, event {stored.row.event!r}{slot}: {problem}"


def _problems_of(play: Play, actions: int) -> Iterator[str]:
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
