"""Checkpoints: the log gives the same to the byte, and what does not fit is passed over."""

import io
import os
import stat
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rbmle.features import Hashing
from rbmle.service.learner.checkpoints import Checkpoints, check_newest, read
from rbmle.service.log import LOG_FILE, open_log
from rbmle.service.model.published import initial_model
from rbmle.service.model.settings import ModelSettings, default_policy, save_bytes
from rbmle.service.settings import BITS
from rbmle.service.statistics.summary import Statistics
from tests.services import Service, busy, learned, offer, rank, running, small_start, wait_until


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
        assert service.statistics.summary().decisions == 60


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


def replace_in_zip(content: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a ZIP archive with one entry changed."""
    after = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(after, "w") as target:
        for entry in source.namelist():
            old = source.read(entry)
            target.writestr(entry, change(old) if entry == name else old)
    return after.getvalue()


def test_a_checkpoint_may_have_earlier_names_of_classes(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 9)
        learned(service)
    (path,) = Checkpoints(tmp_path).paths()
    now, earlier = b'"rbmle.likelihoods.Gaussian"', b'"rbmle.likelihoods.Gaussian"'

    def rename(bandit: bytes) -> bytes:
        renamed = replace_in_zip(bandit, "manifest.json", lambda m: m.replace(now, earlier))
        assert renamed != bandit
        return renamed

    path.write_bytes(replace_in_zip(path.read_bytes(), "bandit.rbmle", rename))
    log = open_log(str(tmp_path / LOG_FILE), is_read_only=True)
    assert check_newest(log, tmp_path) == []
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
            modes = {}
            for path in folder.iterdir():
                with suppress(FileNotFoundError):  # one that was written aside, and renamed
                    modes[path.name] = stat.S_IMODE(path.stat().st_mode)
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}, modes


def test_a_checkpoint_takes_little_memory(tmp_path: Path) -> None:
    """The learner has 24 MiB of weights; neither they nor what is written of them are held twice."""
    start = small_start(tmp_path, default_policy(), featuriser=Hashing(bits=BITS, is_scaled=True))
    with running(start) as service:
        busy(service, 30)
        learned(service)
        fold = service.fold
        assert isinstance(fold.model, ModelSettings)
        initial_model(fold.model)  # which the learner has made for what it publishes
        tracemalloc.start()
        try:
            path = Checkpoints(tmp_path).save(fold, Statistics())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert fold.bandit is not None
        assert read(path)[1] == save_bytes(fold.bandit)
    assert peak < 8 * 2**20
