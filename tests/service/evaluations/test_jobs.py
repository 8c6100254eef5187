"""What a log knows of evaluations."""

from rbmle.service.evaluations.jobs import jobs_of
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import EvaluationDeleted, EvaluationDone
from tests.service.evaluations.samples import ask, asked


def test_an_evaluation_is_asked_done_and_deleted() -> None:
    log = MemoryLog()
    assert jobs_of(log) == []
    seq = ask(log, asked()).seq
    (job,) = jobs_of(log)
    assert (job.seq, job.asked, job.done) == (seq, asked(), None)
    ask(log, EvaluationDone(asked=seq, problem="none"))
    assert jobs_of(log)[0].done == EvaluationDone(asked=seq, problem="none")
    ask(log, EvaluationDeleted(asked=seq))
    assert jobs_of(log) == []


def test_what_is_found_after_it_was_deleted_is_not_that_of_the_next() -> None:
    log = MemoryLog()
    first = ask(log, asked()).seq
    ask(log, EvaluationDeleted(asked=first))
    ask(log, asked())
    ask(log, EvaluationDone(asked=first))
    (job,) = jobs_of(log)
    assert job.seq != first
    assert job.done is None
