"""Evaluations of a log in PostgreSQL, where its server is installed."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from rbmle.service.exports.evaluations import judge_policies, score_features
from rbmle.service.exports.evaluator import Evaluator, jobs_of
from rbmle.service.log import Log
from rbmle.service.log.records import NamedPolicy
from tests.contract.log_server import OnServer
from tests.service.exports.evaluation_samples import ask, asked, day
from tests.services import wait_until

POLICIES = [NamedPolicy(name="lin-ucb")]


@pytest.fixture
def log(on_server: OnServer) -> Iterator[Log]:
    with closing(on_server.open()) as log:
        day(60, log)
        yield log


def test_a_log_in_postgresql_is_judged_as_any_other(log: Log, on_server: OnServer) -> None:
    ask(log, asked(policies=POLICIES))
    ask(log, asked(id="two", is_importance=True))
    with evaluating(on_server.url):
        wait_until(lambda: all(job.done for job in jobs_of(log)))
    one, two = (job.done for job in jobs_of(log))
    assert one is not None
    assert one.estimates == judge_policies(day(60), asked(policies=POLICIES), step=lambda: None)
    assert two is not None
    assert two.scores == score_features(day(60), asked(), step=lambda: None)


def test_an_evaluation_outlives_a_server_that_cannot_be_reached(
    log: Log, on_server: OnServer, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(log, asked(policies=POLICIES))
    with evaluating(on_server.url) as evaluator:
        wait_until(lambda: evaluator.running is not None)
        on_server.wire.cut()
        wait_until(lambda: evaluator.running is None)
        on_server.wire.mend()
        wait_until(lambda: jobs_of(log)[0].done is not None)
    done = jobs_of(log)[0].done
    assert done is not None
    assert not done.problem
    assert [one.name for one in done.estimates] == ["Online", "Baseline", "Random", "lin-ucb"]
    assert "Traceback" not in capfd.readouterr().err


@contextmanager
def evaluating(address: str) -> Iterator[Evaluator]:
    evaluator = Evaluator(address, may_run=lambda: True)
    evaluator.start()
    try:
        yield evaluator
    finally:
        evaluator.stop()
