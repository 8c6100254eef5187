"""A bandit without contexts."""

from pathlib import Path

import pytest

from rbmle import Bandit, LinUCB
from rbmle.classical import UCB1, BetaTS
from rbmle.core.errors import ContextError, SettingError


def test_a_bandit_without_features_decides_and_learns() -> None:
    bandit = Bandit(UCB1(exploration=0.1), arms=["tea", "coffee"])
    for _ in range(20):
        decision = bandit.decide()
        bandit.learn(decision, reward=float(decision.arm == "tea"))
    assert bandit.decide().arm == "tea"
    assert [decision.arm for decision in bandit.decide_many(2)] == ["tea", "tea"]
    assert bandit.predict(None) == {"tea": 1.0, "coffee": 0.0}


def test_it_learns_decisions_made_elsewhere(tmp_path: Path) -> None:
    bandit = Bandit(BetaTS(), arms=2, draws=10)
    bandit.learn(None, arm=1, reward=1.0)
    bandit.partial_fit(3, arms=[0, 1, 1], rewards=[0.0, 1.0, 1.0])
    bandit.save(tmp_path / "arms.rbmle")
    loaded = Bandit.load(tmp_path / "arms.rbmle")
    assert loaded.decide(id="a").indices.tolist() == bandit.decide(id="a").indices.tolist()
    assert loaded.state.totals.tolist() == [0.0, 3.0]


def test_an_unexpected_context_is_refused() -> None:
    bandit = Bandit(UCB1(), arms=2)
    with pytest.raises(ContextError, match="made without features, but the context"):
        bandit.decide([1.0])
    with pytest.raises(ContextError, match="rounds are given as their number, got"):
        bandit.decide_many([[1.0]])


def test_a_policy_that_needs_contexts_needs_features() -> None:
    with pytest.raises(SettingError, match="`features` must be a number of features"):
        Bandit(LinUCB(), arms=2)
