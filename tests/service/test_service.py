"""The service without its network: what survives a stop, and that the log alone gives the same model."""

import io
import os
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rbmle import Bandit
from rbmle.core.errors import FileError, SettingError
from rbmle.features import Hashing
from rbmle.policies.specification import policy_with
from rbmle.service.configuration import ServiceConfiguration, Settle
from rbmle.service.deciding.requests import ActivateRequest
from rbmle.service.learning.checkpoints import Checkpoints, check_newest
from rbmle.service.log.opening import LOG_FILE, open_log
from tests.services import (
    PATIENCE,
    SMALL,
    Service,
    learned,
    offer,
    rank,
    reward,
    running,
    small_start,
    wait_until,
)


def busy(service: Service, events: int) -> None:
    """Decide and reward, and leave some events without a reward."""
    for i in range(events):
        answer = rank(service, offer("a", "b", "c", who="uvw"[i % 3]))
        if i % 4:
            reward(service, answer.event, float(answer.chosen == "b"))


@pytest.mark.parametrize(
    "policy", ["neural-rbmle-pc", "neural-ucb", "neural-rbmle-ga", "neural-ts"]
)
def test_the_log_alone_gives_the_same_model_to_the_byte(policy: str, tmp_path: Path) -> None:
    with running(small_start(tmp_path, policy)) as service:
        busy(service, 60)
        learned(service)
        live = service.export_model()
    for path in Checkpoints(tmp_path).paths():
        path.unlink()
    with running(small_start(tmp_path, policy)) as service:
        learned(service)
        assert service.export_model() == live
        assert service.statistics.decisions == 60


def test_a_checkpoint_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 30)
        learned(service)
        live, counts = service.export_model(), service.fold.joiner.counts
    assert len(Checkpoints(tmp_path).paths()) == 1
    with running(small_start(tmp_path)) as service:
        assert service.fold.seq == service.writer.last
        assert service.export_model() == live
        assert service.fold.joiner.counts == counts
        busy(service, 10)


def test_a_checkpoint_equals_what_the_log_gives(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 30)
        learned(service)
    log = open_log(str(tmp_path / LOG_FILE), is_read_only=True)
    assert check_newest(log, tmp_path) == []
    (path,) = Checkpoints(tmp_path).paths()
    path.write_bytes(path.read_bytes()[:-100])
    (problem,) = check_newest(log, tmp_path)
    assert "cannot be read" in problem
    log.close()


def test_damaged_and_foreign_checkpoints_are_passed_over(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, seed in ((here, 1), (there, 2)):
        with running(small_start(folder, seed=seed)) as service:
            busy(service, 9)
            learned(service)
            live = service.export_model()
    (own,), (foreign,) = Checkpoints(here).paths(), Checkpoints(there).paths()
    (there / "checkpoint-9999999999999999.rbmle").write_bytes(own.read_bytes())
    foreign.write_bytes(b"nonsense")
    told: list[str] = []
    with Service(small_start(there, seed=2), told.append) as service:
        wait_until(lambda: service.problem is None)
        assert service.export_model() == live
    assert ["another log" in line or "cannot be read" in line for line in told] == [True, True]


def test_another_model_in_an_old_log_has_to_be_asked_for(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 8)
        learned(service)
    with pytest.raises(SettingError, match="--new-model"):
        Service(small_start(tmp_path, "neural-ucb"), notify=print)
    other = small_start(tmp_path, "neural-ucb", is_new_model=True)
    with running(other) as service:
        assert type(service.model.policy).__name__ == "NeuralUCB"
        learned(service)
        assert service.status().observations == 0
        busy(service, 8)
        learned(service)
        assert service.status().observations == 6


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


def test_an_event_tells_what_became_of_it(tmp_path: Path) -> None:
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


def test_time_passes_without_any_call(tmp_path: Path) -> None:
    soon = ServiceConfiguration(reward_wait_time=timedelta(seconds=5), default_reward=-1.0)
    with running(small_start(tmp_path, configuration=soon)) as service:
        rank(service, offer("a", "b"))
        bandit = service.fold.bandit
        assert bandit is not None
        wait_until(lambda: bandit.round == 1)
        assert service.fold.joiner.counts.defaulted == 1


def test_what_is_kept_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    before = os.umask(0)
    try:
        with running(small_start(folder)) as service:
            rank(service, offer("a", "b"))
            learned(service)
        old = next(folder.glob("checkpoint-*.rbmle"))
        old.chmod(0o644)  # as an earlier version left it
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with running(small_start(folder)):
            assert stat.S_IMODE(old.stat().st_mode) == 0o600
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}, modes


def test_the_configuration_of_a_start_is_for_the_first_one(tmp_path: Path) -> None:
    first = ServiceConfiguration(exploration=0.1, reward_wait_time=timedelta(minutes=1))
    start = small_start(tmp_path, configuration=first, configured=frozenset({"exploration"}))
    said: list[str] = []
    with Service(start, notify=said.append) as service:
        wait_until(lambda: service.problem is None)
        assert service.decider.configuration == first
        changed = replace(first, exploration=0.4, default_reward=-1.0)
        service.configure(changed).result(PATIENCE)
    assert said == []
    with Service(start, notify=said.append) as service:
        wait_until(lambda: service.problem is None)
        assert service.decider.configuration == changed
    (line,) = said
    assert "`exploration` is 0.4 there, and 0.1 in the file" in line
    assert "PATCH /v1/configuration" in line
    assert "default_reward" not in line  # the file does not have it
    with Service(replace(start, configuration=changed), notify=said.append):
        assert len(said) == 1
