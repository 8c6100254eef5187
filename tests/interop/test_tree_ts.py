"""Trees with bootstrap draws keep the promises of a policy, and do what their docstring says."""

import sys

import numpy as np
import pytest
from sklearn.tree import ExtraTreeRegressor

from rbmle import Bandit
from rbmle.core.encoding import disjoint
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.interop.tree_ts import Forest, TreeState, TreeTS, join_trees
from rbmle.policies.registry import name_of, parse_policy
from rbmle.testing import policy_checks
from rbmle.testing.policies import PROMISES

SMALL = TreeTS(trees=6, committee=3)


@pytest.mark.parametrize("promise", [promise.__name__ for promise in PROMISES])
def test_trees_keep_every_promise(promise: str) -> None:
    dict(policy_checks(SMALL))[promise]()


def test_a_forest_descends_by_its_thresholds() -> None:
    """Arm 0 has the tree x₁ ≤ 0.5 ? 1 : 2 and the leaf 7; arm 1 has the leaf 7 twice."""
    forest = Forest(
        roots=np.array([[0, 3], [3, 3]]),
        left=np.array([1, 1, 2, 3]),
        right=np.array([2, 1, 2, 3]),
        feature=np.array([1, 0, 0, 0]),
        threshold=np.array([0.5, 0, 0, 0]),
        value=np.array([0.0, 1, 2, 7]),
        depth=1,
    )
    for x, expected in (([9.0, 0.5], 1), ([9.0, 0.6], 2)):
        contexts = disjoint(x, np.arange(2), 2)
        np.testing.assert_array_equal(forest.predict(contexts), [[expected, 7], [7, 7]])


def test_joined_trees_predict_as_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)).astype(np.float32), rng.random(200)
    trees = [ExtraTreeRegressor(random_state=seed).fit(X, y) for seed in range(4)]
    forest = join_trees([tree.tree_ for tree in trees], (2, 2))
    for x in rng.normal(size=(30, 3)):
        predicted = forest.predict(disjoint(x, np.arange(2), 3))
        theirs = [tree.predict(x[None].astype(np.float32))[0] for tree in trees]
        np.testing.assert_array_equal(predicted.reshape(-1), theirs)


def test_fits_are_due_when_the_data_have_grown_by_a_third() -> None:
    """20, then 26, then 34 observations: ⌈1.3 · 20⌉ and ⌈1.3 · 26⌉."""
    assert [taught(SMALL, n).due for n in (0, 19, 20, 25, 26)] == [20, 20, 26, 26, 34]
    wide = SMALL.init(30, 2, generator(0, Purpose.START, 0))
    assert wide.due == 60


def test_an_arm_that_never_paid_is_not_given_up() -> None:
    """Each of its trees has seen a made-up reward of 1 somewhere."""
    policy = TreeTS(trees=10, committee=2)
    state = taught(policy, 60, reward=0.0)
    contexts = disjoint([0.1, 0.2], np.arange(2), 2)
    draws = [policy.index(state, contexts, generator(0, Purpose.INDEX, t)) for t in range(200)]
    assert np.max(draws) > 0
    assert np.mean(draws) < 0.2


def test_probabilities_are_counted_in_draws() -> None:
    state, contexts = taught(SMALL, 60), disjoint([0.1, 0.2], np.arange(2), 2)
    indices, chances = SMALL.weigh(state, contexts, 400, generator(0, Purpose.INDEX, 0))
    first = SMALL.index(state, contexts, generator(0, Purpose.INDEX, 0))
    assert indices.shape == first.shape == (2,)
    assert chances is not None
    assert chances.sum() == pytest.approx(1)
    _, unknown = SMALL.weigh(state, contexts, 0, generator(0, Purpose.INDEX, 0))
    assert unknown is None


def test_it_learns_a_problem_that_is_not_linear() -> None:
    """Arm 0 is right where both features have one sign."""
    bandit = Bandit("tree-ts", arms=2, features=2, seed=0)
    right = []
    for t in range(400):
        x = generator(1, Purpose.ENVIRONMENT, t).normal(size=2)
        decision = bandit.decide(x)
        right.append(int(decision.arm) == int(x[0] * x[1] < 0))
        bandit.learn(decision, reward=float(right[-1]))
    assert np.mean(right[300:]) > 0.8


def test_settings_are_checked_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_of(parse_policy("tree-ts:ratio=2").policy()) == "tree-ts"
    for setting, message in (("trees=0", "`trees` must be at least 1"), ("ratio=1", "above 1")):
        with pytest.raises(SettingError, match=message):
            parse_policy(f"tree-ts:{setting}")
    monkeypatch.setattr("rbmle.interop.needs.find_spec", lambda _: None)
    with pytest.raises(SettingError, match=r"needs sklearn.*pip install 'rbmle\[experiments\]'"):
        parse_policy("tree-ts")
    assert "rbmle.interop.tree_ts" in sys.modules


def taught(policy: TreeTS, n: int, reward: float | None = None) -> TreeState:
    """Return a state that has seen n observations of two arms in turn."""
    bandit = Bandit(policy, arms=2, features=2, seed=0)
    for t in range(n):
        x = generator(1, Purpose.ENVIRONMENT, t).normal(size=2)
        bandit.learn(x, arm=t % 2, reward=float(x[0] > 0) if reward is None else reward)
    state = bandit.state
    assert isinstance(state, TreeState)
    return state
