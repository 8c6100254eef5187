"""Mistaken arguments are refused with a message, at every entry point, and leave no trace."""

import pickle
from copy import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rbmle import (
    Bandit,
    Hashing,
    LinRBMLE,
    LinUCB,
    Memory,
    Network,
    NeuralUCB,
    Replay,
    Ridge,
    Uniform,
)
from rbmle.core.errors import (
    ArmError,
    ContextError,
    EligibilityError,
    RBMLEError,
    RewardError,
    SettingError,
)
from tests.samples import bytes_of

X = np.eye(2)


def four_arms(**settings: Any) -> Bandit:
    return Bandit(LinUCB(), arms=4, features=2, **settings)


def refused(bandit: Bandit, attempt: Any, error: type[Exception], message: str) -> None:
    before, round = bytes_of(bandit), bandit.round
    with pytest.raises(error, match=message):
        attempt(bandit)
    assert (bytes_of(bandit), bandit.round) == (before, round)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": "abc"}, r"`arms` must be a list, got the string 'abc'.*arms=\['abc'\]"),
        ({"arms": b"abc"}, "`arms` must be a list"),
        ({"arms": {"a", "b"}}, "`arms` must be a list, got the set .*no defined order"),
        ({"arms": True}, "`arms` must be an integer, got True"),
        ({"arms": 3.0}, "`arms` must be an integer, got 3.0; write 3"),
        ({"arms": 3j}, "`arms` must be an integer, got 3j"),
        ({"features": 4.0}, "`features` must be an integer of at least 1, got 4.0; write 4"),
        ({"features": True}, "`features` must be an integer of at least 1, got True"),
        ({"features": "age"}, "`features` must be a number of features"),
        ({"features": {"age", "income"}}, "`features` must be a list, got the set"),
        ({"seed": 1.0}, "`seed` must be an integer, got 1.0; write 1"),
        ({"seed": "1"}, "`seed` must be an integer, got '1'"),
        ({"draws": True}, "`draws` must be an integer of at least 0, got True"),
        ({"floor": True}, "`floor` must be a probability between 0 and 1, got True"),
        ({"floor": "0.1"}, "`floor` must be a probability between 0 and 1, got '0.1'"),
    ],
)
def test_mistaken_settings_of_a_bandit_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Bandit(LinUCB(), **({"arms": 2, "features": 2} | settings))


# Arms: 1.0 and True are not the arm 1, and a string is not the list of its letters.


@pytest.mark.parametrize("id", [1.0, True, np.float64(1.0), np.True_, None, 1j, (1,), ["a"]])
def test_arm_ids_are_strings_or_integers(id: Any) -> None:
    for attempt in (
        lambda b: b.learn([1.0, 0.0], arm=id, reward=1.0),
        lambda b: b.decide([1.0, 0.0], eligible=[0, id]),
        lambda b: b.decide_many(X, eligible=[0, id]),
        lambda b: b.rank([1.0, 0.0], 1, eligible=[0, id]),
        lambda b: b.predict([1.0, 0.0], eligible=[0, id]),
        lambda b: b.partial_fit(X, [0, id], [1.0, 0.5]),
        lambda b: b.add_arm(id),
        lambda b: b.retire_arm(id),
    ):
        refused(four_arms(), attempt, ArmError, "strings or integers|arm is missing")
    if id is not None:
        open_arms = Bandit(LinUCB(), features=2, encoding="per-arm")
        refused(open_arms, lambda b: b.decide(X, eligible=["a", id]), ArmError, "strings or int")
        refused(open_arms, lambda b: b.learn([1.0, 0.0], arm=id, reward=1.0), ArmError, "strings")


@pytest.mark.parametrize(
    ("eligible", "message"),
    [
        ("ab", r"`eligible` must be a list, got the string 'ab'.*eligible=\['ab'\]"),
        ({"a", "b"}, "`eligible` must be a list, got the set"),
        (3, "`eligible` must be a list, got 3"),
    ],
)
def test_eligible_is_a_list(eligible: Any, message: str) -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2)
    for attempt in (
        lambda b: b.decide([1.0, 0.0], eligible=eligible),
        lambda b: b.decide_many(X, eligible=eligible),
        lambda b: b.rank([1.0, 0.0], 1, eligible=eligible),
        lambda b: b.predict([1.0, 0.0], eligible=eligible),
    ):
        refused(bandit, attempt, EligibilityError, message)


def test_arms_may_be_any_list_of_ids() -> None:
    for arms in (
        ("a", "b"),
        pd.Index(["a", "b"]),
        np.array(["a", "b"]),
        {"a": 1, "b": 2},
        iter("ab"),
    ):
        bandit = Bandit(LinUCB(), arms=arms, features=2)
        assert bandit.decide([1.0, 0.0], eligible=pd.Series(["b", "a"])).arms == ("b", "a")


# Features and rewards: strings, complex numbers and dates are no numbers.


@pytest.mark.parametrize(
    "x",
    [
        ["1", "2"],
        [1.0, "2"],
        np.array(["1", "2"]),
        np.array(["1", 2.0], object),
        [1j, 1.0],
        np.array([1j, 1.0]),
        np.array([1j, 1.0], object),
        np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"),
        np.array([1, 2], "timedelta64[s]"),
        [b"1", 2.0],
    ],
)
def test_only_numbers_are_features(x: Any) -> None:
    matrix = [x, x] if isinstance(x, list) else np.array([x, x])
    bandit = four_arms()
    for attempt in (
        lambda b: b.decide(x),
        lambda b: b.rank(x, 1),
        lambda b: b.predict(x),
        lambda b: b.learn(x, arm=0, reward=1.0),
        lambda b: b.decide_many(matrix),
        lambda b: b.partial_fit(matrix, [0, 1], [1.0, 0.0]),
    ):
        refused(bandit, attempt, ContextError, "not an array of numbers")
    per_arm = Bandit(LinUCB(), features=2, encoding="per-arm")
    refused(per_arm, lambda b: b.decide(matrix), ContextError, "not an array of numbers")


@pytest.mark.parametrize("value", ["2.5", 1j, np.complex64(1), None, [1.0]])
def test_only_numbers_are_named_features(value: Any) -> None:
    bandit = Bandit(LinUCB(), arms=2, features=["age", "income"])
    row = {"age": 1.0, "income": value}
    refused(bandit, lambda b: b.decide(row), ContextError, "feature 'income'")
    refused(bandit, lambda b: b.decide_many([row]), ContextError, "feature 'income'")
    bandit.decide({"age": True, "income": np.float32(2.0)})


@pytest.mark.parametrize(
    "reward", ["1", "0.5", b"1", 1j, np.complex64(1), None, [1.0], np.array([1.0]), "much"]
)
def test_only_numbers_are_rewards(reward: Any) -> None:
    bandit = four_arms()
    for attempt in (
        lambda b: b.learn(b.decide([1.0, 0.0]), reward),
        lambda b: b.learn([1.0, 0.0], arm=0, reward=reward),
        lambda b: b.partial_fit(X, [0, 1], [0.0, reward]),
        lambda b: b.learn_all(b.decide([1.0, 0.0]).context, [reward]),
    ):
        refused(bandit, attempt, RewardError, "reward")


def test_numbers_of_many_kinds_are_taken() -> None:
    bandit = four_arms()
    for reward in (
        1,
        0.5,
        True,
        np.float32(0.5),
        np.int8(1),
        np.True_,
        Fraction(1, 2),
        np.array(1.0),
    ):
        bandit.learn([1, np.float32(0.5)], arm=0, reward=reward)  # type: ignore[arg-type]  # the point of it
    assert bandit.round == 8
    rewards = pd.Series([1.0, 0.0], index=[7, 8])
    bandit.partial_fit(pd.DataFrame(X), pd.Series([0, 1]), rewards)
    bandit.partial_fit(X[:1], [0], pd.Series([1.0], index=[7]))
    bandit.decide(np.array([True, False]))
    bandit.decide(np.array([1.0, 2], object))


def test_hashed_features_are_not_complex() -> None:
    bandit = Bandit(Uniform(), arms=2, features=Hashing(bits=4))
    refused(bandit, lambda b: b.decide({"x": 1j}), ContextError, "finite number")


# partial_fit(X, arms, rewards), and not (X, rewards, arms).


@pytest.mark.parametrize(
    ("arms", "rewards"),
    [
        ([0.0, 1.0], [3, 1]),
        ([0.5, 1.0], [3, 1]),
        (np.array([0.0, 1.0]), np.array([3, 1])),
        ([-1, 1], [3, 2]),
        ([7, 1], [3, 2]),
    ],
)
def test_swapped_arms_and_rewards_are_refused(arms: Any, rewards: Any) -> None:
    message = r"the order of arguments is partial_fit\(X, arms, rewards\)"
    refused(four_arms(), lambda b: b.partial_fit(X, arms, rewards), ArmError, message)


def test_string_arms_as_rewards_are_refused() -> None:
    bandit = Bandit(LinUCB(), arms=["a", "b"], features=2)
    message = r"the order of arguments is partial_fit\(X, arms, rewards\)"
    refused(bandit, lambda b: b.partial_fit(X, [1, 0], ["a", "b"]), ArmError, message)
    refused(bandit, lambda b: b.partial_fit(X, [1.0, 0.0], ["a", "b"]), ArmError, message)


def test_clicks_in_the_place_of_arms_give_a_warning() -> None:
    """Both are integers and ids of arms, so it cannot be told for sure."""
    with pytest.warns(UserWarning, match="the arms played are 0 and 1 alone"):
        four_arms().partial_fit(np.ones((4, 2)), [0, 1, 1, 0], [0, 1, 2, 3])


@pytest.mark.filterwarnings("error")
def test_logs_that_are_in_order_give_no_warning() -> None:
    four_arms().partial_fit(np.ones((4, 2)), [0, 1, 2, 3], [0, 1, 1, 0])
    four_arms().partial_fit(np.ones((4, 2)), [0, 1, 0, 1], [0.0, 1.0, 2.5, 3.0])
    Bandit(LinUCB(), arms=2, features=2).partial_fit(np.ones((3, 2)), [0, 1, 0], [0, 1, 2])


@pytest.mark.parametrize(
    ("arms", "rewards", "error"),
    [("ab", [1.0, 0.0], ArmError), ([0, 1], "10", RewardError), ([0, 1], 1.0, RewardError)],
)
def test_a_batch_is_made_of_lists(arms: Any, rewards: Any, error: type[Exception]) -> None:
    refused(four_arms(), lambda b: b.partial_fit(X, arms, rewards), error, "must be a list")


# Advice fits the call and the bandit.


def message_of(attempt: Any) -> str:
    with pytest.raises(RBMLEError) as caught:
        attempt()
    return str(caught.value)


def test_a_matrix_to_learn_from_gets_advice_that_helps() -> None:
    shared, per_arm = four_arms(), Bandit(LinUCB(), features=2, encoding="per-arm")
    matrix = np.ones((3, 2))
    assert "use partial_fit" in message_of(lambda: shared.learn(matrix, arm=0, reward=1.0))
    advice = message_of(lambda: per_arm.learn(matrix, reward=1.0))
    assert "the row of the arm that was played, as in X[i]" in advice
    assert "encoding='per-arm'" not in advice
    for batch in (shared.decide_many, per_arm.decide_many):
        advice = message_of(lambda batch=batch: batch(np.ones(2)))
        assert "use decide" in advice
        assert "encoding='disjoint'" not in advice
    assert "one matrix for each round" in message_of(lambda: per_arm.decide_many(matrix))
    assert "one matrix for each round" in message_of(lambda: per_arm.decide_many(3))
    assert "use learn(x" in message_of(lambda: shared.partial_fit(np.ones(2), [0], [1.0]))
    assert "encoding='disjoint'" in message_of(lambda: per_arm.decide(np.ones(2)))


def test_a_data_frame_for_one_context_gets_advice_that_helps() -> None:
    frame = pd.DataFrame({"age": [1.0], "income": [2.0]})
    named = Bandit(LinUCB(), arms=2, features=["income", "age"])
    assert "x.iloc[0]," in message_of(lambda: named.decide(frame))
    assert "x.iloc[0].to_numpy()" in message_of(lambda: four_arms().decide(frame))
    named.decide(frame.iloc[0])
    four_arms().decide(frame.iloc[0].to_numpy())


@pytest.mark.parametrize("k", [1.0, True, "1", None])
def test_the_length_of_a_list_is_an_integer(k: Any) -> None:
    with pytest.raises(SettingError, match="`k` must be an integer"):
        four_arms().rank([1.0, 0.0], k)


def test_a_known_arm_is_not_added_again() -> None:
    refused(four_arms(), lambda b: b.add_arm(3), ArmError, "arm 3 is already in play")
    bandit = four_arms()
    bandit.retire_arm(3)
    bandit.add_arm(3)


# Saving.


def test_saving_to_a_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=f"{tmp_path}'$") as caught:
        four_arms().save(tmp_path)
    assert ".part" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)  # the name of the file beside it is too long
    with pytest.raises(OSError, match=r"x'$") as caught:
        four_arms().save(path)
    assert ".part" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (LinUCB, {"alpha": 1}, r"LinUCB has no setting 'alpha'; did you mean exploration=…\?"),
        (LinUCB, {"ridge": 1}, r"did you mean model=Ridge\(ridge=…\)\? It has model, explor"),
        (LinUCB, {"explorations": 1}, r"did you mean exploration=…"),
        (LinUCB, {"nothing_like_it": 1}, r"no setting 'nothing_like_it'; it has model, expl"),
        (LinRBMLE, {"nu": 1}, r"did you mean bias=…"),
        (NeuralUCB, {"hidden": 64}, r"mean model=Regression\(network=Network\(width=…\)\)\?"),
        (Ridge, {"lambda_": 1}, r"Ridge has no setting 'lambda_'; did you mean ridge=…"),
        (LinUCB, {"exploration": "x"}, "must be a finite number, 0 or more, got 'x'"),
        (Network, {"width": "x"}, "`width` must be an integer, got 'x'"),
        (Network, {"depth": 2.0}, "`depth` must be an integer, got 2.0; write 2"),
        (Replay, {"steps": "x"}, "`steps` must be an integer, got 'x'"),
        (Memory, {"keep": "window", "size": "x"}, "`size` must be an integer, got 'x'"),
    ],
)
def test_a_mistaken_setting_of_a_policy_gets_a_hint(kind: Any, settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        kind(**settings)


def test_a_setting_without_its_name_gets_a_hint() -> None:
    policy: Any = LinUCB
    with pytest.raises(SettingError, match=r"by name, as in LinUCB\(exploration=0.5\); got 0.5"):
        policy(0.5)


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("exploration", 3, r"make another one with LinUCB\(exploration=3\)"),
        ("ridge", 0.5, r"make another one with LinUCB\(model=Ridge\(ridge=0.5\)\)"),
        ("floor", 0.1, r"make another one with Bandit\(…, floor=0.1\)"),
        ("policy", None, r"make another one with Bandit\(…, policy=None\)"),
        ("nonsense", 1, "cannot be set on a bandit: .* is made$"),
    ],
)
def test_settings_of_a_bandit_cannot_be_changed_later(name: str, value: Any, advice: str) -> None:
    bandit = Bandit(LinUCB(), arms=2, features=2)
    with pytest.raises(AttributeError, match=advice):
        setattr(bandit, name, value)
    assert bandit.floor == 0.0
    assert not hasattr(bandit, "nonsense")
    for twin in (copy(bandit), pickle.loads(pickle.dumps(bandit)), bandit.snapshot()):
        assert twin.decide([1.0, 2.0], id="a").arm == bandit.decide([1.0, 2.0], id="a").arm


def test_an_arm_is_listed_once_and_retired_once() -> None:
    with pytest.raises(ArmError, match="arm 'a' is listed twice; arm ids must differ"):
        Bandit(LinUCB(), arms=["a", "b", "a"], features=2)
    bandit = Bandit(LinUCB(), arms=["a", "b", "c"], features=2)
    bandit.retire_arm("a")
    with pytest.raises(ArmError, match=r"retired already; add_arm\('a'\) brings it back"):
        bandit.retire_arm("a")
    bandit.add_arm("a")
    assert bandit.decide([1.0, 0.0]).arms == ("a", "b", "c")


def test_a_bandit_that_takes_any_rows_has_no_arms_to_add_or_retire() -> None:
    bandit = Bandit(LinUCB(), features=2, encoding="per-arm")
    with pytest.raises(ArmError, match="arm 'a' need not be added: this bandit takes any arms"):
        bandit.add_arm("a")
    with pytest.raises(ArmError, match=r"arm 'a' cannot be retired.*leave out its row"):
        bandit.retire_arm("a")
    assert bandit.decide([[1.0, 0.0]]).arm == 0
