"""One file, written whole or not at all; damaged and foreign files are refused."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rbmle import (
    Bandit,
    BootstrappedNN,
    LinUCB,
    Network,
    NeuralRBMLEGA,
    NeuralUCB,
    Regression,
    Replay,
)
from rbmle.core.errors import FileError
from rbmle.core.saving import LARGE, write
from tests.samples import Poisson, bytes_of


def played(bandit: Bandit, rounds: range) -> Bandit:
    for t in rounds:
        decision = bandit.decide(np.random.default_rng(t).normal(size=3))
        bandit.learn(decision, float(decision.arm == "a"))
    return bandit


def test_ids_retired_arms_and_clocks_come_back(tmp_path: Path) -> None:
    bandit = Bandit(LinUCB(), arms=["a", 2, "é/x"], features=3, seed=9, floor=0.1, draws=7)
    played(bandit, range(5))
    bandit.add_arm("late")
    bandit.retire_arm(2)
    bandit.save(tmp_path / "b.rbmle")
    loaded = Bandit.load(tmp_path / "b.rbmle")
    assert loaded.arms == bandit.arms
    assert (loaded.seed, loaded.floor, loaded.draws) == (9, 0.1, 7)
    assert (loaded.round, loaded.decisions) == (bandit.round, bandit.decisions)
    assert loaded.policy == bandit.policy
    played(bandit, range(5, 9))
    played(loaded, range(5, 9))
    assert bytes_of(loaded) == bytes_of(bandit)


def test_open_arms_come_back(tmp_path: Path) -> None:
    bandit = Bandit(NeuralUCB(), features=2, encoding="per-arm")
    bandit.learn(bandit.decide(np.eye(2)), 1.0)
    bandit.save(str(tmp_path / "b.rbmle"))
    loaded = Bandit.load(str(tmp_path / "b.rbmle"))
    assert loaded.arms is None
    assert loaded.encoding == "per-arm"
    assert bytes_of(loaded) == bytes_of(bandit)


def test_an_average_continues_between_two_of_its_points(tmp_path: Path) -> None:
    """An average over all rounds takes a point in round 34, and none in round 35."""
    model = Regression(network=Network(width=4), training=Replay(steps=2, average=1.0))
    bandit = played(Bandit(NeuralUCB(model=model), arms=["a", "b"], features=3), range(35))
    bandit.save(tmp_path / "b.rbmle")
    loaded = Bandit.load(tmp_path / "b.rbmle")
    assert bytes_of(played(loaded, range(35, 40))) == bytes_of(played(bandit, range(35, 40)))


def test_the_file_is_a_zip_of_arrays_and_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "b.rbmle"
    Bandit(NeuralRBMLEGA(), arms=2, features=3).save(path)
    with zipfile.ZipFile(path) as zipped:
        assert all(name.endswith((".npy", ".json")) for name in zipped.namelist())
        manifest = json.loads(zipped.read("manifest.json"))
    assert (manifest["format"], manifest["version"]) == ("rbmle bandit", 2)
    assert manifest["policy"]["repr"] == repr(NeuralRBMLEGA())


@pytest.mark.parametrize("seed", [3, 4])
def test_a_saved_bandit_does_not_depend_on_the_untaught_one_at_hand(seed: int) -> None:
    features, network = LARGE // 8, Network(width=8)
    model = Regression(network=network)
    bandit, other = (
        Bandit(NeuralUCB(model=model), features=features, encoding="per-arm", seed=number)
        for number in (3, seed)
    )
    bandit.learn(bandit.decide(np.eye(2, features)), 1.0)
    file = io.BytesIO()
    write(bandit, file, other.snapshot())
    file.seek(0)
    assert bytes_of(Bandit.load(file)) == bytes_of(bandit)


def test_any_flipped_byte_is_detected_or_harmless(tmp_path: Path) -> None:
    """At 400 places of the file: either it is refused, or what is loaded is what was saved."""
    bandit = played(Bandit(NeuralUCB(), arms=["a", "b"], features=3), range(3))
    path = tmp_path / "b.rbmle"
    bandit.save(path)
    whole = path.read_bytes()
    refused = 0
    for at in np.random.default_rng(0).integers(len(whole), size=400):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            loaded = Bandit.load(path)
        except FileError:
            refused += 1
        else:
            assert bytes_of(loaded) == bytes_of(bandit)
    assert refused > 350


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_cut_file_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "b.rbmle"
    Bandit(LinUCB(), arms=2, features=3).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileError, match="damaged"):
        Bandit.load(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no bandit here")
    with pytest.raises(FileError, match="is not a saved bandit"):
        Bandit.load(text)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as zipped:
        zipped.writestr("manifest.json", json.dumps({"format": "something else"}))
    with pytest.raises(FileError, match="is not a saved bandit"):
        Bandit.load(other)
    with pytest.raises(FileNotFoundError):
        Bandit.load(tmp_path / "missing")


def test_an_earlier_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.rbmle"
    Bandit(LinUCB(), arms=2, features=2).save(path)
    edit(path, lambda manifest: manifest | {"version": 1})
    with pytest.raises(FileError, match=r"version 1.*learn again from the log"):
        Bandit.load(path)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.rbmle"
    Bandit(LinUCB(), arms=2, features=3).save(path)
    edit(path, lambda manifest: manifest | {"version": 99})
    with pytest.raises(FileError, match=r"version 99.*later rbmle"):
        Bandit.load(path)


def test_a_file_cannot_name_a_class_of_another_package(tmp_path: Path) -> None:
    path = tmp_path / "b.rbmle"
    Bandit(LinUCB(), arms=2, features=3).save(path)
    for name in ("subprocess.Popen", "os.system", "rbmle.core.saving.load"):
        edit(path, lambda manifest, name=name: manifest | {"policy": {"class": name, "with": {}}})
        with pytest.raises(FileError):
            Bandit.load(path)


def test_a_users_own_part_has_to_be_passed_to_load(tmp_path: Path) -> None:
    path = tmp_path / "b.rbmle"
    policy = NeuralUCB(model=Regression(likelihood=Poisson()))
    Bandit(policy, arms=["a", "b"], features=3).save(path)
    with pytest.raises(FileError, match=r"Poisson.*policy=…"):
        Bandit.load(path)
    assert Bandit.load(path, policy=policy).policy == policy
    with pytest.raises(FileError, match="was saved with the policy"):
        Bandit.load(path, policy=NeuralUCB())


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.rbmle"
    bandit = Bandit(BootstrappedNN(networks=2), arms=2, features=3)
    bandit.save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        bandit.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["b.rbmle"]


def edit(path: Path, change) -> None:  # type: ignore[no-untyped-def]  # manifest to manifest
    """Change the manifest of a saved bandit."""
    with zipfile.ZipFile(path) as zipped:
        entries = {name: zipped.read(name) for name in zipped.namelist()}
    entries["manifest.json"] = json.dumps(change(json.loads(entries["manifest.json"]))).encode()
    with zipfile.ZipFile(path, "w") as zipped:
        for name, content in entries.items():
            zipped.writestr(name, content)
