"""A bandit as a classifier: it keeps scikit-learn's contract, and learns from its own choices alone."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rbmle import Bandit, Bernoulli, LinUCB, NeuralUCB, Regression
from rbmle.core.errors import SettingError
from rbmle.interop import BanditClassifier
from rbmle.interop.sklearn_classifier import nearest_probabilities

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("policy", ["lin-ucb", pytest.param(None, marks=pytest.mark.slow)])
def test_it_passes_every_check_of_scikit_learn(policy: str | None) -> None:
    checked = BanditClassifier() if policy is None else BanditClassifier(policy)
    results = check_estimator(checked, on_fail=None, on_skip=None)
    failed = [result for result in results if result["status"] not in ("passed", "skipped")]
    assert not failed
    assert len(results) > 50


def test_in_a_pipeline_it_learns_digits() -> None:
    images, digits = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), BanditClassifier("lin-ucb", random_state=3))
    assert cross_val_score(model, images, digits, cv=3).mean() > 0.85
    again = clone(model).fit(images, digits).predict(images[:50])
    np.testing.assert_array_equal(model.fit(images, digits).predict(images[:50]), again)


def test_it_learns_only_whether_its_own_choice_was_right() -> None:
    """A bandit that plays the same rows learns the same."""
    model = BanditClassifier("lin-ucb").partial_fit(X, Y, classes=[0, 1, 2])
    bandit = Bandit(LinUCB(), arms=3, features=4, seed=model.bandit_.seed)
    rewards = []
    for x, y in zip(X, Y, strict=True):
        decision = bandit.decide(x)
        rewards.append(float(decision.arm == y))
        bandit.learn(decision, rewards[-1])
    np.testing.assert_array_equal(model.rewards_, rewards)
    assert model.bandit_.predict(X[0]) == bandit.predict(X[0])


def test_logged_rewards_are_learned_without_playing() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])
    places = [i % 3 for i in range(len(X))]
    arms = names[places]
    rewards = (arms == names[Y]) * 0.5
    model = BanditClassifier("lin-ucb").partial_fit(X, arms, classes=names, rewards=rewards)
    expected = Bandit(LinUCB(), arms=3, features=4).partial_fit(X, places, rewards)
    assert model.bandit_.predict(X[7]) == expected.predict(X[7])
    assert set(model.predict(X)) <= set(names)


def test_probabilities_are_the_nearest_to_the_expected_rewards() -> None:
    f = np.random.default_rng(0).normal(size=(5, 4))
    found = nearest_probabilities(f)
    for row, p in zip(f, found, strict=True):
        assert p == pytest.approx(projected(row), abs=1e-5)
    np.testing.assert_allclose(
        nearest_probabilities(np.array([[0.2, 0.5, 0.3]])), [[0.2, 0.5, 0.3]]
    )


def test_the_expected_reward_of_a_bernoulli_likelihood_is_a_probability() -> None:
    policy = NeuralUCB(model=Regression(likelihood=Bernoulli()))
    model = BanditClassifier(policy).fit(X, Y)
    f = np.array(list(model.bandit_.predict(X[0]).values()))
    expected = nearest_probabilities(1 / (1 + np.exp(-f[None])))
    np.testing.assert_allclose(model.predict_proba(X[:1]), expected, rtol=1e-6)


def test_sparse_rows_are_learned_as_dense_ones() -> None:
    dense = BanditClassifier("lin-ucb").fit(X, Y)
    sparse = BanditClassifier("lin-ucb").fit(csr_matrix(X), Y)
    np.testing.assert_array_equal(dense.predict_proba(X), sparse.predict_proba(csr_matrix(X)))


def test_a_pickled_classifier_equals_one_that_never_stopped() -> None:
    model = BanditClassifier("lin-ucb").partial_fit(X[::2], Y[::2], classes=[0, 1, 2])
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(model.rewards_, copy.rewards_)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: BanditClassifier("lin-ucb").partial_fit(X, Y), "`classes` is missing"),
        (lambda: started().partial_fit(X, Y + 5), "y has the label .*[67].*not among the classes"),
        (lambda: started().partial_fit(X, Y, rewards=[1.0]), "1 rewards for 150 rows"),
        (lambda: BanditClassifier("uniform").fit(X, Y), "Uniform has no model.*cannot classify"),
    ],
)
def test_a_mistake_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        wrong()


def started() -> BanditClassifier:
    """Return a classifier of the classes 0, 1 and 2."""
    return BanditClassifier("lin-ucb").partial_fit(X[:9], Y[:9], classes=[0, 1, 2])


def projected(f: np.ndarray) -> np.ndarray:
    """Return the point of the simplex nearest to f, by SciPy."""
    n = len(f)
    is_one = {"type": "eq", "fun": lambda p: p.sum() - 1}
    found = minimize(
        lambda p: ((p - f) ** 2).sum(),
        np.full(n, 1 / n),
        bounds=[(0, 1)] * n,
        constraints=[is_one],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(found.x)
