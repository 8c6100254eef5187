"""Evaluations in processes of their own."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rbmle.service.exports import evaluator as running
from rbmle.service.exports.evaluator import ATTEMPTS, Evaluator, evaluate_job, finish, jobs_of
from rbmle.service.log import Log, open_log
from rbmle.service.log.memory import MemoryLog
from rbmle.service.log.records import EvaluationDeleted, EvaluationDone
from tests.service.exports.evaluation_samples import ask, asked, day
from tests.services import wait_until


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(open_log(str(tmp_path / "log.db"))) as log:
        day(60, log)
        yield log


def test_what_is_asked_is_done_in_another_process(log: Log, tmp_path: Path) -> None:
    ask(log, asked())
    ask(log, asked(id="two", start=1, end=2))
    ask(log, asked(id="three", is_importance=True))
    told: list[str] = []
    evaluator = Evaluator(str(tmp_path / "log.db"), may_run=lambda: True, notify=told.append)
    evaluator.start()
    try:
        wait_until(lambda: all(job.done for job in jobs_of(log)))
        wait_until(lambda: len(told) > 1)
    finally:
        evaluator.stop()
    one, two, three = (job.done for job in jobs_of(log))
    assert one is not None
    assert [estimate.name for estimate in one.estimates] == ["Online", "Baseline", "Random"]
    assert two is not None
    assert "no decision of this time" in two.problem
    assert "FEW ROUNDS" in told[0]
    assert told[-1] == f"evaluation 'two': {two.problem}"
    assert three is not None
    assert three.scores[0].name == "time"


def test_a_standby_runs_nothing(log: Log, tmp_path: Path) -> None:
    ask(log, asked())
    looks = threading.Semaphore(0)

    def may_run() -> bool:
        looks.release()
        return False

    evaluator = Evaluator(str(tmp_path / "log.db"), may_run)
    evaluator.start()
    for _ in range(3):
        looks.acquire()
    evaluator.stop()
    assert jobs_of(log)[0].done is None


def test_one_that_was_interrupted_is_begun_again(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(log, asked())
    monkeypatch.setattr(running, "_run", _stay)
    first = Evaluator(str(tmp_path / "log.db"), may_run=lambda: True)
    first.start()
    wait_until(lambda: first.running is not None)
    first.stop()
    assert jobs_of(log)[0].done is None
    monkeypatch.undo()
    second = Evaluator(str(tmp_path / "log.db"), may_run=lambda: True)
    second.start()
    wait_until(lambda: jobs_of(log)[0].done is not None)
    second.stop()


def test_one_that_is_deleted_ends(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = ask(log, asked()).seq
    monkeypatch.setattr(running, "_run", _stay)
    evaluator = Evaluator(str(tmp_path / "log.db"), may_run=lambda: True)
    evaluator.start()
    wait_until(lambda: evaluator.running is not None)
    ask(log, EvaluationDeleted(asked=seq))
    wait_until(lambda: evaluator.running is None)
    evaluator.stop()
    assert jobs_of(log) == []


def test_one_whose_process_ends_without_a_word_is_given_up(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(log, asked())
    monkeypatch.setattr(running, "_run", _die)
    evaluator = Evaluator(str(tmp_path / "log.db"), may_run=lambda: True)
    evaluator.start()
    wait_until(lambda: jobs_of(log)[0].done is not None)
    evaluator.stop()
    done = jobs_of(log)[0].done
    assert done is not None
    assert f"ended {ATTEMPTS} times" in done.problem


def test_the_first_who_finishes_counts() -> None:
    log = MemoryLog()
    seq = ask(log, asked()).seq
    finish(log, EvaluationDone(asked=seq, problem="first"))
    finish(log, EvaluationDone(asked=seq, problem="second"))
    done = jobs_of(log)[0].done
    assert done is not None
    assert done.problem == "first"


def test_one_that_finds_nothing_says_why() -> None:
    log = day(30)
    seq = ask(log, asked(start=1, end=2)).seq
    (job,) = jobs_of(log)
    done = evaluate_job(log, job, lambda: None)
    assert (done.asked, done.estimates) == (seq, [])
    assert done.problem.endswith("or wait until its events are settled")


def _stay(address: str, seq: int) -> None:
    """Go on for ever."""
    threading.Event().wait()


def _die(address: str, seq: int) -> None:
    """End as a process does that is killed."""
    raise SystemExit(9)


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
