"""Decision ids are unique across copies of a bandit, and a decision is learned once."""

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, Decision, EpsilonGreedy, LinTS, LinUCB, NeuralUCB
from rbmle.core import state
from rbmle.core.errors import RepeatError, SettingError
from rbmle.core.state import LearnedDecisions, stream_of
from tests.samples import bytes_of


def bandit_with(**settings: Any) -> Bandit:
    return Bandit(LinUCB(), arms=["a", "b"], features=2, seed=3, **settings)


def saved_and_loaded(bandit: Bandit, folder: Path) -> Bandit:
    bandit.save(folder / "b.rbmle")
    return Bandit.load(folder / "b.rbmle")


@pytest.mark.parametrize(
    "duplicate",
    [
        copy,
        deepcopy,
        lambda bandit: pickle.loads(pickle.dumps(bandit)),
        lambda bandit: bandit.snapshot(),
        lambda _: bandit_with(),
    ],
)
def test_a_copy_gives_other_ids_for_the_same_choices(
    duplicate: Callable[[Bandit], Bandit],
) -> None:
    bandit = bandit_with()
    other = duplicate(bandit)
    ours, theirs = ([one.decide([1.0, t]) for t in range(20)] for one in (bandit, other))
    assert [each.arm for each in ours] == [each.arm for each in theirs]
    assert [stream_of(each.id) for each in ours] == [f"3-{t}" for t in range(20)]
    assert not {each.id for each in ours} & {each.id for each in theirs}


def test_a_loaded_bandit_gives_ids_of_its_own(tmp_path: Path) -> None:
    bandit = bandit_with()
    bandit.save(tmp_path / "b.rbmle")
    loaded = [Bandit.load(tmp_path / "b.rbmle") for _ in range(2)]
    assert len({one.decide([1.0, 0.0]).id for one in (bandit, *loaded)}) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_gives_ids_of_its_own() -> None:
    bandit = bandit_with()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        os.write(writing, bandit.decide([1.0, 0.0]).id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    ours = bandit.decide([1.0, 0.0]).id
    assert stream_of(theirs) == stream_of(ours) == "3-0"
    assert theirs != ours


def test_an_id_of_ours_asked_again_gets_the_same_answer() -> None:
    bandit = Bandit(LinTS(exploration=1.0), arms=5, features=2, seed=4)
    for _ in range(20):
        first = bandit.decide([1.0, 1.0])
        again = bandit.decide([1.0, 1.0], id=first.id)
        assert (again.id, again.arm) == (first.id, first.arm)
        np.testing.assert_array_equal(again.indices, first.indices)


def test_positions_of_a_list_have_ids_of_their_own() -> None:
    first, second = bandit_with().rank([1.0, 0.0], 2)
    assert second.id == f"{first.id}/1"


def test_random_choices_of_a_seed_are_those_of_its_streams() -> None:
    """The run is no part of what is drawn: the stream `seed-number` is."""
    bandit = Bandit(EpsilonGreedy(epsilon=0.9), arms=5, features=2, seed=1)
    arms = [bandit.decide([1.0, 1.0]).arm for _ in range(50)]
    assert arms == [bandit.decide([1.0, 1.0], id=f"1-{t}").arm for t in range(50)]


@pytest.mark.parametrize("ids", ["ab", [None, "b"], [1.5, 2.5]])
def test_mistaken_ids_are_refused(ids: Any) -> None:
    with pytest.raises(SettingError, match="id"):
        bandit_with().decide_many(np.eye(2), ids=ids)


# A decision is learned once.


def test_a_decision_learned_again_is_refused_and_changes_nothing() -> None:
    bandit = bandit_with()
    decision = bandit.decide([1.0, 0.5])
    bandit.learn(decision, 1.0)
    before = bytes_of(bandit)
    with pytest.raises(
        RepeatError, match=rf"'{decision.id}' was learned before.*on_repeat='ignore'"
    ):
        bandit.learn(decision, 1.0)
    assert bytes_of(bandit) == before
    assert bandit.round == 1


def test_repeated_decisions_may_be_ignored_or_learned() -> None:
    skipping, repeating = bandit_with(on_repeat="ignore"), bandit_with(on_repeat="learn")
    for bandit in (skipping, repeating):
        decision = bandit.decide([1.0, 0.5])
        for _ in range(5):
            bandit.learn(decision, 1.0)
    assert (skipping.round, repeating.round) == (1, 5)
    with pytest.raises(
        SettingError, match="`on_repeat` must be 'raise', 'ignore' or 'learn', got 'warn'"
    ):
        bandit_with(on_repeat="warn")


@pytest.mark.parametrize(
    "moved",
    [copy, deepcopy, lambda bandit: pickle.loads(pickle.dumps(bandit))],
)
def test_copies_know_what_was_learned(moved: Callable[[Bandit], Bandit]) -> None:
    bandit = bandit_with()
    decision, other = bandit.decide([1.0, 0.5]), bandit.decide([0.5, 0.5])
    bandit.learn(decision, 1.0)
    twin = moved(bandit)
    with pytest.raises(RepeatError):
        twin.learn(decision, 1.0)
    twin.learn(other, 1.0)
    bandit.learn(other, 1.0)  # what the twin learned is not known here


@pytest.mark.parametrize("on_repeat", ["raise", "ignore"])
def test_a_saved_bandit_knows_what_was_learned(tmp_path: Path, on_repeat: Any) -> None:
    bandit = bandit_with(on_repeat=on_repeat)
    decision = bandit.decide([1.0, 0.5])
    bandit.learn(decision, 1.0)
    loaded = saved_and_loaded(bandit, tmp_path)
    assert loaded.on_repeat == on_repeat
    again = Decision.from_dict(json.loads(json.dumps(decision.as_dict())))
    if on_repeat == "ignore":
        loaded.learn(again, 1.0)
    else:
        with pytest.raises(RepeatError):
            loaded.learn(again, 1.0)
    assert loaded.round == 1
    assert bytes_of(loaded) == bytes_of(bandit)


def test_a_file_of_an_earlier_release_is_loaded(tmp_path: Path) -> None:
    bandit = bandit_with()
    bandit.learn([1.0, 0.0], arm="a", reward=1.0)
    bandit.save(tmp_path / "new")
    with zipfile.ZipFile(tmp_path / "new") as new, zipfile.ZipFile(tmp_path / "old", "w") as old:
        manifest = json.loads(new.read("manifest.json"))
        del manifest["on_repeat"]
        assert "known" not in manifest  # no decision of ours was learned
        old.writestr("manifest.json", json.dumps(manifest))
        for name in new.namelist():
            if name != "manifest.json":
                old.writestr(name, new.read(name))
    assert bytes_of(Bandit.load(tmp_path / "old")) == bytes_of(bandit)


def test_the_same_bandit_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    bandit = bandit_with()
    bandit.learn(bandit.decide([1.0, 0.5]), 1.0)
    for name in ("one", "two"):
        bandit.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_id_that_a_user_gives_to_several_decisions_does_not_make_them_one() -> None:
    bandit = bandit_with()
    for t in range(5):
        bandit.learn(bandit.decide([1.0, float(t)], id="user 7"), 1.0)
    assert bandit.round == 5
    bandit.learn(bandit.decide([1.0, 9.0], id="user 7", eligible=["a"]), 1.0)
    same = bandit.decide([1.0, 9.0], id="user 7", eligible=["a"])
    with pytest.raises(RepeatError):
        bandit.learn(same, 1.0)


def test_a_reward_that_is_refused_may_be_given_again() -> None:
    bandit = Bandit(NeuralUCB(), arms=2, features=1)
    decision = bandit.decide([1.0])
    with pytest.raises(ValueError, match="finite"):
        bandit.learn(decision, np.nan)
    bandit.learn(decision, 1.0)
    assert bandit.round == 1


def test_the_memory_is_bounded_and_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "REMEMBERED", 3)
    learned = LearnedDecisions()
    for digest in range(10):
        learned.add(digest)
    assert learned.as_array().tolist() == [7, 8, 9]
    assert 7 in learned
    assert 6 not in learned
