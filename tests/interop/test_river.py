"""A policy under river's interface."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, Hashing, LinUCB
from rbmle.core.errors import ContextError

pytest.importorskip("river", reason="river is not installed: pip install 'rbmle[river]'")
from river import bandit as river_bandit
from river import stats

from rbmle.interop import RiverPolicy

ARMS = ["tea", "coffee"]


def test_it_pulls_what_the_bandit_would() -> None:
    policy, bandit = (
        RiverPolicy("lin-ucb", seed=2),
        Bandit(LinUCB(), arms=ARMS, features=["a", "b"], seed=2),
    )
    right = []
    for x in np.random.default_rng(0).normal(size=(200, 2)).tolist():
        context = {"a": x[0], "b": x[1]}
        arm, decision = policy.pull(ARMS, context=context), bandit.decide(context)
        assert arm == decision.arm
        right.append(arm == ARMS[int(x[0] > x[1])])
        policy.update(arm, context, float(right[-1]))
        bandit.learn(decision, float(right[-1]))
    assert np.mean(right[100:]) > 0.9
    assert policy.ranking  # river's own statistics are kept
    fresh = policy.clone()
    assert (fresh.bandit, fresh.seed, fresh.policy) == (None, 2, "lin-ucb")


def test_it_is_evaluated_on_logs_by_replay() -> None:
    total, used = river_bandit.evaluate_offline(RiverPolicy("lin-ucb"), logged(), stats.Mean())
    assert 150 < used < 450
    assert total.get() > 0.8  # uniform play has 0.5


def test_arms_and_categories_may_come_and_go() -> None:
    policy = RiverPolicy("lin-ucb", features=Hashing())
    policy.update("tea", {"day": "monday"}, 1.0)
    assert policy.pull(["juice"], context={"weather": ["wet", "cold"]}) == "juice"
    with pytest.raises(ContextError, match="day"):
        RiverPolicy("lin-ucb").pull(ARMS, context={"day": "monday"})


def logged() -> Iterator[tuple[list[str], dict[str, Any], str, float]]:
    """Yield rounds in which someone pulled at random."""
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(600, 2)).tolist():
        arm = ARMS[int(rng.integers(2))]
        yield ARMS, {"a": x[0], "b": x[1]}, arm, float(arm == ARMS[int(x[0] > x[1])])
