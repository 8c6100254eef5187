"""Policies as learners of coba, and its environments as ours."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rbmle import Bandit, LinUCB
from rbmle.core.errors import ContextError, SettingError
from rbmle.core.types import Encoding
from rbmle.experiments.trial import Trial, play
from rbmle.interop.needs import is_there
from tests.contract.environment_promises import PROMISES, Promise

coba = pytest.importorskip("coba", reason="coba is not installed: pip install 'rbmle[coba]'")
from coba.environments import Finalize  # noqa: E402
from coba.pipes import IterableSource  # noqa: E402

from rbmle.interop import CobaEnvironment, CobaLearner  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def labelled(n: int = 200) -> Any:
    """Return environments of coba made of rows whose class is the larger of two features."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    labels = [coba.Categorical("ab"[int(x[0] > x[1])], ["a", "b"]) for x in X]
    rows = list(zip(X.tolist(), labels, strict=True))
    return coba.Environments.from_supervised(IterableSource(rows), label_type="c")


def test_in_an_experiment_a_learner_is_the_bandit_that_it_wraps() -> None:
    worlds = labelled().shuffle(n=2)
    learner = CobaLearner("lin-ucb", seed=5)
    played = coba.Experiment(worlds, [learner]).run(quiet=True).interactions.to_pandas()
    bandit = Bandit(LinUCB(), arms=["(1, 0)", "(0, 1)"], features=3, seed=5)
    rewards = []
    for each in Finalize().filter(worlds[0].read()):
        decision = bandit.decide([*each["context"], 1.0])
        action = each["actions"][decision.arms.index(decision.arm)]
        rewards.append(each["rewards"](action))
        bandit.learn(decision, rewards[-1])
    first = played[played.environment_id == 0]["reward"].to_numpy(float)
    np.testing.assert_array_equal(first, rewards)
    assert first[100:].mean() > 0.9


def test_probabilities_are_returned_if_they_are_known() -> None:
    learner = CobaLearner("neu-square-cb", seed=0)
    action, chance = learner.predict([1.0, 2.0], ["a", "b", "c"])["action_prob"]
    scores = {each: learner.score([1.0, 2.0], ["a", "b", "c"], each) for each in "abc"}
    assert sum(scores.values()) == pytest.approx(1)
    assert chance == scores[action]
    assert CobaLearner("lin-ucb").predict([1.0], [1, 2]).keys() == {"action"}
    with pytest.raises(SettingError, match="LinUCB knows no probabilities"):
        CobaLearner("lin-ucb").score([1.0], [1, 2], 1)


def test_actions_may_come_and_go() -> None:
    learner = CobaLearner("lin-ucb")
    learner.learn(None, "tea", 1.0, 0.5)  # a decision of someone else
    assert learner.predict(None, ["coffee", "juice"])["action"] in ("coffee", "juice")
    assert learner.predict(None, ["tea"])["action"] == "tea"


def test_actions_with_features_are_distinguished_by_them() -> None:
    """The reward is the action's only feature."""
    learner = CobaLearner("lin-ucb", encoding="per-arm")
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = rng.random((3, 1)).tolist()
        action = learner.predict([0.5], actions)["action"]
        learner.learn([0.5], action, action[0], None)
    assert learner.predict([0.5], [[0.1], [0.9], [0.5]])["action"] == [0.9]


def test_a_learner_is_named_by_its_policy_and_settings() -> None:
    params = CobaLearner("lin-ucb:exploration=0.5").params
    assert params == {"family": "rbmle lin-ucb", "settings": "exploration=0.5", "seed": 0}


@pytest.mark.parametrize(
    ("context", "message"),
    [({"a": 1}, "sparse; add .dense"), (["red", 1.0], "not all numbers; make them coba.Categor")],
)
def test_features_other_than_numbers_are_refused(context: Any, message: str) -> None:
    with pytest.raises(ContextError, match=message):
        CobaLearner("lin-ucb").predict(context, [1, 2])


SYNTHETIC: dict[str, Any] = {"n_actions": 3, "n_context_features": 2, "seed": 1}


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("action_features", [0, 2])
def test_an_environment_of_coba_keeps_the_contract_of_ours(
    promise: Promise, action_features: int
) -> None:
    def world(name: str, seed: int) -> CobaEnvironment:
        more = SYNTHETIC | {"n_action_features": action_features, "seed": seed}
        source = coba.Environments.from_linear_synthetic(300, **more)[0]
        return CobaEnvironment(source=source, name=name)

    promise(world("linear", 1), [world("linear", 1), world("linear", 2)])
    is_shared = world("linear", 1).encoding is Encoding.DISJOINT
    assert is_shared == (action_features == 0)


def test_a_trial_is_played_on_an_environment_of_coba() -> None:
    world = CobaEnvironment(source=labelled()[0], name="larger")
    trial = Trial(policy=LinUCB(), name="lin-ucb", environment=world, horizon=200, seed=0)
    assert (world.arms, world.features, world.rows) == (2, 3, 200)
    assert play(trial).regrets[100:].mean() < 0.1


def test_an_environment_without_all_rewards_is_refused() -> None:
    logged = [coba.LoggedInteraction([1.0], "a", 1.0)]
    with pytest.raises(SettingError, match="no interactions with rewards for every action"):
        CobaEnvironment(source=logged).arms  # noqa: B018
    uneven = [coba.SimulatedInteraction([1.0], list("ab")[:n], [1.0, 0.0][:n]) for n in (1, 2)]
    with pytest.raises(SettingError, match="between 1 and 2 actions"):
        CobaEnvironment(source=uneven).arms  # noqa: B018


@pytest.mark.slow
@pytest.mark.skipif(not is_there("vowpalwabbit"), reason="needs pip install 'rbmle[vw]'")
def test_the_comparison_plays_our_policies_and_cobas(capsys: pytest.CaptureFixture[str]) -> None:
    example = loaded(ROOT / "benchmarks" / "coba_side_by_side.py")
    means = example.mean_rewards("digits", 60, 1)
    assert list(means.index) == list(example.learners())
    assert ((means >= 0) & (means <= 1)).all()
    shown = example.table(means.to_frame())
    assert f"**{means.max():.3f}**" in shown
    assert len(shown.splitlines()) == 2 + len(means)


def loaded(path: Path) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
