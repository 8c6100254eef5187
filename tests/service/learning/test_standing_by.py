"""A learner that waits for the lease, what it does meanwhile (nothing), and what is left for it to do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from rbmle.service.learning.checkpoints import Checkpoints
from rbmle.service.learning.learner import LogLearner
from rbmle.service.learning.standing_by import REPORT
from rbmle.service.log.opening import LOG_FILE, open_log, open_publications
from tests.services import PATIENCE, learned, offer, rank, reward, running, small_start, wait_until


@contextmanager
def standing_by(folder: Path, is_spare: bool) -> Iterator[LogLearner]:
    """Yield a second learner beside a service's own."""
    address = str(folder / LOG_FILE)
    log, publications = open_log(address), open_publications(address)
    learner = LogLearner(log, publications, small_start(folder), notify=lambda message: None)

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
            service.learner.publications.put(REPORT, msgspec.msgpack.encode(told))
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


def test_much_that_was_learned_is_saved_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbmle.service.learning.learner.LEARNED_SECONDS", 0.0)
    with running(small_start(tmp_path, checkpoint_seconds=1e6)) as service:
        rank(service, offer("a", "b", event="e"))
        reward(service, "e", 1.0)
        learned(service)
        wait_until(Checkpoints(tmp_path).paths)
