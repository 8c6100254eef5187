"""The learner: its lease, its standby, and the passing of time."""

from datetime import timedelta
from pathlib import Path

from rbmle.service.configuration import ServiceConfiguration
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
