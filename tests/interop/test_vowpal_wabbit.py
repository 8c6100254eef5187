"""Vowpal Wabbit keeps the promises of a policy, and is told what it must know."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle import Bandit
from rbmle.cli import app
from rbmle.core.encoding import disjoint
from rbmle.core.errors import RewardError, SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.experiments.code import versions
from rbmle.interop.needs import is_there
from rbmle.interop.vowpal_wabbit import add_label, everywhere, lines
from rbmle.policies.registry import RIVALS, name_of, parse_policy
from rbmle.testing import policy_checks
from rbmle.testing.policies import PROMISES

NAMES = [
    name + more
    for name in RIVALS
    if name.startswith("vw:")
    for more in ("", ":interactions=quadratic")
]
SHARED = {"a_new_arm_leaves_the_others_as_they_were": "a pmf is shared with the new arm"}
needs_vw = pytest.mark.skipif(
    not is_there("vowpalwabbit"), reason="vowpalwabbit is not installed: pip install 'rbmle[vw]'"
)


@needs_vw
@pytest.mark.parametrize("promise", [promise.__name__ for promise in PROMISES])
@pytest.mark.parametrize("name", NAMES)
def test_every_explorer_keeps_every_promise(name: str, promise: str) -> None:
    is_lucky = name == "vw:cover"  # whose policies agree, and leave nothing to the new arm
    excused = {} if is_lucky else SHARED
    dict(policy_checks(parse_policy(name).policy(), expected_failures=excused))[promise]()


@needs_vw
@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_settings_is_read_and_said_again(name: str) -> None:
    spec = parse_policy(name)
    assert spec.name == ":".join(name.split(":")[:2])
    assert name_of(spec.policy()) == spec.name
    assert ("-q xx" in spec.policy().options) == name.endswith("quadratic")  # type: ignore[attr-defined]  # of these policies


@needs_vw
@pytest.mark.parametrize("name", ["vw:squarecb", "vw:regcb"])
def test_explorers_by_regression_get_the_range_of_costs(name: str) -> None:
    """Costs are −reward: rewards in [0, 1] cost −1 to 0, those in [−5, 5] cost −5 to 5."""
    options = parse_policy(name).policy().options  # type: ignore[attr-defined]  # of these policies
    assert "--cb_min_cost -1.0 --cb_max_cost -0.0" in options
    wide = parse_policy(f"{name}:lowest=-5:highest=5").policy()
    assert "--cb_min_cost -5.0 --cb_max_cost 5.0" in wide.options  # type: ignore[attr-defined]  # of these policies
    bandit = Bandit(wide, arms=2, features=1)
    bandit.learn([1.0], arm=0, reward=-4.0)
    with pytest.raises(RewardError):
        bandit.learn([1.0], arm=0, reward=6.0)
    with pytest.raises(SettingError, match="`lowest` must be less than `highest`"):
        parse_policy(f"{name}:lowest=2")


def test_arms_have_features_of_their_own() -> None:
    """Three features, the second 0: arm 2 has the places 6 and 8."""
    contexts = disjoint([0.5, 0.0, -2.0], np.array([0, 2]), 3)
    assert lines(contexts) == ["|x 0:0.5 2:-2.0", "|x 6:0.5 8:-2.0"]
    assert lines(everywhere(contexts.row(1), 2)) == ["|x 0:0.5 2:-2.0", "|x 3:0.5 5:-2.0"]


def test_the_played_arm_has_a_label_of_action_cost_and_probability() -> None:
    texts = lines(disjoint([1.0], np.arange(2), 1))
    assert add_label(texts, 1, 0.25, 0.5) == ["|x 0:1.0", "1:-0.25:0.5 |x 1:1.0"]


@needs_vw
def test_epsilon_states_its_probabilities() -> None:
    """Of three arms the best has 1 − ε + ε/3, the others ε/3."""
    bandit = Bandit("vw:epsilon:epsilon=0.3", arms=3, features=1, seed=0)
    for _ in range(30):
        for arm in range(3):
            bandit.learn([1.0], arm=arm, reward=float(arm == 1))
    decision = bandit.decide([1.0])
    assert decision.probabilities is not None
    np.testing.assert_allclose(decision.probabilities, [0.1, 0.8, 0.1], atol=1e-6)
    assert decision.propensity == decision.probabilities[int(decision.arm)]


@needs_vw
def test_examples_from_before_a_new_arm_are_replayed_with_fewer_arms(tmp_path: Path) -> None:
    bandit = Bandit("vw:cover", arms=["a", "b"], features=2, seed=0)
    for t in range(80):
        if t == 40:
            bandit.add_arm("c")
        bandit.learn(bandit.decide(x := some(t)), reward=float(x[0] > 0))
    bandit.save(tmp_path / "bandit.rbmle")
    again = Bandit.load(tmp_path / "bandit.rbmle")
    for t in range(80, 100):
        first, second = bandit.decide(some(t), id=str(t)), again.decide(some(t), id=str(t))
        np.testing.assert_array_equal(first.probabilities, second.probabilities)


@needs_vw
def test_a_state_can_be_sent_to_another_process() -> None:
    bandit = Bandit("vw:squarecb", arms=2, features=2, seed=0)
    for t in range(20):
        bandit.learn(bandit.decide(some(t)), reward=1.0)
    twin: Any = pickle.loads(pickle.dumps(bandit.state))
    contexts = disjoint(some(5), np.arange(2), 2)
    first, second = (
        bandit.policy.index(state, contexts, generator(0, Purpose.INDEX, 0))
        for state in (bandit.state, twin)
    )
    np.testing.assert_array_equal(first, second)


@needs_vw
def test_a_run_records_the_version(tmp_path: Path) -> None:
    arguments = [
        "run",
        "--dataset",
        "digits",
        "--policy",
        "vw:squarecb,vw:squarecb:interactions=quadratic",
    ]
    options = ["--rounds", "20", "--seeds", "1", "--executor", "serial", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    assert "interactions='quadratic'" in " ".join(result.output.split())
    assert "vowpalwabbit" in versions()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(SettingError, match=r"needs vowpalwabbit.*pip install 'rbmle\[vw\]'"):
        parse_policy("vw:squarecb")


def some(t: int) -> np.ndarray:
    return generator(1, Purpose.ENVIRONMENT, t).normal(size=2)
