"""The evaluations that a log knows of, and how far each is."""

from dataclasses import dataclass

from rbmle.service.log.base import Log
from rbmle.service.log.records import (
    EVALUATIONS,
    EvaluationAsked,
    EvaluationDeleted,
    EvaluationDone,
    decoded,
)


@dataclass(slots=True, kw_only=True)
class Job:
    """What was asked, and what was found; None: nothing yet."""

    seq: int
    created: int  # milliseconds
    asked: EvaluationAsked
    done: EvaluationDone | None = None


def jobs_of(log: Log) -> list[Job]:
    """Return all evaluations that are not deleted, the oldest first."""
    jobs: dict[int, Job] = {}
    for stored in log.of_event(EVALUATIONS):
        match decoded(stored.row.kind, stored.row.payload):
            case EvaluationAsked() as asked:
                jobs[stored.seq] = Job(seq=stored.seq, created=stored.row.time, asked=asked)
            case EvaluationDone() as done if done.asked in jobs:
                jobs[done.asked].done = done
            case EvaluationDeleted(asked=seq):
                jobs.pop(seq, None)
            case _:  # of one that was deleted meanwhile
                pass
    return list(jobs.values())
