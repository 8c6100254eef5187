"""Runs evaluations one after the other, each in its own process with a low priority.

The log knows which evaluations were requested and which are done, so an interrupted one is started again, by
the learner that leads then. If two finish the same one, the first counts.
"""

import multiprocessing
import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass

from rbmle.core.errors import RBMLEError
from rbmle.service.log import LogWatcher, open_log
from rbmle.service.log.base import DuplicateRequest, Log, LogUnavailable
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    EVALUATIONS,
    EvaluationAsked,
    EvaluationDeleted,
    EvaluationDone,
    decode_record,
    row_of,
)

LOOK_SECONDS = 0.5  # between two looks for what is asked
ATTEMPTS = 3  # of an evaluation whose process ends without a result
NICE = 15  # of 19
STOP_SECONDS = 5.0
UNSERVED = 75  # exit code if the log is not available: EX_TEMPFAIL of sysexits.h


@dataclass(slots=True, kw_only=True)
class Job:
    """An evaluation that was requested, and its results; None: there are none yet."""

    seq: int
    created: int  # milliseconds
    asked: EvaluationAsked
    done: EvaluationDone | None = None


def jobs_of(log: Log) -> list[Job]:
    """Return all evaluations that are not deleted, the oldest first."""
    jobs: dict[int, Job] = {}
    for stored in log.of_event(EVALUATIONS):
        match decode_record(stored.row):
            case EvaluationAsked() as asked:
                jobs[stored.seq] = Job(seq=stored.seq, created=stored.row.time, asked=asked)
            case EvaluationDone() as done if done.asked in jobs:
                jobs[done.asked].done = done
            case EvaluationDeleted(asked=seq):
                jobs.pop(seq, None)
            case _:  # of one that was deleted meanwhile
                pass
    return list(jobs.values())


_processes = multiprocessing.get_context("spawn")


class Evaluator(LogWatcher):
    """Runs evaluations while `may_run` allows it; `notify` is called with each line for the operator."""

    def __init__(
        self,
        address: str,
        may_run: Callable[[], bool],
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__("rbmle-evaluator", address, LOOK_SECONDS)
        self._may_run, self._notify = may_run, notify
        self._attempts: dict[int, int] = {}
        self._running: tuple[int, multiprocessing.process.BaseProcess] | None = None

    @property
    def running(self) -> int | None:
        """Return the seq of the evaluation that runs; None if none does."""
        if self._running is None:
            return None
        seq, process = self._running
        return seq if process.is_alive() else None

    def _look(self, log: Log) -> None:
        """Start the next evaluation, and stop one that was deleted."""
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
            problem = (
                f"its process ended {ATTEMPTS} times without a result; is there enough memory?"
            )
            finish(log, EvaluationDone(asked=job.seq, problem=problem))
            return
        self._attempts[job.seq] = before + 1
        process = _processes.Process(target=_run, args=(self._address, job.seq), daemon=True)
        process.start()
        self._running = job.seq, process

    def _end(self) -> None:
        if self._running is not None:
            _, process = self._running
            process.terminate()
            process.join(STOP_SECONDS)
            self._running = None


def _run(address: str, seq: int) -> None:
    os.nice(NICE)
    parent = multiprocessing.parent_process()

    def step() -> None:
        if parent is not None and not parent.is_alive():  # another process starts it again
            raise SystemExit

    try:
        with closing(open_log(address)) as log:
            for job in jobs_of(log):
                if job.seq == seq:
                    finish(log, evaluate_job(log, job, step))
    except LogUnavailable:
        raise SystemExit(UNSERVED) from None


def evaluate_job(log: Log, job: Job, step: Callable[[], None]) -> EvaluationDone:
    """Return the results of an evaluation, or why there are none; `step` is called now and then."""
    # These take seconds to import, and only this process needs them.
    from rbmle.service.exports.evaluations import judge_policies, score_features

    try:
        if job.asked.is_importance:
            return EvaluationDone(asked=job.seq, scores=score_features(log, job.asked, step))
        return EvaluationDone(asked=job.seq, estimates=judge_policies(log, job.asked, step))
    except LogUnavailable:
        raise
    except RBMLEError as error:
        return EvaluationDone(asked=job.seq, problem=str(error))


def finish(log: Log, done: EvaluationDone) -> None:
    """Write the results, unless another process has."""
    with suppress(DuplicateRequest):
        log.append([row_of(done, EVALUATIONS, clock.now(), f"evaluated:{done.asked}")])
