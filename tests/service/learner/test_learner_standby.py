"""A learner that waits for the lease, what it does meanwhile (nothing), and what is left for it to do."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import msgspec
import pytest

from rbmle.service.learner.checkpoints import Checkpoints
from rbmle.service.learner.learner import LogLearner, name_of
from rbmle.service.log import LOG_FILE, open_log, open_publications
from rbmle.service.log.publications import HEARTBEAT, REPORT, FilePublications
from rbmle.service.log.records import Ticked
from rbmle.service.model.heartbeat import Heartbeat, HeartbeatSender, HeartbeatWatch
from tests.services import PATIENCE, learned, offer, rank, reward, running, small_start, wait_until


@contextmanager
def standing_by(
    folder: Path, is_spare: bool, told: list[str] | None = None
) -> Iterator[LogLearner]:
    """Yield a second learner beside a service's own."""
    address = str(folder / LOG_FILE)
    log, publications = open_log(address), open_publications(address)
    notify = (lambda message: None) if told is None else told.append
    learner = LogLearner(log, publications, small_start(folder), notify=notify)

    def work() -> None:
        learner.stand_by(is_spare=is_spare)
        learner.prepare()
        learner.run()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield learner
    finally:
        learner.stop()
        thread.join(PATIENCE)
        log.close()
    assert not thread.is_alive()


def test_a_spare_learns_nothing_while_another_leads_and_all_of_it_after(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service, standing_by(tmp_path, is_spare=True) as spare:
        rank(service, offer("a", "b", event="e"))
        reward(service, "e", 1.0)
        learned(service)
        assert (spare.is_leading, spare.fold.seq) == (False, 0)
        service.learner.stop()
        wait_until(lambda: spare.is_leading)
        rank(service, offer("a", "b", event="f"))
        reward(service, "f", 1.0)
        wait_until(lambda: spare.fold.bandit is not None and spare.fold.bandit.round == 2)


def test_one_that_is_no_spare_folds_along_where_another_machine_leads(tmp_path: Path) -> None:
    with (
        running(small_start(tmp_path)) as service,
        standing_by(tmp_path, is_spare=False) as standby,
    ):
        rank(service, offer("a", "b", event="e"))
        learned(service)
        assert standby.fold.seq == 0

        def is_folding() -> bool:  # a report of the service itself may come between
            told = msgspec.structs.replace(service.report, learner="elsewhere/1")
            learner = service.learner
            learner.publications.put(REPORT, msgspec.msgpack.encode(told), learner._lease.token)
            return standby.fold.seq == service.fold.seq

        wait_until(is_folding)
        assert not standby.is_leading


def test_a_spare_leaves_a_free_lease_to_one_that_has_folded_along(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service, standing_by(tmp_path, is_spare=True) as spare:
        address = str(tmp_path / LOG_FILE)
        log, publications = open_log(address), open_publications(address)
        hot = LogLearner(log, publications, small_start(tmp_path), notify=lambda message: None)
        hot.prepare()
        thread = threading.Thread(target=hot.run)
        thread.start()
        service.learner.stop()
        wait_until(lambda: hot.is_leading)
        assert not spare.is_leading
        hot.stop()
        thread.join(PATIENCE)
        log.close()
        wait_until(lambda: spare.is_leading)


@contextmanager
def hanging(learner: LogLearner) -> Iterator[None]:
    """Let a learner neither work nor beat, as if its process was stopped; in the end it goes on."""
    goes_on, is_hanging = threading.Event(), threading.Event()
    learn = learner._learn

    def hang() -> bool:
        is_hanging.set()
        goes_on.wait(PATIENCE)
        return learn()

    learner._learn = hang  # type: ignore[method-assign]  # that is the fault
    try:
        learner._heart.stop()
        assert is_hanging.wait(PATIENCE)
        learner._learn = learn  # type: ignore[method-assign]
        yield
    finally:
        goes_on.set()


def test_a_spare_takes_over_from_a_learner_that_hangs_and_that_one_writes_nothing_more(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    with running(small_start(tmp_path)) as service, standing_by(tmp_path, True, told) as spare:
        wait_until(lambda: service.is_learner_up)
        with hanging(service.learner):
            rank(service, offer("a", "b", event="e"))
            reward(service, "e", 1.0)
            wait_until(lambda: spare.is_leading)
            assert service.learner.is_leading  # it does not know better
            wait_until(lambda: spare.fold.bandit is not None and spare.fold.bandit.round == 1)
            wait_until(lambda: service.report.learner == name_of(tmp_path))
            message = re.compile(r"has shown no sign of life for \d+ s; this one takes over")
            assert any(map(message.search, told))
            hung = service.learner
            token = hung._lease.token
            assert spare._lease.token > token
            before = service.log.last()
            assert not hung._append(Ticked(), 0)
            assert service.log.last() == before
            assert not hung.is_leading  # now it does
        rank(service, offer("a", "b", event="f"))
        reward(service, "f", 1.0)
        wait_until(lambda: spare.fold.bandit is not None and spare.fold.bandit.round == 2)
        wait_until(lambda: hung.fold.seq == spare.fold.seq)
        assert (hung.is_leading, spare.is_leading) == (False, True)
        learned(service)


def test_a_learner_that_was_held_up_itself_does_not_judge_the_other(tmp_path: Path) -> None:
    now = 0.0
    publications = FilePublications(tmp_path)
    watch = HeartbeatWatch(publications, lambda: now)
    publications.put(
        HEARTBEAT, msgspec.msgpack.encode(Heartbeat(token=3, count=1, learner="it")), 3
    )
    watch.look()
    assert (watch.silent_token(), watch.has_changed) == (None, False)
    for _ in range(6):
        now += 1.0
        watch.look()
    assert watch.silent_token() == 3
    now += 60.0  # nobody looked: this process was stopped, and perhaps the other one as well
    watch.look()
    assert watch.silent_token() is None
    publications.put(
        HEARTBEAT, msgspec.msgpack.encode(Heartbeat(token=3, count=2, learner="it")), 3
    )
    watch.look()
    assert watch.has_changed


def test_a_learner_that_makes_no_progress_does_not_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbmle.service.model.heartbeat.BEAT_SECONDS", 0.01)
    monkeypatch.setattr("rbmle.service.model.heartbeat.STUCK_SECONDS", 0.2)
    steps = iter(range(10))
    heart = HeartbeatSender(FilePublications(tmp_path), "it", lambda: next(steps, None))
    watch = HeartbeatWatch(FilePublications(tmp_path))
    heart.start(lambda: 1)
    sleep(1.0)
    watch.look()
    last = watch.beat
    sleep(0.2)
    watch.look()
    heart.stop()
    assert last is not None
    assert last.count > 5
    assert watch.beat == last


def test_much_that_was_learned_is_saved_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbmle.service.learner.learner.LEARNED_SECONDS", 0.0)
    with running(small_start(tmp_path, checkpoint_seconds=1e6)) as service:
        rank(service, offer("a", "b", event="e"))
        reward(service, "e", 1.0)
        learned(service)
        wait_until(Checkpoints(tmp_path).paths)
        assert 0 < Checkpoints(tmp_path).newest <= service.writer.last
