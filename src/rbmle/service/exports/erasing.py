"""Erasure: removes the events of a person from the log, so that the model never saw them.

All records of an event become empty ones, in one transaction, which also counts the erasure. The count is part
of the log's origin, so checkpoints and models that were made before are recognised as such wherever they are.
The learner then folds the log again: it takes no notice of empty records, so the model equals, byte for byte,
the one of a log in which these events never were.

Records that retention has deleted can no longer be searched, and the base of the log has learned from them. So
whoever erases has to say what should become of that: KEEP it, or FORGET it and everybody else's as well.
"""

import multiprocessing
import os
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from rbmle.core.errors import RBMLEError, SettingError
from rbmle.service.exports.rows import Step, ignore_step
from rbmle.service.learner.checkpoints import Checkpoints, base_without, begin_fold, restore_base
from rbmle.service.log import open_log
from rbmle.service.log.base import Base, Log, LogUnavailable, Stored, origin_of
from rbmle.service.log.publications import MODEL, REPORT, Publications
from rbmle.service.log.records import OPERATOR, Decided, RawFeatures
from rbmle.service.model.private import FeatureHasher, find_features, text_of
from rbmle.service.model.published import Published, encode
from rbmle.service.model.report import Report
from rbmle.service.model.settings import ModelSettings

NICE = 15  # of 19
POLL_SECONDS = 0.2


class Older(StrEnum):
    """What becomes of what the model has learned from records that retention has deleted."""

    KEEP = "keep"
    FORGET = "forget"


class ErasureError(RBMLEError):
    """An erasure that cannot be exact, unless the caller says what is to be done."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A feature that the events to erase have."""

    path: str  # such as "user.id"
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Return the condition of a text such as "user.id=u7"."""
        path, equals, value = text.partition("=")
        if not (path and equals):
            raise SettingError(
                f"{text!r} is no condition; give a feature and its value: user.id=u7"
            )
        return cls(path, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was erased, or would be."""

    events: int
    records: int
    deleted: int = 0  # records up to this one had been deleted by retention


class EventSearch:
    """Finds decisions that have all of some features, in the context, a slot or an action."""

    def __init__(self, conditions: Sequence[Condition], hasher: FeatureHasher | None) -> None:
        self.wanted = [(condition.path, _texts_of(condition, hasher)) for condition in conditions]

    def find(self, log: Log, after: int, step: Step) -> set[str]:
        """Return the events of matching decisions after a record."""
        events = set()
        for stored in log.read(after):
            step(stored.seq)
            if stored.row.kind == "decided" and self.matches(stored):
                events.add(stored.row.event)
        return events

    def matches(self, stored: Stored) -> bool:
        """Return whether a decision has all features."""
        payload = stored.row.payload
        if b"\\" not in payload and not all(
            any(text.encode() in payload for text in texts) or _is_number(texts)
            for _, texts in self.wanted
        ):
            return False  # nearly always, and fast
        decided = msgspec.json.decode(payload, type=Decided)
        places = [decided.context, *(action.features for action in decided.actions)]
        places += [play.features for play in decided.plays]
        return all(
            any(_has(features, path, texts) for features in places) for path, texts in self.wanted
        )


def _texts_of(condition: Condition, hasher: FeatureHasher | None) -> set[str]:
    """Return the value of a condition as it may stand in the log: as it is, and hashed."""
    value = condition.value
    with suppress(ValueError):
        value = text_of(float(value))
    texts = {condition.value, value}
    return texts if hasher is None else texts | {hasher.hash(condition.path, t) for t in texts}


def _is_number(texts: Collection[str]) -> bool:
    """Return whether a number is looked for, which can be written in several ways."""
    for text in texts:
        with suppress(ValueError):
            float(text)
            return True
    return False


def _has(features: RawFeatures, path: str, texts: Collection[str]) -> bool:
    groups = msgspec.json.decode(features, type=list[dict[str, object]])
    for holder, name in find_features(groups, path):
        value = holder[name]
        values = value if isinstance(value, list) else [value]
        if any(text_of(part) in texts for part in values):
            return True
    return False


def erase(
    log: Log,
    search: EventSearch,
    events: Collection[str] = (),
    *,
    older: Older | None = None,
    is_dry_run: bool = False,
    step: Step = ignore_step,
) -> Erasure:
    """Erase all records of some events, and of those that a search finds; the log may be in use.

    A second search finds what has arrived during the first. A person whose requests go on is not searched for a
    third time, or this would last as long as they do.

    Raise ErasureError if retention has deleted records, or a model was imported later, and `older` does not say
    what becomes of them.
    """
    erased, records, after, is_again = set[str](), 0, 0, False
    forgets = older is Older.FORGET
    is_searched = bool(search.wanted)
    while True:
        extent, last = log.extent(), log.last()
        matching = {*events, *(search.find(log, after, step) if is_searched else ())}
        seqs = sorted({s.seq for event in matching | erased for s in log.of_event(event)})
        if is_dry_run:
            return Erasure(events=len(matching), records=len(seqs), deleted=extent.deleted)
        imported = [s.seq for s in log.of_event(OPERATOR) if s.row.kind == "imported"]
        is_mixed = extent.deleted or (seqs and imported and seqs[0] < imported[-1])
        if is_mixed and older is None:
            raise ErasureError(
                "retention has deleted older records, or a model was imported or promoted, and the model has "
                "learned from these, maybe from this person's: say what becomes of that with --older keep (the "
                "model keeps it) or --older forget (the model is made of the records that are left, and loses "
                "what it learned of anybody's older ones)"
            )
        if forgets:
            seqs = sorted({*seqs, *imported})
        if not seqs and not (forgets and extent.deleted):
            return Erasure(events=len(erased), records=records, deleted=extent.deleted)
        base = log.base()
        if base is not None:
            base = Base(base.seq) if forgets else base_without(base, matching)
        if log.erase(extent, seqs, base):
            erased |= matching
            records, after, forgets = records + len(seqs), last, False
            if is_again:
                return Erasure(events=len(erased), records=records, deleted=extent.deleted)
            is_again = True


def erase_in_process(
    address: str,
    search: EventSearch,
    events: Collection[str],
    older: Older | None,
    is_dry_run: bool,
) -> Erasure:
    """Erase in a process with a low priority, so that this one goes on answering requests."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(_erase, address, search, events, older, is_dry_run).result()


def _erase(
    address: str,
    search: EventSearch,
    events: Collection[str],
    older: Older | None,
    is_dry_run: bool,
) -> Erasure:
    os.nice(NICE)
    with closing(open_log(address)) as log:
        return erase(log, search, events, older=older, is_dry_run=is_dry_run)


def rebuild(log: Log, folder: Path | None, publications: Publications, step: Step) -> bool:
    """Fold a log that no learner uses, write a checkpoint, and replace the published model.

    Return False if a learner has the lease: it does that itself.
    """
    lease = log.lease()
    if not lease.take():
        return False
    try:
        origin = origin_of(log)
        restored = (
            restore_base(log)
            if folder is None
            else Checkpoints(folder).restore(log, lambda _: None)
        )
        fold, statistics = begin_fold(log, restored)
        for stored in log.read(fold.seq):
            fold.take(stored)
            step(stored.seq)
        fold.learn()
        if fold.bandit is None or not isinstance(fold.model, ModelSettings):
            return True
        if folder is not None:
            Checkpoints(folder).save(fold, statistics, origin)
        published = Published(
            model=fold.model,
            bandit=fold.bandit.snapshot(),
            configuration=fold.joiner.configuration,
            seq=fold.seq,
            time=fold.joiner.time,
        )
        publications.put(MODEL, encode(published, origin))
        return True
    finally:
        lease.release()


def wait_for_learner(log: Log, publications: Publications, step: Step) -> None:
    """Wait until the learner has made the model again, up to the last record of now."""
    origin, last = origin_of(log), log.last()
    while True:
        with suppress(LogUnavailable, msgspec.MsgspecError):
            newest = publications.newer(REPORT, None)
            if newest is not None:
                report = msgspec.msgpack.decode(newest[1], type=Report)
                if report.origin == origin:
                    step(report.seq)
                    if report.seq >= last:
                        return
        time.sleep(POLL_SECONDS)
