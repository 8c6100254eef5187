"""A bandit as a classifier of scikit-learn: classes are arms, and the right one pays 1."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from rbmle.core.bandit import Bandit
from rbmle.core.checks import policy_of
from rbmle.core.encoding import every_in_blocks, per_arm
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy, Predicts, has
from rbmle.engine.compiled import scalar
from rbmle.engine.exponential_family import expectations
from rbmle.models.regression import Regression

LARGEST_SEED = 2**31 - 1


class BanditClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that chooses a class for each row, and learns only whether it was the right one.

    After fitting, `bandit_` is the bandit, whose arms are the places of `classes_`, and `rewards_` are the
    rewards in the order in which they were learned. Their mean is an honest accuracy: each class was chosen
    before its row was learned.

    Parameters
    ----------
    policy
        A policy, its class, or its name, such as "neural-ucb".
    random_state
        Determines the order of the rows in `fit` and the bandit's seed.

    """

    def __init__(
        self,
        policy: Policy[Any] | type[Policy[Any]] | str = "neural-rbmle-ga",
        *,
        random_state: Any = 0,
    ) -> None:
        self.policy = policy
        self.random_state = random_state

    classes_: np.ndarray
    bandit_: Bandit
    rewards_: Float[np.ndarray, " rounds"]
    n_features_in_: int

    def fit(self, X: Any, y: Any) -> "BanditClassifier":
        """Start again, and play each row once, in random order."""
        X, y = self._validate(X, y, is_first=True)
        rng = check_random_state(self.random_state)
        self._start(np.unique(y), rng)
        order = rng.permutation(len(y))
        return self._play(X[order], y[order])

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, rewards: Any = None
    ) -> "BanditClassifier":
        """Continue learning: play each row once, in order.

        The first call has to name all `classes`. With `rewards`, nothing is played: y are classes that were
        chosen elsewhere, and y[i] had the reward rewards[i].
        """
        is_first = not hasattr(self, "bandit_")
        X, y = self._validate(X, y, is_first)
        if is_first:
            if classes is None:
                raise SettingError(
                    "`classes` is missing; the first call of partial_fit must name all classes, as in "
                    "partial_fit(X, y, classes=[0, 1])"
                )
            self._start(np.unique(classes), check_random_state(self.random_state))
        if rewards is None:
            return self._play(X, y)
        if len(rewards) != len(y):
            raise SettingError(f"there are {len(rewards)} rewards for {len(y)} rows; give one each")
        rewards = np.asarray(rewards, np.float64)
        self.bandit_.partial_fit(X, self._places(y).tolist(), rewards)
        self.rewards_ = np.concatenate([self.rewards_, rewards])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest expected reward for each row, without exploration."""
        best = self._expected_rewards(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n classes"]:
        """Return the probabilities that are nearest to the expected rewards of each row's classes.

        A class's expected reward is the probability that it is right. Each is estimated separately, so they
        need not sum to 1; the nearest probabilities that do are returned.
        """
        return nearest_probabilities(self._expected_rewards(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate(self, X: Any, y: Any, is_first: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=is_first)
        check_classification_targets(y)
        return X, y

    def _start(self, classes: np.ndarray, rng: Any) -> None:
        self.classes_ = classes
        seed = int(rng.randint(LARGEST_SEED))
        policy = policy_of(self.policy)
        _model(policy)
        self.bandit_ = Bandit(policy, arms=len(classes), features=self.n_features_in_, seed=seed)
        self.rewards_ = np.zeros(0)

    def _play(self, X: Any, y: np.ndarray) -> "BanditClassifier":
        """Choose a class for each row, and learn whether it was the right one."""
        right, contexts = self._places(y), per_arm(X, self.n_features_in_)
        rewards = np.zeros(len(y))
        for i in range(len(y)):
            decision = self.bandit_.decide(contexts.row(i))
            rewards[i] = decision.arm == right[i]
            self.bandit_.learn(decision, rewards[i])
        self.rewards_ = np.concatenate([self.rewards_, rewards])
        return self

    def _places(self, y: np.ndarray) -> Int[np.ndarray, " n"]:
        """Return the places of the labels among the classes."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise SettingError(
                f"y has the label {unknown[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()}; name all classes in the first call of partial_fit"
            )
        return np.searchsorted(self.classes_, y)

    def _expected_rewards(self, X: Any) -> Float[np.ndarray, "n classes"]:
        """Return the expected reward of each class for each row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        every, bandit = np.arange(len(self.classes_)), self.bandit_
        contexts = every_in_blocks(per_arm(X, self.n_features_in_), every)
        f = _model(bandit.policy).predict(bandit.state, contexts)
        match bandit.policy:
            case object(model=Regression(likelihood=likelihood)):
                expectations(f.copy(), scalar(likelihood.mean), f)  # b′(f)
        return f.reshape(-1, len(every))


def _model(policy: Policy[Any]) -> Predicts:
    """Return a policy that has a model of the reward, or raise SettingError."""
    if has(policy, Predicts):
        return policy
    raise SettingError(
        f"{type(policy).__name__} has no model of the reward, so it cannot classify; choose another "
        "`policy`, such as 'neural-rbmle-ga' or 'lin-ucb'"
    )


def nearest_probabilities(f: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, "n classes"]:
    """Return for each row the p ≥ 0 with Σp = 1 that minimises ‖p − f‖: max(f − τ, 0) for some τ.

    The order does not change. (Duchi et al. 2008, "Efficient projections onto the ℓ₁-ball")

    >>> nearest_probabilities(np.array([[0.9, 0.3, -2.0]])).round(3).tolist()
    [[0.8, 0.2, 0.0]]
    """
    largest = -np.sort(-f, axis=1)
    excess = (largest.cumsum(axis=1) - 1) / np.arange(1, f.shape[1] + 1)
    count = (largest > excess).sum(axis=1, keepdims=True)
    tau = np.take_along_axis(excess, count - 1, axis=1)
    return np.maximum(f - tau, 0)
