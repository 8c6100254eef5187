"""A bandit says when something looks wrong: with rewards, features, predictions, or its choices."""

import json
import logging
import pickle
import zipfile
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, LinUCB, NeuralUCB, Uniform
from rbmle.core import diagnosis
from rbmle.core.errors import SnapshotError
from rbmle.core.events import without_logging
from rbmle.core.types import Contexts, Indices, Observation

Pay = Callable[[np.ndarray, int, np.random.Generator], float]
LOGGER = "rbmle.diagnosis"


def taught(
    policy: Any = "lin-ucb", *, pay: Pay, rounds: int = 1_000, arms: int = 3, **settings: Any
) -> Bandit:
    """Return a bandit that has decided and learned, each time in a context of four features."""
    bandit, rng = Bandit(policy, arms=arms, features=4, **settings), np.random.default_rng(1)
    for _ in range(rounds):
        x = rng.normal(size=4)
        decision = bandit.decide(x)
        bandit.learn(decision, pay(x, int(decision.arm), rng))
    return bandit


def kinds(bandit: Bandit) -> set[str]:
    return {finding.kind for finding in bandit.diagnose().findings}


def linear(x: np.ndarray, arm: int, rng: np.random.Generator) -> float:
    return float(x[arm] + 0.1 * rng.normal())


@dataclass(frozen=True, kw_only=True)
class Stubborn:
    """Plays arm 0 whatever happens, and expects the moon."""

    hope: float = 0.0

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> None: ...

    def index(self, state: None, contexts: Contexts, rng: np.random.Generator) -> Indices:
        return np.array([1.0 if block == 0 else 0.0 for block in contexts.rows.blocks])

    def predict(self, state: None, contexts: Contexts) -> Indices:
        return np.full(len(contexts), self.hope)

    def update(self, state: None, seen: Observation, rng: np.random.Generator) -> None: ...

    def grow(self, state: None, blocks: int, rng: np.random.Generator) -> None: ...


def test_nothing_looks_wrong_where_a_policy_does_well(caplog: pytest.LogCaptureFixture) -> None:
    bandit = taught(pay=linear, floor=0.1, rounds=2_000)
    found = bandit.diagnose()
    assert found.is_well
    assert found.rounds == 2_000
    assert found.explained is not None
    assert found.explained > 0.8
    assert "predictions explained 9" in str(found)
    assert "nothing looks wrong" in str(found)
    assert not caplog.records


def test_a_policy_below_a_fixed_arm_is_found(caplog: pytest.LogCaptureFixture) -> None:
    """Arm 2 pays 0.8 always; the policy plays arm 0, which pays 0.2, but for the floor."""
    pays = (0.2, 0.5, 0.8)
    with caplog.at_level(logging.WARNING, LOGGER):
        bandit = taught(
            Stubborn(),
            pay=lambda x, arm, rng: float(rng.random() < pays[arm]),
            rounds=3_000,
            floor=0.1,
        )
    found = bandit.diagnose()
    assert "below a fixed arm" in kinds(bandit)
    assert found.best_arm == 2
    assert found.best_arm_reward == pytest.approx(0.8, abs=0.1)
    assert found.reward == pytest.approx(0.9 * 0.2 + 0.1 * 0.5, abs=0.03)
    told = [record.getMessage() for record in caplog.records]
    assert sum("always playing 2 would have paid" in text for text in told) == 1


def test_the_best_fixed_arm_is_that_of_all_contexts_not_of_those_it_was_played_in() -> None:
    """Each arm pays 1 where it is chosen and 0 elsewhere: its own rewards alone would say 1."""

    def pay(x: np.ndarray, arm: int, rng: np.random.Generator) -> float:
        return float(arm == x[:3].argmax())

    bandit = taught(pay=pay, floor=0.2, rounds=4_000)
    found = bandit.diagnose()
    assert found.reward is not None
    assert found.reward > 0.7
    assert found.best_arm_reward == pytest.approx(1 / 3, abs=0.12)
    assert "below a fixed arm" not in kinds(bandit)


def test_nothing_is_said_of_fixed_arms_where_no_arm_is_drawn() -> None:
    bandit = taught(pay=linear)
    assert bandit.diagnose().best_arm is None
    assert "takes a `floor`" in str(bandit.diagnose())


def test_predictions_worse_than_the_mean_are_found(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        bandit = taught(Stubborn(hope=5.0), pay=linear, rounds=2_000)
    assert "bad predictions" in kinds(bandit)
    explained = bandit.diagnose().explained
    assert explained is not None
    assert explained < -10
    (told,) = [record.getMessage() for record in caplog.records]
    assert "after 1,500 rewards: predictions have" in told


def test_predictions_of_a_probability_are_compared_as_probabilities() -> None:
    """The linear predictor of 0.05 is −3, which would be a bad prediction."""
    bandit, rng = Bandit("glm-ts", arms=2, features=1), np.random.default_rng(0)
    for _ in range(2_000):
        bandit.learn(bandit.decide([1.0]), float(rng.random() < 0.05))
    explained = bandit.diagnose().explained
    assert explained is not None
    assert -0.1 < explained < 0.1


def test_equal_rewards_are_found(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        bandit = taught(pay=lambda x, arm, rng: 3.0, rounds=600)
    assert "equal rewards" in kinds(bandit)
    assert "all 500 rewards are 3" in caplog.text
    assert caplog.text.count("equal") + caplog.text.count("rewards are 3") == 1


def test_placeholders_among_rewards_are_found() -> None:
    bandit = taught(pay=lambda x, arm, rng: -999.0 if rng.random() < 0.1 else linear(x, arm, rng))
    assert "placeholder rewards" in kinds(bandit)
    ordinary = taught(pay=lambda x, arm, rng: float(round(999 + rng.normal())))
    assert "placeholder rewards" not in kinds(ordinary)


def test_an_arm_that_is_never_played_is_named() -> None:
    bandit = taught(Stubborn(), pay=linear, rounds=100)
    (finding,) = [each for each in bandit.diagnose().findings if each.kind == "starved arms"]
    assert "arms 1, 2 had at most one reward in 100" in finding.text
    bandit.retire_arm(1)
    assert "arm 2 had" in str(bandit.diagnose())


def test_a_new_arm_has_time_before_it_counts_as_starved() -> None:
    bandit = taught(pay=linear, rounds=100, floor=0.3)
    bandit.add_arm("new")
    assert "starved arms" not in kinds(bandit)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda X: X * [1, 1, 1, 30_000], "wild scales"),
        (lambda X: X * [1, 0, 1, 1], "constant features"),
        (
            lambda X: np.where(np.arange(len(X))[:, None] % 5 == 0, -999.0, X),
            "placeholder features",
        ),
    ],
)
def test_features_that_look_wrong_are_found(
    change: Callable[[np.ndarray], np.ndarray], kind: str
) -> None:
    rng = np.random.default_rng(0)
    X, arms = rng.normal(size=(800, 4)), rng.integers(3, size=800)
    for contexts, expected in ((X, set()), (change(X), {kind})):
        bandit = Bandit("lin-ucb", arms=3, features=4)
        bandit.partial_fit(contexts, arms.tolist(), X[:, 0])
        assert kinds(bandit) == expected


def test_an_intercept_and_rare_flags_are_ordinary_features() -> None:
    rng = np.random.default_rng(0)
    flags = np.eye(30)[rng.integers(20, size=800)]  # ten of them have not come yet
    X = np.concatenate([np.ones((800, 1)), flags], axis=1)
    bandit = Bandit("lin-ucb", arms=3, features=31)
    bandit.partial_fit(X, rng.integers(3, size=800).tolist(), rng.normal(size=800))
    assert bandit.diagnose().is_well


def test_it_is_saved_copied_and_pickled_with_the_bandit(tmp_path: Path) -> None:
    bandit = taught(pay=linear, floor=0.1)
    bandit.save(tmp_path / "b.rbmle")
    assert str(Bandit.load(tmp_path / "b.rbmle").diagnose()) == str(bandit.diagnose())
    assert pickle.loads(pickle.dumps(bandit)).diagnose() == bandit.diagnose()
    twin, before = copy(bandit), bandit.diagnose()
    twin.learn([1.0, 0, 0, 0], arm=0, reward=1.0)
    assert bandit.diagnose() == before
    assert twin.diagnose().rounds == before.rounds + 1


def test_a_resumed_bandit_equals_one_that_never_stopped(tmp_path: Path) -> None:
    whole, part = (
        taught(pay=linear, floor=0.1, rounds=700),
        taught(pay=linear, floor=0.1, rounds=700),
    )
    part.save(tmp_path / "b")
    part, rng = Bandit.load(tmp_path / "b"), np.random.default_rng(2)
    for x in rng.normal(size=(600, 4)):
        for bandit in (whole, part):
            bandit.learn(bandit.decide(x), float(x[0]))
    assert part.diagnose() == whole.diagnose()


def test_a_file_without_a_diagnosis_still_opens(tmp_path: Path) -> None:
    bandit = taught(pay=linear, rounds=50)
    bandit.save(tmp_path / "new")
    with zipfile.ZipFile(tmp_path / "new") as new, zipfile.ZipFile(tmp_path / "old", "w") as old:
        for name in new.namelist():
            content = new.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                del manifest["observed"]
                content = json.dumps(manifest).encode()
            if not name.startswith("observed"):
                old.writestr(name, content)
    loaded = Bandit.load(tmp_path / "old")
    assert loaded.round == 50
    assert loaded.diagnose().rounds == 0
    loaded.learn(loaded.decide(np.ones(4)), 1.0)


def test_nothing_is_logged_if_the_caller_suppresses_it(caplog: pytest.LogCaptureFixture) -> None:
    with without_logging():
        taught(pay=lambda x, arm, rng: 3.0, rounds=600)
    assert not caplog.records


def test_a_snapshot_has_no_diagnosis() -> None:
    with pytest.raises(SnapshotError):
        taught(pay=linear, rounds=5).snapshot().diagnose()


@pytest.mark.parametrize("encoding", ["disjoint", "per-arm"])
@pytest.mark.parametrize("policy", [LinUCB(), NeuralUCB(), Uniform()])
def test_choices_do_not_depend_on_it(
    policy: Any, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choices() -> list[Any]:
        bandit, rng = (
            Bandit(policy, arms=3, features=4, encoding=encoding),
            np.random.default_rng(0),
        )
        arms = []
        for _ in range(120):
            x = rng.normal(size=4 if encoding == "disjoint" else (3, 4))
            decision = bandit.decide(x)
            bandit.learn(decision, float(x.ravel()[0]))
            arms.append(decision.arm)
        return arms

    before = choices()
    monkeypatch.setattr(diagnosis.Observed, "add", lambda *_: None)
    assert choices() == before
