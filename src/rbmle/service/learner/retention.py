"""Retention: deletes the oldest records of the log, beside running front ends and the learner.

The model is the fold of all records, so deleted ones must be known to it without being read again. The log
therefore has a `Base`: what a fold knew after the last record that may be deleted. Retention moves it:

1. A second fold goes on from the base, or from a checkpoint that is old enough, to the last record that is
   older than the setting says.
2. What it knows becomes the new base, in one transaction.
3. Records up to the base are deleted, a few in each transaction, and their space is returned.

A process that ends after any of these steps leaves a log that is whole: the next one goes on. Two at a time do
no harm either, as they compute the same, and the second finds that the base has moved. All records after the
base are in the log, so they can still be erased exactly, and the model can still be rebuilt.
"""

import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from rbmle.service.learner.checkpoints import Checkpoints, base_of, begin_fold, restore_base
from rbmle.service.log import LogWatcher, open_log
from rbmle.service.log.base import Extent, Log, LogChanged, LogError, Stored
from rbmle.service.log.clock import clock
from rbmle.service.log.records import EVALUATIONS, OPERATOR, RETENTION
from rbmle.service.model.settings import settings_of
from rbmle.service.settings import FOREVER

LOOK_SECONDS = 1.0  # between two looks at the setting
EVERY_SECONDS = 3_600.0  # between two runs, if nothing changes
RETRY_SECONDS = 60.0  # after a run that failed
STEP = 100_000  # records by which the base moves at most
DISCARDED = 64  # records in one transaction
SHARE = 9  # times as long as such a transaction others can write before the next
NICE = 15  # of 19
STOP_SECONDS = 5.0
DAY = 86_400_000  # milliseconds
KEPT = (OPERATOR, EVALUATIONS)  # events whose records stay: settings and results, not people's data

Step = Callable[[], None]  # called now and then
Result = TypeVar("Result")


def cleared_before(log: Log) -> int:
    """Return the last record that `DELETE /logs` has asked to delete; 0 if it was never called."""
    return max((stored.seq - 1 for stored in log.of_event(RETENTION)), default=0)


def retention_days(log: Log) -> int:
    """Return for how many days records are kept; FOREVER if they are not deleted."""
    configuration = settings_of(log).configuration
    return FOREVER if configuration is None else configuration.log_retention_days


def retain(log: Log, folder: Path | None, now: int, step: Step = lambda: None) -> int:
    """Delete the records that are too old at a time in milliseconds; return the last of them.

    Raise LogChanged if records were erased meanwhile; all is well then, and it can be tried again.
    """
    days, cleared = retention_days(log), cleared_before(log)
    expires = now - days * DAY if days != FOREVER else None
    _discard(log, step)  # what a run before has left
    while (base := log.extent().deleted) < (seq := _move(log, folder, expires, cleared, step)):
        _discard(log, step)
    while _paused(log.reclaim, step):
        pass
    return max(base, seq)


def _move(log: Log, folder: Path | None, expires: int | None, cleared: int, step: Step) -> int:
    """Move the base by up to STEP records; return its new seq, or the old one."""
    before, last = log.extent(), log.last()

    def has_expired(stored: Stored) -> bool:
        is_old = expires is not None and stored.row.time < expires
        return stored.seq <= cleared or (is_old and stored.seq < last)

    first = next(log.read(before.deleted, 1), None)
    if first is None or not has_expired(first):
        return before.deleted
    if folder is not None and cleared > before.deleted:  # a checkpoint spares most of the work
        restored = Checkpoints(folder).restore(log, lambda _: None, most=cleared)
    else:
        restored = restore_base(log)
    fold, statistics = begin_fold(log, restored)
    begun = fold.seq
    for stored in log.read(fold.seq):
        if not has_expired(stored) or stored.seq > max(begun, before.deleted) + STEP:
            break
        fold.take(stored)
        step()
    fold.learn()
    if fold.seq <= before.deleted or fold.bandit is None:
        return before.deleted
    base = base_of(fold, statistics)
    if not log.rebase(before, base):
        raise LogChanged("records were erased or deleted meanwhile")
    return base.seq


def _discard(log: Log, step: Step) -> None:
    after: int | None = 0
    while after is not None:
        after = _paused(partial(log.discard, after, DISCARDED, KEPT), step)


def _paused(change: Callable[[], Result], step: Step) -> Result:
    """Change the log, and leave it to others for a while."""
    begun = time.monotonic()
    result = change()
    step()
    time.sleep(min(1.0, SHARE * (time.monotonic() - begun)))
    return result


_processes = multiprocessing.get_context("spawn")


class Retention(LogWatcher):
    """Deletes old records while `may_run` allows it, in a process of its own with a low priority."""

    def __init__(
        self,
        address: str,
        folder: Path,
        may_run: Callable[[], bool],
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__("rbmle-retention", address, LOOK_SECONDS)
        self._folder, self._may_run, self._notify = folder, may_run, notify
        self._process: multiprocessing.process.BaseProcess | None = None
        self._known: tuple[int, int] | None = None  # what the last run was asked to do
        self._due = 0.0  # by time.monotonic()
        self._before = Extent()  # of the last run

    def _look(self, log: Log) -> None:
        if not self._may_run():
            self._end()
            self._known = None
            return
        if self._process is not None:
            if self._process.is_alive():
                return
            self._report(log, self._process.exitcode)
        wanted = retention_days(log), cleared_before(log)
        is_changed, self._known = wanted != self._known, wanted
        if wanted == (FOREVER, 0) or not (is_changed or time.monotonic() >= self._due):
            return
        self._due, self._before = time.monotonic() + EVERY_SECONDS, log.extent()
        self._process = _processes.Process(
            target=_run, args=(self._address, self._folder), daemon=True
        )
        self._process.start()

    def _report(self, log: Log, code: int | None) -> None:
        self._process = None
        deleted = log.extent().deleted
        if deleted > self._before.deleted:
            self._notify(
                f"records up to {deleted:,} are deleted from the log; the model keeps what it learned of them"
            )
        if code:
            self._due = time.monotonic() + RETRY_SECONDS
            self._notify("old records could not be deleted; this is tried again")

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.join(STOP_SECONDS)
            self._process = None


def _run(address: str, folder: Path) -> None:
    os.nice(NICE)
    parent = multiprocessing.parent_process()

    def step() -> None:
        if parent is not None and not parent.is_alive():  # another process goes on
            raise SystemExit

    try:
        with closing(open_log(address)) as log:
            retain(log, folder, clock.now(), step)
    except LogError as error:
        raise SystemExit(f"retention: {error}") from None
