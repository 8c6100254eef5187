"""What a model is without being told, what it says of its cost, and how it explores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rbmle import GLMTS, GLMUCB, LinUCB, NeuralUCB, Ridge
from rbmle.core.choosing import inverse_gaps
from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.features import Hashing
from rbmle.features.json_rows import Offered
from rbmle.service.log.records import pack_features
from rbmle.service.model.settings import (
    ModelSettings,
    default_featuriser,
    default_policy,
    service_policy,
    settings_in,
)


def test_slots_are_fewer_where_learning_would_pass_over_all_of_them() -> None:
    assert default_featuriser(default_policy()).bits == 16
    assert default_featuriser(NeuralUCB()).bits == 12  # θ̂ is an average
    assert default_featuriser(LinUCB()).bits == 10
    assert default_featuriser(LinUCB(model=Ridge(precision="diagonal"))).bits == 16
    assert default_featuriser(GLMUCB()).bits == default_featuriser(GLMTS()).bits == 10
    assert default_featuriser().is_scaled


def test_a_service_remembers_20_000_events_unless_it_is_told_otherwise() -> None:
    for settings in ("", "model.memory=Memory()"):
        usual: Any = service_policy("neural-ucb", settings)
        assert usual.model.memory.size == 20_000
    told: Any = service_policy("neural-ucb", "model.memory=Memory(keep='window',size=70)")
    assert told.model.memory.size == 70


def test_a_diagonal_precision_has_no_limit_of_slots() -> None:
    policy = LinUCB(model=Ridge(precision="diagonal"))
    model = ModelSettings(policy=policy, featuriser=Hashing(bits=20, is_scaled=True))
    assert model.notice is None
    model.warm_up()


@pytest.mark.parametrize("policy", [LinUCB(), GLMUCB()])
def test_a_linear_policy_says_what_many_slots_cost_and_what_to_do(policy: Policy[Any]) -> None:
    assert ModelSettings(policy=policy, featuriser=Hashing(bits=10)).notice is None
    notice = ModelSettings(policy=policy, featuriser=Hashing(bits=12)).notice
    assert notice is not None
    assert "4,096 × 4,096" in notice
    assert "learns about 60 a second" in notice
    assert "10 bits" in notice
    assert ModelSettings().notice is None


@pytest.mark.parametrize("policy", [LinUCB(), GLMUCB()])
def test_a_linear_policy_with_more_slots_than_a_matrix_can_have_is_refused(
    policy: Policy[Any],
) -> None:
    with pytest.raises(SettingError, match="at most 13 bits"):
        ModelSettings(policy=policy, featuriser=Hashing(bits=16))


def test_a_changed_policy_gets_slots_that_fit_it_and_the_first_one_has_its_own_again() -> None:
    usual = ModelSettings(seed=3)
    linear = usual.with_policy(GLMUCB())
    assert (linear.featuriser.bits, linear.seed) == (10, 3)
    assert linear.with_policy(default_policy()) == usual
    assert usual.with_policy(NeuralUCB()).featuriser == usual.featuriser
    chosen = ModelSettings(featuriser=Hashing(bits=8))
    assert chosen.with_policy(GLMUCB()).featuriser == chosen.featuriser


def test_a_setting_changes_the_tuned_policy_and_nothing_else_of_it() -> None:
    tuned: Any = default_policy()
    deaf = service_policy(settings="model.alarm=0")
    assert deaf == replace(tuned, model=replace(tuned.model, alarm=0.0))
    assert default_featuriser(deaf) == default_featuriser(tuned)
    wide = service_policy("neural-rbmle-pc", "bias=1e-4 model.network.width=50")
    network = replace(tuned.model.network, width=50)
    assert wide == replace(tuned, bias=1e-4, model=replace(tuned.model, network=network))
    assert service_policy("neural-rbmle-pc") == tuned


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("neural-rbmle-pc", ""),
        ("neural-rbmle-pc", "model.alarm=0.0"),
        ("neural-rbmle-pc", "bias=0.001"),  # the library's default
        ("neural-ucb", "exploration=0.5"),
        ("lin-ucb", ""),
    ],
)
def test_shown_settings_make_the_same_policy_again(name: str, settings: str) -> None:
    policy = service_policy(name, settings)
    assert settings_in(policy) == settings
    assert service_policy(name, settings_in(policy)) == policy


@pytest.mark.parametrize("sharpness", [-1.0, float("nan"), float("inf")])
def test_a_sharpness_that_is_none_is_refused(sharpness: float) -> None:
    with pytest.raises(SettingError, match="sharpness"):
        ModelSettings(sharpness=sharpness)


def test_the_chance_of_an_action_falls_with_the_gap_of_its_index() -> None:
    chances = inverse_gaps(np.array([[0.5, 0.4, 0.1]]), 10.0)[0]
    np.testing.assert_allclose(chances, [1 - 1 / 4 - 1 / 7, 1 / 4, 1 / 7])


def test_twins_have_equal_chances_wherever_they_stand() -> None:
    indices = np.array([0.3, 0.5, 0.5, 0.1])
    chances = inverse_gaps(indices[None], 20.0)[0]
    assert chances[1] == chances[2]
    order = np.array([2, 0, 3, 1])
    moved = inverse_gaps(indices[order][None], 20.0)[0]
    np.testing.assert_allclose(moved, chances[order], rtol=1e-12)


def test_a_model_explores_less_the_more_it_has_learned() -> None:
    model = ModelSettings(featuriser=Hashing(bits=8, is_scaled=True), seed=1)
    bandit = model.start()
    assert model.sharpness_of(bandit) == 100.0
    call = Offered([pack_features([{"user": "u"}])], ["a"], [pack_features([{"price": 1.0}])])
    for _ in range(15):
        bandit.learn_all(model.contexts([call], bandit), [0.0])
    assert model.sharpness_of(bandit) == 400.0


def test_after_a_drift_alarm_a_model_explores_as_a_new_one() -> None:
    model = ModelSettings(featuriser=Hashing(bits=8, is_scaled=True), seed=1)
    bandit = model.start()
    call = Offered([pack_features([{"user": "u"}])], ["a"], [pack_features([{"price": 1.0}])])
    rewards = [1.0] * 100 + [0.0] * 200
    while not bandit.resets:
        bandit.learn_all(model.contexts([call], bandit), [rewards[bandit.round]])
    assert model.sharpness_of(bandit) == 100.0
    for _ in range(15):
        bandit.learn_all(model.contexts([call], bandit), [0.0])
    assert model.sharpness_of(bandit) == 400.0
