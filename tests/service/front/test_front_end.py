"""What a front end answers of events, and how its model is changed."""

import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rbmle import Bandit, NeuralUCB
from rbmle.core.errors import FileError
from rbmle.features import Hashing
from rbmle.policies.registry import policy_with
from rbmle.service.front.requests import ActivateRequest
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.services import (
    PATIENCE,
    SMALL,
    busy,
    learned,
    offer,
    rank,
    reward,
    running,
    small_start,
    wait_until,
)


def test_models_are_reset_exported_and_imported(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 12)
        learned(service)
        exported = service.export_model()
        assert Bandit.load(io.BytesIO(exported)).round == 9
        service.reset().result(PATIENCE)
        wait_until(lambda: service.status().observations == 0)
        service.import_model(exported).result(PATIENCE)
        wait_until(lambda: service.status().observations == 9)
        assert service.export_model() == exported
        with pytest.raises(FileError):
            service.import_model(b"nonsense")
    narrow = small_start(tmp_path / "other", featuriser=Hashing(bits=5))
    with running(narrow) as other, pytest.raises(FileError, match="32 per arm"):
        other.import_model(exported)


def test_a_policy_is_changed_while_it_runs(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        model = service.model
        other = type(model)(policy=policy_with("neural-ucb", SMALL), featuriser=model.featuriser)
        service.remodel(other).result(PATIENCE)
        wait_until(lambda: service.model == other)
        busy(service, 4)
        learned(service)
        bandit = service.fold.bandit
        assert bandit is not None
        assert isinstance(bandit.policy, NeuralUCB)
        assert service.status().observations == 3


def test_the_backlog_is_never_negative_though_a_model_may_be_newer_than_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 4)
        learned(service)
        newest = service.published
        assert newest is not None
        ahead = replace(newest, seq=service.report.seq + 1)
        monkeypatch.setattr(type(service), "published", ahead)
        status = service.status()
    assert (status.backlog, status.records) == (0, ahead.seq)


def test_an_event_has_its_answer_and_rewards(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        assert service.event("nobody") is None
        answer = rank(service, offer("a", "b", event="e/1", deferred=True))
        found = service.event("e/1")
        assert found is not None
        assert (found.answer, found.is_active, found.is_closed) == (answer, False, False)
        reward(service, "e/1", 0.5)
        service.activate(ActivateRequest(event="e/1")).result(PATIENCE)
        found = service.event("e/1")
        assert found is not None
        assert (found.is_active, found.rewards) == (True, {"": 0.5})


@pytest.mark.parametrize("settle", Settle)
def test_a_pending_event_has_its_reward_so_far_and_its_deadline(
    settle: Settle, tmp_path: Path
) -> None:
    soon = ServiceConfiguration(reward_wait_time=timedelta(seconds=5), settle=settle)
    with running(small_start(tmp_path, configuration=soon)) as service:
        rank(service, offer("a", "b", event="e"))
        found = service.event("e")
        assert found is not None
        assert found.deadline is not None
        assert not found.is_closed
        waits = found.deadline - found.time
        assert timedelta(seconds=5) <= waits < timedelta(seconds=6)
        reward(service, "e", 0.5)
        after = service.event("e")
        assert after is not None
        is_settled = settle is Settle.ON_REWARD
        assert (after.rewards, after.is_closed) == ({"": 0.5}, is_settled)
        assert after.deadline == (None if is_settled else found.deadline)
        assert service.fold.joiner.counts.joined <= is_settled
        wait_until(lambda: service.fold.joiner.counts.joined == 1)
        last = service.event("e")
        assert last is not None
        assert (last.rewards, last.is_closed, last.deadline) == ({"": 0.5}, True, None)


def test_daily_counts_survive_a_restart(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        rank(service, offer("a", "b"))
        learned(service)
    with running(small_start(tmp_path)) as service:
        wait_until(lambda: bool(service.days.buckets))
        (tally,) = service.days.buckets.values()
        assert tally.decisions == 1
