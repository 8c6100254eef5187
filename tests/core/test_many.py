"""Many rounds at once, lists of arms, predictions, and decisions as plain data."""

import json
from typing import Any

import numpy as np
import pytest

from rbmle import (
    POLICIES,
    Bandit,
    BootstrappedNN,
    Decision,
    EpsilonGreedy,
    LinTS,
    LinUCB,
    NeuralUCB,
    Uniform,
)
from rbmle.core.errors import ContextError, EligibilityError, SettingError
from rbmle.core.state import stream_of

FEATURES = 4


def trained(policy: Any, **settings: Any) -> Bandit:
    """Return a bandit that has learned a little."""
    bandit = Bandit(policy, features=FEATURES, seed=5, **settings)
    rng = np.random.default_rng(0)
    for t in range(30):
        arm = None if bandit.arms is None else t % 3
        bandit.learn(rng.normal(size=FEATURES), arm=arm, reward=float(rng.random() < 0.5))
    return bandit


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("encoding", ["disjoint", "per-arm"])
def test_many_decisions_are_those_of_one_after_the_other(name: str, encoding: str) -> None:
    is_disjoint = encoding == "disjoint"
    bandit = trained(name, arms=3 if is_disjoint else None, encoding=encoding, floor=0.2)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, FEATURES) if is_disjoint else (6, 3, FEATURES))
    ids = [f"round {i}" for i in range(6)]
    together = bandit.decide_many(X, ids=ids)
    for x, id, decision in zip(X, ids, together, strict=True):
        alone = bandit.decide(x, id=id)
        assert (decision.id, decision.arm, decision.arms) == (id, alone.arm, alone.arms)
        assert decision.propensity == alone.propensity
        np.testing.assert_array_equal(decision.indices, alone.indices)
        np.testing.assert_array_equal(decision.context.dense(), alone.context.dense())
    assert bandit.decisions == 0
    streams = [stream_of(decision.id) for decision in bandit.decide_many(X)]
    assert streams == [f"5-{i}" for i in range(6)]


def test_rounds_of_many_decisions_may_have_different_arms() -> None:
    bandit = trained(LinUCB(), encoding="per-arm")
    two, three = bandit.decide_many([np.ones((2, FEATURES)), np.ones((3, FEATURES))])
    assert (two.arms, three.arms) == ((0, 1), (0, 1, 2))


def test_many_decisions_may_be_restricted() -> None:
    bandit = trained(LinUCB(), arms=3)
    decisions = bandit.decide_many(np.ones((4, FEATURES)), eligible=[2, 0])
    assert {decision.arms for decision in decisions} == {(2, 0)}
    bandit.learn(decisions[0], 1.0)


def test_a_mistake_in_many_decisions_gets_a_message() -> None:
    bandit = trained(LinUCB(), arms=3)
    with pytest.raises(SettingError, match="1 ids for 2 rounds"):
        bandit.decide_many(np.ones((2, FEATURES)), ids=["a"])
    with pytest.raises(ContextError, match=r"shape \(4,\)"):
        bandit.decide_many(np.ones(FEATURES))
    with pytest.raises(ContextError, match="no rounds"):
        trained(LinUCB(), encoding="per-arm").decide_many([])
    with pytest.raises(EligibilityError):
        trained(LinUCB(), encoding="per-arm").decide_many([np.ones((0, FEATURES))])


@pytest.mark.parametrize("name", POLICIES)
def test_the_first_of_a_ranking_is_the_decision(name: str) -> None:
    bandit, x = trained(name, arms=5, floor=0.3), np.ones(FEATURES)
    decision, ranking = bandit.decide(x, id="q"), bandit.rank(x, 5, id="q")
    assert ranking[0].arm == decision.arm
    assert ranking[0].propensity == decision.propensity
    assert sorted(str(place.arm) for place in ranking) == ["0", "1", "2", "3", "4"]
    for position, place in enumerate(ranking):
        assert len(place.arms) == 5 - position
        assert place.propensity is not None
        assert 0 < place.propensity <= 1
    assert ranking[-1].propensity == pytest.approx(1.0)
    bandit.learn(ranking[2], 1.0)


def test_without_a_floor_a_ranking_is_by_index_and_has_no_propensity() -> None:
    bandit, x = trained(NeuralUCB(), arms=5), np.ones(FEATURES)
    decision, ranking = bandit.decide(x), bandit.rank(x, 3)
    best = [decision.arms[place] for place in np.argsort(-decision.indices)[:3]]
    assert [place.arm for place in ranking] == best
    assert [place.propensity for place in ranking] == [None] * 3


@pytest.mark.parametrize(
    "policy",
    [
        EpsilonGreedy(epsilon=0.4),
        BootstrappedNN(networks=4),
        LinTS(exploration=1.0),
        Uniform(),
        LinUCB(),
    ],
    ids=repr,
)
def test_lists_come_as_often_as_their_propensities_say(policy: Any) -> None:
    """The product of the propensities is the probability of a list: together they sum to 1."""
    bandit, x = trained(policy, arms=3, floor=0.3, draws=64), np.ones(FEATURES)
    found: dict[tuple[Any, ...], list[float]] = {}
    for i in range(600):
        ranking = bandit.rank(x, 2, id=f"list {i}")
        chance = np.prod([place.propensity or 0.0 for place in ranking])
        found.setdefault(tuple(place.arm for place in ranking), []).append(float(chance))
    for chances in found.values():
        share, expected = len(chances) / 600, float(np.mean(chances))
        assert share == pytest.approx(expected, abs=4 * (expected / 600) ** 0.5 + 0.02)
    assert sum(float(np.mean(chances)) for chances in found.values()) == pytest.approx(1, abs=0.1)


def test_a_ranking_longer_than_the_arms_is_refused() -> None:
    with pytest.raises(SettingError, match="between 1 and the number of eligible arms, 3, got 4"):
        trained(LinUCB(), arms=3).rank(np.ones(FEATURES), 4)


def test_a_prediction_is_the_estimate_without_exploration() -> None:
    greedy = trained(NeuralUCB(exploration=0.0), arms=3)
    bold = trained(NeuralUCB(exploration=5.0), arms=3)
    x = np.ones(FEATURES)
    assert greedy.predict(x) == bold.predict(x)
    assert list(greedy.predict(x, eligible=[2, 0])) == [2, 0]
    predictions, estimates = np.array(list(greedy.predict(x).values())), greedy.decide(x).indices
    unit = np.ptp(predictions) / np.ptp(estimates)  # predictions are in the units of rewards
    np.testing.assert_allclose(np.diff(predictions), unit * np.diff(estimates))
    with pytest.raises(SettingError, match="Uniform has no model of the reward"):
        trained(Uniform(), arms=3).predict(x)


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_a_decision_survives_json(floor: float) -> None:
    one, other = (trained(NeuralUCB(), arms=3, floor=floor) for _ in range(2))
    decision = one.decide([1.0, 0.0, 0.0, -2.5])
    again = Decision.from_dict(json.loads(json.dumps(decision.as_dict())))
    assert again.as_dict() == decision.as_dict()
    one.learn(decision, 1.0)
    other.learn(again, 1.0)
    assert one.predict(np.ones(FEATURES)) == other.predict(np.ones(FEATURES))


def test_a_policy_may_be_given_by_name_or_class() -> None:
    for given in ("neural-ucb", NeuralUCB, NeuralUCB()):
        assert Bandit(given, arms=2, features=1).policy == NeuralUCB()
    with pytest.raises(SettingError, match="neural-ubc"):
        Bandit("neural-ubc", arms=2, features=1)
    with pytest.raises(SettingError, match="`policy` must be a policy"):
        Bandit(7, arms=2, features=1)  # type: ignore[arg-type]  # the point of the test


def test_repr_describes_the_bandit() -> None:
    text = repr(trained(LinUCB(), arms=3))
    assert "3 arms, 4 features, 30 rounds learned, seed 5: LinUCB(" in text
