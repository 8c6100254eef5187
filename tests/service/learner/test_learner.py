"""The learner: its lease, its standby, and the passing of time."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from rbmle import Bandit, LinUCB, Ridge
from rbmle.core.encoding import stack
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.http.metrics import Metrics
from rbmle.service.learner.learner import LogLearner
from rbmle.service.log import LOG_FILE, open_log, open_publications
from rbmle.service.log.publications import MODEL, REPORT, FilePublications
from rbmle.service.model.published import seq_of
from rbmle.service.model.report import Report, reset_notices
from rbmle.service.settings import ServiceConfiguration
from tests.service.http.test_metrics import figures
from tests.services import (
    PATIENCE,
    Service,
    busy,
    learned,
    offer,
    rank,
    reward,
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


def test_a_drift_alarm_is_counted_shown_and_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    policy = LinUCB(model=Ridge(alarm=5.0))
    start = small_start(tmp_path, policy=policy)
    with Service(start, notify=told.append) as service:
        wait_until(lambda: service.problem is None)
        for value in [1.0] * 30 + [0.0] * 6:
            answer = rank(service, offer("a", "b"))
            reward(service, answer.event, value)
        learned(service)
        assert service.report.resets == 1
        assert figures(Metrics(service))["rbmle_model_resets_total"] == 1
        (notice,) = service.notices
        assert (notice.code, notice.level) == ("model-reset", "info")
        assert notice.since is not None
        assert service.fold.bandit is not None
        (event,) = service.fold.bandit.events
        assert notice.since == event.time
        assert f"forgot the {event.forgotten:,} observations" in notice.text
        assert [line for line in told if "drift alarm" in line] == told
        assert len(told) == 1
    with Service(start, notify=told.append) as service:
        wait_until(lambda: service.report.resets == 1)
        assert len(told) == 1


def test_the_notice_of_a_drift_alarm_ends_after_a_week() -> None:
    bandit = Bandit(LinUCB(model=Ridge(alarm=5.0)), features=1, encoding="per-arm")
    contexts = stack([bandit.decide([[1.0]]).context] * 60)
    bandit.learn_all(contexts, [1.0] * 30 + [0.0] * 30, times=[1_000] * 60)
    assert bandit.resets > 0
    week = 7 * 86_400_000
    assert len(reset_notices(bandit, 1_000 + week)) == 1
    assert reset_notices(bandit, 1_001 + week) == []


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


def second_learner(
    folder: Path, told: list[str] | None = None
) -> tuple[LogLearner, FilePublications]:
    """Return a learner of a service that has ended, and what is published."""
    address = str(folder / LOG_FILE)
    log, publications = open_log(address), FilePublications(folder)
    notify = (lambda message: None) if told is None else told.append
    learner = LogLearner(log, publications, small_start(folder), notify=notify)
    learner.prepare()
    return learner, publications


def published_seq(learner: LogLearner, publications: FilePublications) -> int:
    found = publications.newer(MODEL, None)
    assert found is not None
    return seq_of(found[1], learner._origin)


def fold_and_publish(learner: LogLearner) -> None:
    """Take in one record, and publish what is due."""
    learner.fold.apply(next(learner.log.read(learner.fold.seq, 1)))
    learner._due.clear()
    learner._publish_if_due()
    learner._report()


def without_memory(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.unlink()


def test_a_log_that_nobody_has_learned_yet_is_decided_by_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbmle.service.learner.learner.MANY", 0)
    monkeypatch.setattr("rbmle.service.learner.learner.TELL_SECONDS", 0.0)
    with running(small_start(tmp_path)) as service:
        busy(service, 20)
        learned(service)
    without_memory(tmp_path, "checkpoint-*")
    without_memory(tmp_path, "published-*")
    told: list[str] = []
    learner, publications = second_learner(tmp_path, told)
    seqs = [published_seq(learner, publications)]
    last = learner.log.last()
    with FrontEnd(
        open_log(str(tmp_path / LOG_FILE)), FilePublications(tmp_path), tmp_path
    ) as front:
        assert front.problem is None  # before anything is learned
        (draft,) = front.decider.draft([(offer("a", "b"), None, b"")])
        assert sum(ranked.probability for ranked in draft.answer.ranking) == pytest.approx(1)
        assert front.writer.submit([draft.row]).result(PATIENCE) == last + 1
        while learner.fold.seq < last:
            fold_and_publish(learner)
            seqs.append(published_seq(learner, publications))
            if learner.fold.seq == 10:
                wait_until(lambda: front.report.seq == 10)
                assert front.degraded is not None
                assert f"10 of {last + 1} records (" in front.degraded
                assert [notice.code for notice in front.notices] == ["catching-up"]
        wait_until(lambda: front.published is not None and front.published.seq == seqs[-1])
    assert seqs[0] == 0
    assert len(set(seqs)) > 10
    assert seqs == sorted(seqs)
    assert any("records are read (" in line for line in told)
    learner.release()
    learner.log.close()


def test_a_learner_that_begins_again_leaves_the_newest_model_published(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 20)
        learned(service)
    without_memory(tmp_path, "checkpoint-*")
    learner, publications = second_learner(tmp_path)
    before = published_seq(learner, publications)
    while learner.fold.seq < learner.log.last():
        fold_and_publish(learner)
        assert published_seq(learner, publications) == max(before, learner.fold.seq)
    learner.release()
    learner.log.close()


def test_a_learner_publishes_beside_what_a_newer_log_has_left(tmp_path: Path) -> None:
    """The folder had another log, whose fencing tokens were larger."""
    FilePublications(tmp_path).put(MODEL, b"", 17)
    with running(small_start(tmp_path)) as service:
        busy(service, 4)
        learned(service)
        assert service.learner._lease.token > 17
        assert service.learner.is_leading
