"""Tests of numbers that a bandit scales by a running mean and deviation."""

import json
import zipfile
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rbmle import Bandit, Decision, Hashing, LinUCB, NeuralUCB
from rbmle.core.encoding import Places, per_arm
from rbmle.core.errors import SettingError
from rbmle.core.trees import leaves
from rbmle.features.running import Running

NAMES = ["age", "income", "is_new", "one", "nothing"]


def visitors(n: int, seed: int = 0) -> np.ndarray:
    """Return ages, incomes, a rare flag, a constant and a column of zeros."""
    rng = np.random.default_rng(seed)
    ages, incomes = rng.normal(42, 13, n), rng.lognormal(10, 0.5, n)
    flags = rng.random(n) < 0.02
    return np.stack([ages, incomes, flags, np.ones(n), np.zeros(n)], axis=1)


def bandit(policy: Any = LinUCB, features: Any = 5, **settings: Any) -> Bandit:
    return Bandit(policy(), arms=3, features=features, scaling="running", **settings)


def content(one: Bandit) -> dict[str, bytes]:
    """Return all arrays of what a bandit has learned."""
    arrays = leaves(one.state)[0] | leaves(one.learner.scales, "scales")[0]
    return {name: array.tobytes() for name, array in arrays.items()}


def scaled(X: Any, features: int) -> np.ndarray:
    """Return rows as a policy sees them after it has learned from all of them, in their order."""
    numbers = Running(of=Places(size=features))
    moments = numbers.start()
    numbers.scale(per_arm(X, features), moments, is_learning=True)
    return numbers.scale(per_arm(X, features), moments).dense()


@pytest.mark.parametrize("policy", [LinUCB, NeuralUCB])
def test_a_batch_a_log_and_a_saved_bandit_give_the_same_bits(policy: Any, tmp_path: Path) -> None:
    X, rewards = visitors(30), np.random.default_rng(1).random(30)
    arms = [int(arm) for arm in np.random.default_rng(2).integers(3, size=30)]
    batch, single, saved = bandit(policy), bandit(policy), bandit(policy)
    batch.partial_fit(X, arms, rewards)
    for x, arm, reward in zip(X, arms, rewards, strict=True):
        single.learn(x, arm=arm, reward=reward)
    saved.partial_fit(X[:11], arms[:11], rewards[:11])
    saved.save(tmp_path / "bandit")
    saved = Bandit.load(tmp_path / "bandit")
    saved.partial_fit(X[11:], arms[11:], rewards[11:])
    assert content(batch) == content(single) == content(saved)
    assert copy(batch).decide(X[0]).arm == batch.decide(X[0]).arm


def test_a_late_reward_is_learned_as_the_same_row_of_a_log_is() -> None:
    X = visitors(40)
    late, logged = bandit(), bandit()
    decisions = [late.decide(x) for x in X]  # all of them before the first reward
    for decision, x in zip(decisions, X, strict=True):
        np.testing.assert_array_equal(decision.context.dense()[0], x)  # in the user's units
        sent = Decision.from_dict(json.loads(json.dumps(decision.as_dict())))
        late.learn(sent, x[0])
        logged.learn(x, arm=decision.arm, reward=x[0])
    assert content(late) == content(logged)


def test_decisions_and_predictions_change_nothing_and_agree() -> None:
    X = visitors(60)
    one = bandit(floor=0.1).partial_fit(X, [0, 1, 2] * 20, X[:, 0])
    before, frozen = content(one), one.snapshot()
    many = one.decide_many(X[:5], ids=list("abcde"))
    single = [one.decide(x, id=id) for x, id in zip(X, "abcde", strict=False)]
    assert [d.indices.tolist() for d in many] == [d.indices.tolist() for d in single]
    assert one.rank(X[0], 2, id="a")[0].arm == single[0].arm
    assert one.predict(X[0]) == frozen.predict(X[0])
    assert content(one) == before
    one.learn([1e6, -1e6, 1, 0, 5], arm=0, reward=0.0)
    assert frozen.decide(X[0], id="a").indices.tolist() == single[0].indices.tolist()


def test_a_row_is_learned_as_it_was_decided_if_nothing_was_learned_between() -> None:
    numbers, X = Running(of=Places(size=5)), visitors(20)
    moments = numbers.start()
    for row in range(20):
        contexts = per_arm(X[row : row + 1], 5)
        decided = numbers.scale(contexts, moments).dense()
        learned = numbers.scale(contexts, moments, is_learning=True).dense()
        assert decided.tobytes() == learned.tobytes()


def test_units_make_no_difference() -> None:
    X, units = visitors(200), np.array([2.0**10, 2.0**-20, 2.0**5, 2.0**3, 1.0])
    assert scaled(X, 5).tobytes() == scaled(X * units, 5).tobytes()
    shift = np.array([1e4, 0, 0, 0, 0])
    np.testing.assert_allclose(scaled(X + shift, 5), scaled(X, 5), atol=1e-8)


def test_numbers_flags_constants_and_zeros_have_a_size_of_their_own() -> None:
    rows = scaled(visitors(2000), 5)
    age, income, flag, one, nothing, added = rows.T
    for number in (age, income):
        assert abs(number.mean()) < 0.01
        assert number.std() == pytest.approx(
            0.5, abs=0.02
        )  # two numbers share the squared length ½
    assert set(flag.round(2)) <= {0.0, 0.5}  # however rare it is
    assert (one == 0.5).all()
    assert (added == 0.5).all()
    assert (nothing == 0).all()
    assert (rows**2).sum(axis=1).mean() == pytest.approx(1, abs=0.02)
    assert np.abs(rows).max() <= 4 * 0.51


def test_the_first_rows_are_no_longer_than_later_ones() -> None:
    numbers, X = Running(of=Places(size=5)), visitors(50)
    seen = numbers.scale(per_arm(X, 5), numbers.start(), is_learning=True).dense()
    lengths = (seen**2).sum(axis=1)
    assert lengths[0] == pytest.approx(0.5)  # until something differs, all are constants
    assert lengths.max() < 8
    assert np.isfinite(seen).all()


def test_sparse_rows_are_seen_as_dense_ones_and_stay_sparse() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((60, 40)) < 0.1) * rng.normal(3, 1, (60, 40))
    X[0, :] = 0.0
    dense, own = bandit(features=40), bandit(features=40)
    dense.partial_fit(X, [0, 1, 2] * 20, X[:, 0])
    own.partial_fit(sparse.csr_matrix(X), [0, 1, 2] * 20, X[:, 0])
    assert content(dense) == content(own)
    np.testing.assert_array_equal(scaled(X, 40)[:, :40] == 0, X == 0)  # nothing is centred


def test_names_and_rows_of_arms_are_scaled_too() -> None:
    X = visitors(30)
    by_place, by_name = bandit(), bandit(features=NAMES)
    for x in X:
        by_place.learn(x, arm=0, reward=1.0)
        by_name.learn(dict(zip(reversed(NAMES), reversed(x), strict=True)), arm=0, reward=1.0)
    assert content(by_place) == content(by_name)
    offered = Bandit(LinUCB(), features=5, scaling="running", encoding="per-arm")
    for x in X:
        decision = offered.decide(X[:4])
        np.testing.assert_array_equal(decision.context.dense()[0], X[int(decision.arm)])
        offered.learn(decision, x[0])
    assert len(offered.decide_many([X[:3], X[:2]])) == 2


def test_files_say_whether_numbers_are_scaled(tmp_path: Path) -> None:
    raw = Bandit(LinUCB(), arms=2, features=3)
    raw.save(tmp_path / "raw")
    manifest = json.loads(zipfile.ZipFile(tmp_path / "raw").read("manifest.json"))
    assert manifest["features"] == 3  # as in files of earlier releases
    assert Bandit.load(tmp_path / "raw").learner.scales is None
    named = Bandit(LinUCB(), arms=2, features=["a", "b"], scaling="running")
    named.learn({"a": 1, "b": 100}, arm=0, reward=1.0)
    named.save(tmp_path / "named")
    assert content(Bandit.load(tmp_path / "named")) == content(named)


def test_a_scaling_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingError, match="`scaling` must be 'running' or None"):
        Bandit(LinUCB(), arms=2, features=3, scaling="standard")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="leave `scaling` out"):
        Bandit(LinUCB(), arms=2, features=Hashing(), scaling="running")
