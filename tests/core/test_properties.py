"""Properties that hold for any contexts, any ids, and any moment to save."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from scipy import sparse

from rbmle import Bandit, LinUCB, NeuralUCB
from rbmle.core.encoding import LARGEST, disjoint, per_arm
from rbmle.core.errors import ContextError
from tests.samples import bytes_of

numbers = some.floats(-LARGEST, LARGEST, allow_nan=False)
matrices = some.tuples(some.integers(1, 5), some.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=numbers)
)
ids = some.lists(some.text(min_size=1) | some.integers(), min_size=1, max_size=6, unique=True)


@given(matrices)
def test_contexts_lose_nothing(X: np.ndarray) -> None:
    """Dense, sparse and per arm: the features come back as they went in."""
    n, features = X.shape
    np.testing.assert_array_equal(per_arm(X, features).dense(), X)
    np.testing.assert_array_equal(per_arm(sparse.csr_array(X), features).dense(), X)
    for row in X:
        contexts = disjoint(row, np.arange(n), features)
        np.testing.assert_array_equal(contexts.dense(), np.tile(row, (n, 1)))
        np.testing.assert_array_equal(contexts.row(n - 1).dense(), row[None])
        assert contexts.rows.values.size == np.count_nonzero(row)


@given(matrices, some.data())
def test_an_invalid_number_is_always_detected(X: np.ndarray, data: some.DataObject) -> None:
    at = tuple(data.draw(some.integers(0, size - 1)) for size in X.shape)
    X[at] = data.draw(some.sampled_from([np.nan, np.inf, -np.inf, 2 * LARGEST]))
    try:
        per_arm(X, X.shape[1])
    except ContextError as error:
        assert str(at[0]) in str(error)
    else:
        raise AssertionError("it was taken")


@given(ids, some.data())
def test_arms_keep_their_ids_through_everything(
    arms: list[str | int], data: some.DataObject
) -> None:
    bandit = Bandit(LinUCB(exploration=0.1), arms=arms, features=1)
    favourite = data.draw(some.sampled_from(arms))
    for _ in range(3):
        bandit.learn([1.0], arm=favourite, reward=1.0)
        bandit.learn([1.0], arm=next((a for a in arms if a != favourite), favourite), reward=0.0)
    assert bandit.decide([1.0]).arm == favourite
    shuffled = data.draw(some.permutations(arms))
    assert bandit.decide([1.0], eligible=shuffled).arm == favourite
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "b")
        loaded = Bandit.load(Path(folder) / "b")
    assert loaded.decide([1.0]).arms == tuple(arms)
    assert loaded.decide([1.0]).arm == favourite


@settings(max_examples=25)
@given(some.integers(0, 12), some.integers(0, 12), some.integers(0, 2**63))
def test_saving_at_any_moment_changes_nothing(before: int, after: int, seed: int) -> None:
    unbroken = Bandit(NeuralUCB(), arms=2, features=3, seed=seed)
    broken = Bandit(NeuralUCB(), arms=2, features=3, seed=seed)
    _play(unbroken, range(before + after))
    _play(broken, range(before))
    with tempfile.TemporaryDirectory() as folder:
        broken.save(Path(folder) / "b")
        broken = Bandit.load(Path(folder) / "b")
    _play(broken, range(before, before + after))
    assert bytes_of(broken) == bytes_of(unbroken)


@settings(max_examples=50)
@given(arrays(np.float64, 3, elements=numbers), some.floats(-1e6, 1e6))
def test_the_index_is_finite_after_any_rewards(x: np.ndarray, reward: float) -> None:
    bandit = Bandit(NeuralUCB(), arms=2, features=3)
    for _ in range(3):
        bandit.learn(x, arm=0, reward=reward)
    assert np.isfinite(bandit.decide(x).indices).all()


def _play(bandit: Bandit, rounds: range) -> None:
    for t in rounds:
        decision = bandit.decide(np.random.default_rng(t).normal(size=3))
        bandit.learn(decision, float(decision.arm == 0))
