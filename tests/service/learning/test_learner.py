"""The learner: its lease, its standby, and the passing of time."""

from datetime import timedelta
from pathlib import Path

import msgspec

from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.learner import LogLearner
from rbmle.service.learning.report import Report
from rbmle.service.learning.standing_by import REPORT
from rbmle.service.log.opening import LOG_FILE, open_log, open_publications
from tests.services import (
    Service,
    busy,
    learned,
    offer,
    rank,
    running,
    small_start,
    wait_until,
)


def test_two_services_in_one_folder_are_one(tmp_path: Path) -> None:
    told: list[str] = []
    with (
        running(small_start(tmp_path)) as first,
        Service(small_start(tmp_path), notify=told.append) as second,
    ):
        wait_until(lambda: second.problem is None)
        busy(first, 4)
        answer = rank(second, offer("a", "b", event="of the second"))
        assert rank(first, offer("a", "b")).event != answer.event
        found = first.event("of the second")
        assert found is not None
        assert found.answer == answer
        wait_until(lambda: first.fold.seq == second.fold.seq == first.log.last())
        assert first.export_model() == second.export_model()
        assert (first.learner.is_leading, second.learner.is_leading) == (True, False)
        first.learner.stop()
        wait_until(lambda: second.learner.is_leading)
        assert told == ["this learner has the lease now, and publishes"]
        busy(second, 4)
        learned(second)
        wait_until(lambda: first.published is not None and first.published.seq >= second.fold.seq)


def test_time_passes_without_any_call(tmp_path: Path) -> None:
    soon = ServiceConfiguration(reward_wait_time=timedelta(seconds=5), default_reward=-1.0)
    with running(small_start(tmp_path, configuration=soon)) as service:
        rank(service, offer("a", "b"))
        bandit = service.fold.bandit
        assert bandit is not None
        wait_until(lambda: bandit.round == 1)
        assert service.fold.joiner.counts.defaulted == 1


def test_reported_counts_do_not_fall_while_a_new_learner_catches_up(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 40)
        learned(service)
        wait_until(lambda: service.report.counted == service.log.last())
        before = service.report
    for checkpoint in tmp_path.glob("checkpoint-*"):
        checkpoint.unlink()  # so that the next one begins at the first record
    log = open_log(str(tmp_path / LOG_FILE))
    publications = open_publications(str(tmp_path / LOG_FILE))
    learner = LogLearner(log, publications, small_start(tmp_path), notify=lambda message: None)
    learner.prepare()
    decided = []
    while learner.fold.seq < log.last():
        learner.fold.apply(next(log.read(learner.fold.seq, 1)))
        learner._report()
        found = publications.newer(REPORT, None)
        assert found is not None
        report = msgspec.msgpack.decode(found[1], type=Report)
        assert report.seq == learner.fold.seq
        decided.append(report.counts.decided)
    assert decided[0] == before.counts.decided == 40
    assert decided == sorted(decided)
    learner._lease.release()
    log.close()
