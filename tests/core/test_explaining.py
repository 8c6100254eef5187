"""Why a bandit prefers an arm: estimate, bonus, index, and the features that matter."""

import numpy as np
import pytest

import rbmle
from rbmle import Bandit, Hashing, LinUCB, NeuralUCB
from rbmle.core.policy import Predicts, has

FEATURES = ["rain", "sun", "noise"]


GREEDY = (
    *(LinUCB(exploration=0), NeuralUCB(exploration=0), rbmle.NeuralRBMLEPC(bias=0)),
    *(rbmle.NeuralRBMLEGA(bias=0, is_bounded=False), rbmle.NeuralLinUCB(exploration=0)),
    *(rbmle.EENet(exploration=0), rbmle.GLMUCB(exploration=0), rbmle.NeuFastCB()),
)


def _taught(policy: object, **settings: object) -> Bandit:
    bandit = Bandit(policy, arms=["tea", "lemonade"], seed=0, **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for _ in range(150):
        x = rng.random(3)
        for arm, pays in (("tea", x[0] > 0.5), ("lemonade", x[1] > 0.5)):
            given = dict(zip(FEATURES, x.tolist(), strict=True))
            bandit.learn(given, arm=arm, reward=float(pays))
    return bandit


@pytest.mark.parametrize("name", sorted(rbmle.POLICIES))
def test_every_policy_can_be_explained(name: str) -> None:
    bandit = _taught(name, features=FEATURES)
    x = {"rain": 0.9, "sun": 0.1, "noise": 0.5}
    before = bandit.round, bandit.decisions
    found = bandit.explain(x)
    assert (bandit.round, bandit.decisions) == before
    assert {each.arm for each in found.arms} == {"tea", "lemonade"}
    assert found.best.index == max(each.index for each in found.arms)
    for each in found.arms:
        if has(bandit.policy, Predicts):
            assert each.estimate is not None
            assert each.bonus is not None
            assert each.estimate + each.bonus == pytest.approx(each.index)
            assert each.features
    assert str(found).count("\n") == 2


def test_the_estimate_and_the_bonus_are_those_of_the_formula() -> None:
    bandit = _taught(LinUCB(), features=FEATURES)
    x = {"rain": 0.9, "sun": 0.1, "noise": 0.5}
    found, expected = bandit.explain(x), bandit.predict(x)
    assert found.best.arm == bandit.decide(x).arm
    for each in found.arms:
        assert each.estimate == pytest.approx(expected[each.arm])
        assert each.bonus is not None
        assert each.bonus > 0


@pytest.mark.parametrize("policy", GREEDY, ids=lambda policy: type(policy).__name__)
def test_a_policy_that_does_not_explore_has_no_bonus(policy: object) -> None:
    bandit = _taught(policy, features=FEATURES)
    for each in bandit.explain({"rain": 0.9, "sun": 0.1, "noise": 0.5}).arms:
        assert each.bonus == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"scaling": "running"}])
def test_the_feature_that_decides_comes_first(settings: dict[str, str]) -> None:
    bandit = _taught(NeuralUCB(), features=FEATURES, **settings)
    found = {
        each.arm: each for each in bandit.explain({"rain": 0.95, "sun": 0.9, "noise": 0.5}).arms
    }
    assert found["tea"].features[0].name == "rain"
    assert found["lemonade"].features[0].name == "sun"
    assert found["tea"].features[0].effect > 0
    assert len(bandit.explain({"rain": 1, "sun": 1, "noise": 1}, top=1).best.features) == 1


def test_hashed_features_are_named_with_their_values() -> None:
    bandit = Bandit("lin-ucb", features=Hashing(bits=8), encoding="per-arm", seed=0)
    offers = [{"topic": "sport"}, {"topic": "news"}]
    for _ in range(100):
        for reader, liked in (("fan", 0), ("voter", 1)):
            for arm, offer in enumerate(offers):
                shown = ({"reader": {"kind": reader}}, offer)
                bandit.learn(shown, arm=str(arm), reward=float(arm == liked))
    found = bandit.explain(({"reader": {"kind": "fan"}}, offers), eligible=["0", "1"])
    assert found.best.arm == "0"
    assert {each.name for each in found.best.features} == {"reader.kind=fan", "topic=sport"}


def test_a_policy_without_a_model_has_an_index_alone() -> None:
    found = Bandit("uniform", arms=2, features=2).explain([0.0, 1.0])
    assert found.best.estimate is None
    assert found.best.features == ()
