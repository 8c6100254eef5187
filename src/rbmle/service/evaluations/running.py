"""Evaluations are run one after the other, each in a process of its own that yields to all others.

A log knows which were asked for and which are done, so what was interrupted is begun again, by whoever
learns from the log then. Of two who finish the same one, the first counts.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable
from contextlib import closing, suppress

from rbmle.core.errors import RBMLEError
from rbmle.service.evaluations.jobs import Job, jobs_of
from rbmle.service.log.base import Log, Row
from rbmle.service.log.clock import clock
from rbmle.service.log.errors import DuplicateRequest, LogUnavailable
from rbmle.service.log.opening import open_log
from rbmle.service.log.records import EVALUATIONS, EvaluationDone, encoded, kind_of

LOOK_SECONDS = 0.5  # between two looks for what is asked
ATTEMPTS = 3  # of an evaluation whose process ends without a word
NICE = 15  # of 19
STOP_SECONDS = 5.0
UNSERVED = 75  # of a process whose log did not serve it: EX_TEMPFAIL of sysexits.h

_processes = multiprocessing.get_context("spawn")


class Evaluator(threading.Thread):
    """Runs what is asked for, while `may_run` says so; `notify` is given each line for the operator."""

    def __init__(
        self,
        address: str,
        may_run: Callable[[], bool],
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make it for the log at an address; `start` begins, `stop` ends it."""
        super().__init__(name="rbmle-evaluator", daemon=True)
        self._address, self._may_run, self._notify = address, may_run, notify
        self._stopping = threading.Event()
        self._attempts: dict[int, int] = {}
        self._running: tuple[int, multiprocessing.process.BaseProcess] | None = None

    @property
    def running(self) -> int | None:
        """Return the seq of the evaluation that runs; None if none does."""
        if self._running is None:
            return None
        seq, process = self._running
        return seq if process.is_alive() else None

    def stop(self) -> None:
        """End; an evaluation that runs is begun again another time."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """Look for what is asked until stopped."""
        while not self._stopping.is_set():
            # A log that does not serve at the moment is opened again.
            with suppress(LogUnavailable), closing(open_log(self._address)) as log:
                while not self._stopping.wait(LOOK_SECONDS):
                    self._look(log)
            self._stopping.wait(LOOK_SECONDS)
        self._end()

    def _look(self, log: Log) -> None:
        """Begin what is to be done, and end what is not wanted any more."""
        if not self._may_run():
            self._end()
            return
        jobs = jobs_of(log)
        waiting = {job.seq: job for job in jobs if job.done is None}
        if self._running is not None:
            seq, process = self._running
            if process.is_alive() and seq in waiting:
                return
            for job in jobs:
                if job.seq == seq and job.done is not None:
                    for line in job.done.doubts:
                        self._notify(f"evaluation {job.asked.id!r}: {line}")
            if process.exitcode == UNSERVED:
                self._attempts.pop(seq, None)
            self._end()
        if waiting:
            self._begin(log, next(iter(waiting.values())))

    def _begin(self, log: Log, job: Job) -> None:
        before = self._attempts.get(job.seq, 0)
        if before == ATTEMPTS:
            problem = f"its process ended {ATTEMPTS} times without a word; is there enough memory?"
            finish(log, EvaluationDone(asked=job.seq, problem=problem))
            return
        self._attempts[job.seq] = before + 1
        process = _processes.Process(target=_run, args=(self._address, job.seq), daemon=True)
        process.start()
        self._running = job.seq, process

    def _end(self) -> None:
        """Let no process go on."""
        if self._running is not None:
            _, process = self._running
            process.terminate()
            process.join(STOP_SECONDS)
            self._running = None


def _run(address: str, seq: int) -> None:
    """Run one evaluation, in a process for it alone."""
    os.nice(NICE)
    parent = multiprocessing.parent_process()

    def step() -> None:
        if parent is not None and not parent.is_alive():  # another one has begun it again
            raise SystemExit

    try:
        with closing(open_log(address)) as log:
            for job in jobs_of(log):
                if job.seq == seq:
                    finish(log, evaluated(log, job, step))
    except LogUnavailable:
        raise SystemExit(UNSERVED) from None


def evaluated(log: Log, job: Job, step: Callable[[], None]) -> EvaluationDone:
    """Return what an evaluation finds, or why it finds nothing; `step` is called now and then."""
    # They take seconds to import, and only this process needs them.
    from rbmle.service.evaluations.importance import scores
    from rbmle.service.evaluations.judging import judged

    try:
        if job.asked.is_importance:
            return EvaluationDone(asked=job.seq, scores=scores(log, job.asked, step))
        return EvaluationDone(asked=job.seq, estimates=judged(log, job.asked, step))
    except LogUnavailable:
        raise
    except RBMLEError as error:
        return EvaluationDone(asked=job.seq, problem=str(error))


def finish(log: Log, done: EvaluationDone) -> None:
    """Write what was found, unless somebody else has."""
    row = Row(kind_of(done), EVALUATIONS, f"evaluated:{done.asked}", clock.now(), encoded(done))
    with suppress(DuplicateRequest):
        log.append([row])
