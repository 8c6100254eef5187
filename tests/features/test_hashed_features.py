"""Dictionaries of any features as contexts of a bandit: hashed as the service hashes them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from rbmle import Bandit, Hashing, LinUCB, NeuralUCB
from rbmle.core.errors import ContextError, EligibilityError, FeatureError, SettingError
from rbmle.core.types import Contexts
from rbmle.features.hashing import MOST_PRODUCTS
from rbmle.features.json_rows import Offered
from rbmle.service.model.features import contexts_of
from tests.core.test_named_features import Polars
from tests.features.test_hashing import ACTIONS, CONTEXT, IDS, features
from tests.samples import bytes_of

GUEST = {"user": {"country": "DE", "age": 31}, "hour": 20, "member": True, "at": [0.5, 2.0]}


def disjoint() -> Bandit:
    return Bandit(LinUCB(), arms=["tea", "coffee"], features=Hashing(bits=6))


def per_arm(**settings: Any) -> Bandit:
    return Bandit(LinUCB(), features=Hashing(bits=6), encoding="per-arm", **settings)


def same(first: Contexts, second: Contexts) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first.rows, second.rows, strict=True))


def sent(hashing: Hashing, context: Any, actions: list[Any], ids: list[str]) -> Contexts:
    """Return the rows of the service, from the JSON that a client sends."""
    raw = [msgspec.Raw(msgspec.json.encode(part)) for part in (context, *actions)]
    return contexts_of(hashing, [Offered(raw[:1], ids, raw[1:])])


@pytest.mark.parametrize("ids_are_features", [True, False])
@pytest.mark.parametrize("interactions", [None, (), (("user", "article"), ("", "_id"))])
def test_features_in_the_library_are_those_of_the_service(
    ids_are_features: bool, interactions: Any
) -> None:
    hashing = Hashing(bits=8, ids_are_features=ids_are_features, interactions=interactions)
    bandit = Bandit(LinUCB(), features=hashing, encoding="per-arm")
    expected = sent(hashing, CONTEXT, ACTIONS, IDS)
    assert same(hashing.rows((CONTEXT, ACTIONS), IDS), expected)
    decision = bandit.decide((CONTEXT, ACTIONS), eligible=IDS, id="x")
    assert same(decision.context, expected.row(IDS.index(str(decision.arm))))
    pairs = [(CONTEXT, own) for own in ACTIONS]
    assert same(bandit.decide(pairs, eligible=IDS, id="x").context, decision.context)


@given(features, features)
def test_any_features_in_the_library_are_those_of_the_service(shared: Any, own: Any) -> None:
    hashing = Hashing(bits=6)
    try:
        expected = sent(hashing, shared, [own], ["a"])
    except FeatureError:  # an empty name, which JSON of a client must not have
        return
    assert same(hashing.row((shared, own), "a"), expected)


def test_a_dictionary_alone_is_an_action_without_a_context() -> None:
    hashing = Hashing(ids_are_features=False)
    expected = sent(hashing, [], [[GUEST]], ["a"])
    assert same(hashing.row(GUEST), expected)
    decision = Bandit(LinUCB(), arms=1, features=hashing).decide(GUEST)
    assert same(decision.context, expected)


def test_a_reward_is_learned_alike_by_decision_by_features_and_in_a_batch() -> None:
    shared, own = {"hour": 20}, [{"kind": "black"}, {"kind": "green", "price": 2.5}]
    for settings in ({}, {"arms": ["tea", "coffee"]}, {"arms": 2}):
        bandits = [per_arm(**settings) for _ in range(3)]
        decision = bandits[0].decide((shared, own), id="x")
        x = (shared, own[decision.arms.index(decision.arm)])
        bandits[0].learn(decision, 1.0)
        bandits[1].learn(x, arm=decision.arm, reward=1.0)
        bandits[2].partial_fit([x], [decision.arm], [1.0])
        assert len({bytes_of(bandit) for bandit in bandits}) == 1


def test_rows_of_a_data_frame_are_dictionaries() -> None:
    frame = pd.DataFrame({"country": ["DE", "NL"], "age": [31, 25], "member": [True, False]})
    records: list[Any] = [
        {"country": "DE", "age": 31, "member": True},
        {"country": "NL", "age": 25, "member": False},
    ]
    hashing = Hashing()
    assert same(hashing.rows(frame), hashing.rows(records))
    assert same(hashing.rows(Polars(frame.to_dict("list"))), hashing.rows(records))
    assert same(hashing.row(frame.iloc[1]), hashing.row(records[1]))
    together, each = disjoint(), disjoint()
    together.partial_fit(frame, ["tea", "coffee"], [0.0, 1.0])
    for x, arm, reward in zip(records, ["tea", "coffee"], [0.0, 1.0], strict=True):
        each.learn(x, arm=arm, reward=reward)
    assert bytes_of(together) == bytes_of(each)
    with pytest.raises(FeatureError, match=r"rows\[1\]\['age'\] is nan, .* or give None"):
        hashing.rows(pd.DataFrame({"age": [1.0, None]}))


def test_many_rounds_are_decided_as_each_is() -> None:
    offers = [({"hour": hour}, [{"kind": "black"}, {"kind": "green"}]) for hour in (3, 20)]
    ids = ["x", "y"]
    bandit = per_arm()
    for many, x, id in zip(bandit.decide_many(offers, ids=ids), offers, ids, strict=True):
        one = bandit.decide(x, id=id)
        assert many.arm == one.arm
        assert same(many.context, one.context)
    alone = disjoint()
    for many, guest in zip(alone.decide_many([GUEST, {}]), (GUEST, {}), strict=True):
        assert many.context.dense().tolist() == alone.encoder.row(guest, None).dense().tolist()


def test_numbers_and_strings_of_numpy_are_those_of_python() -> None:
    own = {
        "a": np.float64(0.5),
        "b": np.int32(3),
        "c": np.str_("x"),
        "d": np.arange(2),
        "e": (1, 2),
    }
    plain = {"a": 0.5, "b": 3, "c": "x", "d": [0, 1], "e": [1, 2]}
    hashing = Hashing()
    assert same(
        hashing.row({**own, "n": own, "f": np.True_}), hashing.row({**plain, "n": plain, "f": True})
    )


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"hour": 3}, r"a dict was given .* a list is expected"),
        (({"hour": 3}, {"kind": "black"}), r"a dict was given .* \(shared, \[own, own, …\]\)"),
        (({"hour": 3}, [{}], [{}]), "a tuple of 3 was given for all arms"),
        (
            [({}, {}, {})],
            r"a tuple of 3 was given for rows\[0\], but a tuple must be \(shared, own\)",
        ),
        (None, "a NoneType was given"),
        ("tea", "a str was given"),
        (np.eye(2), r"rows\[0\]\[0\] is 1.0, but a dictionary is expected"),
        ([{"a": 1}, {"b": b"x" * 99}], r"rows\[1\]\['b'\] is a bytes, but a finite number"),
        (
            ({"a": [None]}, [{}]),
            r"shared\['a'\]\[0\] is None, but a finite number or a string is expected",
        ),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' is there twice"),
    ],
)
def test_arms_need_a_dictionary_each(x: Any, message: str) -> None:
    bandit = per_arm()
    before = bytes_of(bandit)
    with pytest.raises(ContextError, match=message):
        bandit.decide(x)
    assert bytes_of(bandit) == before


def test_a_list_is_not_taken_for_one_context() -> None:
    for x in ([{"a": 1}, {"b": 2}], [1.0, 2.0]):
        with pytest.raises(FeatureError, match=r"context is a list, .* encoding='per-arm'"):
            disjoint().decide(x)
    with pytest.raises(FeatureError, match=r"rows\[0\] is a list, but a dictionary"):
        per_arm().decide([[{"a": 1}], [{"b": 2}]])


def test_there_is_a_dictionary_for_each_eligible_arm() -> None:
    several: list[Any] = [[{}], ({}, [{}])]
    for x in several:
        with pytest.raises(EligibilityError, match="1 rows of features for 2 arms"):
            per_arm().decide(x, eligible=["a", "b"])
    with pytest.raises(EligibilityError, match="at least one"):
        per_arm().decide([])


def test_one_arm_has_a_limit_and_many_arms_have_none() -> None:
    rows = [{"x": [1.0] * 1_000}] * (MOST_PRODUCTS // 1_000 + 1)
    assert len(Hashing().rows(rows)) == len(rows)
    assert len(Hashing().rows(({}, rows))) == len(rows)
    with pytest.raises(FeatureError, match=r"an arm has .* products"):
        Hashing().rows(({"y": [1.0] * 1_000}, rows[:2]))


def test_settings_of_hashing_come_back_from_a_file(tmp_path: Path) -> None:
    hashing = Hashing(bits=5, interactions=(("user", ""),), ids_are_features=False, seed=3)
    bandit = Bandit(NeuralUCB(), features=hashing, encoding="per-arm")
    bandit.learn(bandit.decide((GUEST, [{"a": 1}, {"b": "x"}])), 1.0)
    bandit.save(tmp_path / "b.rbmle")
    loaded = Bandit.load(tmp_path / "b.rbmle")
    assert loaded.encoder == hashing
    assert loaded.features == 32
    assert bytes_of(loaded) == bytes_of(bandit)
    again = [
        b.decide((GUEST, [{"a": 1}, {"b": "x"}]), id="x").indices.tolist() for b in (bandit, loaded)
    ]
    assert again[0] == again[1]


@pytest.mark.parametrize("policy", ["lin-ucb", "neural-ucb", "uniform"])
def test_scaled_features_are_refused_when_a_bandit_is_made(policy: str) -> None:
    for arms, encoding in ((3, "disjoint"), (None, "per-arm")):
        with pytest.raises(SettingError, match="`is_scaled` is for the service"):
            Bandit(policy, arms=arms, features=Hashing(is_scaled=True), encoding=encoding)


def test_a_bandit_learns_who_likes_what() -> None:
    bandit = Bandit(NeuralUCB(), arms=["tea", "coffee"], features=Hashing(bits=8))
    right = 0.0
    for t in range(60):
        guest = {"country": "DENL"[2 * (t % 2) :][:2], "visit": t}
        decision = bandit.decide(guest)
        reward = float((guest["country"] == "DE") == (decision.arm == "tea"))
        bandit.learn(decision, reward)
        right += reward if t >= 20 else 0.0
    assert right >= 38


def test_a_snapshot_takes_dictionaries() -> None:
    bandit = disjoint()
    assert bandit.snapshot().decide(GUEST, id="x").arm == bandit.decide(GUEST, id="x").arm


def test_the_library_needs_nothing_of_the_service() -> None:
    code = (
        "import sys; sys.modules['msgspec'] = sys.modules['pandas'] = None\n"
        "from rbmle import Bandit, Hashing, LinUCB\n"
        "bandit = Bandit(LinUCB(), arms=2, features=Hashing(bits=4))\n"
        "bandit.learn(bandit.decide({'hour': 20}), 1.0)\n"
        "print(bandit.round)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "1"
