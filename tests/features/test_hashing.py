"""Hashing: what features become, that it is always the same, and what is refused."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle import NeuralUCB
from rbmle.core.errors import EligibilityError, FeatureError, RBMLEError, SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Contexts, Observation
from rbmle.engine.feature_rows import interaction_hash
from rbmle.engine.json_features import read_groups
from rbmle.features import Hashing
from rbmle.features.errors import LEVELS
from rbmle.features.hashing import MOST_PRODUCTS, Remembered, feature_hash, hashes_under
from rbmle.service.model.limits import LimitError, check

CONTEXT = [
    {"user": {"age": 31, "country": "de", "member": True}, "hour": 13},
    {"place": {"at": [48.1, -11.6], "room": None}},
]
ACTIONS = [
    [{"article": {"topic": "sport", "length": 812.5}}],
    [{"article": {"topic": "news", "length": 95}, "fresh": False}],
    [],
]
IDS = ["a", "b", "c"]
PAIRS = [None, (), (("user", "article"),), (("", "_id"), ("place", ""), ("user", "nobody"))]

numbers = some.floats(-1e15, 1e15) | some.integers(-(10**15), 10**15)
names = some.text(max_size=8) | some.sampled_from(["a", "b", "_a"])
values = numbers | some.text(max_size=8) | some.booleans() | some.none() | some.lists(numbers)
features = some.lists(
    some.dictionaries(names, values | some.dictionaries(names, values, max_size=4), max_size=4),
    max_size=3,
)
json = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda below: some.lists(below) | some.dictionaries(some.text(), below),
)


@pytest.mark.parametrize(
    ("feature", "bits"),
    [
        ((0, "user", "age", None), 0xC24B2A2A8F1DCDB2),
        ((0, "user", "country", "de"), 0x80A1EF0010D3AA5B),
        ((0, "", "", ""), 0x93D63E50206B49B0),
        ((0, "", "", None), 0x2CB776B8CAD087A5),
        ((1, "user", "age", None), 0xC8CD6CD76B211995),
        ((0, "_id", "", "é😀\x00\n"), 0xDD161E4CFBB1F848),
        ((-7, "n" * 300, "a", "\ud800"), 0xCF1CA119D1DBA4BE),
    ],
)
def test_a_hash_is_that_of_earlier_versions(
    feature: tuple[int, str, str, str | None], bits: int
) -> None:
    assert feature_hash(*feature) == bits


def test_a_hash_of_two_features_is_that_of_earlier_versions() -> None:
    first, second = np.array([1, 2**64 - 1, 0], np.uint64), np.array([2, 2**63, 0], np.uint64)
    assert interaction_hash(first, second).tolist() == [0xF6B11A2D9CADCA7C, 0xF18D8D23718D8D23, 0]
    assert interaction_hash(second, first).tolist() == [0x28CF6B16C8AAABA8, 0x08A4E3B24B2438B7, 0]


def test_a_row_is_that_of_earlier_versions() -> None:
    contexts = Hashing(bits=6).rows(([{"user": {"age": 31}}], [[{"price": 2.5}]]), ["tea"])
    assert contexts.rows.indices.tolist() == [0, 11, 16, 33, 35, 43]
    np.testing.assert_allclose(
        contexts.rows.values,
        [0.70710678, -0.31842127, -0.12708101, -0.077148254, -0.52451344, -0.31842127],
        rtol=1e-6,
    )


def test_no_two_features_are_spelled_alike() -> None:
    spelled = [
        ("ab", "c", None),
        ("a", "bc", None),
        ("", "abc", None),
        ("", "ab", "c"),
        ("", "ab=c", None),
        ("", "ab=", "c"),
        ("", "a", "b=c"),
        ("1/1", "", None),
        ("", "1/1", None),
    ]
    assert len({feature_hash(0, *feature) for feature in spelled}) == len(spelled)


@pytest.mark.parametrize("bits", [1, 2, 5, 12, 24])
@pytest.mark.parametrize("interactions", PAIRS)
@pytest.mark.parametrize("ids_are_features", [True, False])
def test_rows_are_those_of_the_slow_way(
    bits: int, interactions: tuple[tuple[str, str], ...] | None, ids_are_features: bool
) -> None:
    """Colliding features are summed, with signs; the rest has the squared length ½."""
    featuriser = Hashing(
        bits=bits, interactions=interactions, ids_are_features=ids_are_features, seed=3
    )
    contexts = featuriser.rows((CONTEXT, ACTIONS), IDS)
    check_form(contexts, bits)
    for i in range(len(IDS)):
        entries = slice(contexts.rows.starts[i], contexts.rows.starts[i] + contexts.rows.lengths[i])
        row = dict(
            zip(
                contexts.rows.indices[entries].tolist(),
                contexts.rows.values[entries].tolist(),
                strict=True,
            )
        )
        slow = _slow_row(featuriser, i)
        for slot in (
            row.keys() | slow.keys()
        ):  # 1 − 1 is 0 in one order of many, and nearly 0 in another
            assert row.get(slot, 0.0) == pytest.approx(slow.get(slot, 0.0), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("bits", [1, 3, 12])
def test_the_order_of_features_makes_no_difference_to_any_bit(bits: int) -> None:
    rng = random.Random(0)
    featuriser = Hashing(bits=bits)
    pairs = [(f"name-{i}", rng.choice([rng.gauss(0, 9), str(i), True])) for i in range(40)]
    expected = featuriser.rows(([dict(pairs)], [[dict(pairs[:20])], []]), ["a", "b"])
    for _ in range(20):
        rng.shuffle(pairs)
        own = [(n, v) for n, v in pairs if int(n[5:]) < 20]
        rng.shuffle(own)
        cut = rng.randrange(40)
        contexts = featuriser.rows(
            ([dict(pairs[:cut]), {"": dict(pairs[cut:])}], [[dict(own)], []]), ["a", "b"]
        )
        assert bytes_of(contexts) == bytes_of(expected)


@pytest.mark.parametrize("bits", [1, 9, 24])
def test_the_order_of_a_thousand_features_makes_no_difference_to_any_bit(bits: int) -> None:
    rng = random.Random(1)
    pairs = [(f"name-{i}", rng.gauss(0, 9)) for i in range(1_000)]
    featuriser = Hashing(bits=bits)
    expected = featuriser.rows(([{"a": 2.5}], [[dict(pairs)]]), ["a"])
    check_form(expected, bits)
    for order in (pairs[::-1], rng.sample(pairs, len(pairs))):
        assert bytes_of(featuriser.rows(([{"a": 2.5}], [[dict(order)]]), ["a"])) == bytes_of(
            expected
        )


def test_the_order_of_a_feature_given_many_times_makes_no_difference() -> None:
    featuriser = Hashing(bits=4)
    given = [{"x": 1e-9 * 3**i} for i in range(30)]
    expected = featuriser.rows((given, [[]]), ["a"])
    assert bytes_of(featuriser.rows((given[::-1], [[]]), ["a"])) == bytes_of(expected)


def test_a_row_does_not_depend_on_the_other_actions() -> None:
    """The learner sees the chosen action alone, and must see what the policy saw."""
    featuriser = Hashing(bits=7)
    together = featuriser.rows((CONTEXT, ACTIONS), IDS)
    for i, (own, id) in enumerate(zip(ACTIONS, IDS, strict=True)):
        assert bytes_of(featuriser.rows((CONTEXT, [own]), [id])) == bytes_of(together.row(i))


def test_a_row_does_not_depend_on_the_cache() -> None:
    featuriser = Hashing(bits=7, seed=11)
    hashes_under(11).clear()
    first = featuriser.rows((CONTEXT, ACTIONS), IDS)
    assert bytes_of(featuriser.rows((CONTEXT, ACTIONS), IDS)) == bytes_of(first)


def test_signs_are_balanced_and_slots_are_used_alike() -> None:
    featuriser = Hashing(bits=8, ids_are_features=False)
    signs, slots = [], []
    for i in range(2_000):
        rows = featuriser.rows(([], [[{f"feature {i}": 1}]]), [""]).rows
        signs.append(math.copysign(1.0, rows.values[1]))
        slots.append(int(rows.indices[1]))
    assert abs(sum(signs)) < 4 * 2_000**0.5
    counts = np.bincount(slots, minlength=256)[
        2:
    ]  # slot 0 is the constant's, slot 1 has its share too
    expected = 2_000 / 256
    assert ((counts - expected) ** 2 / expected).sum() < 254 + 4 * (2 * 254) ** 0.5


def test_interactions_are_spread_and_balanced() -> None:
    hashes = np.array([feature_hash(0, "", str(i), None) for i in range(600)], np.uint64)
    pairs = interaction_hash(hashes[:300, None], hashes[300:]).ravel()
    assert len(np.unique(pairs)) == len(pairs)
    assert abs(int((pairs >> np.uint64(63)).sum()) - 45_000) < 4 * 150
    for shift in (0, 20):  # 12 bits for the slot, and for good measure 12 others
        slots = (pairs >> np.uint64(shift) & np.uint64(4_095)).astype(np.int64)
        counts, expected = np.bincount(slots, minlength=4_096), 90_000 / 4_096
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert abs(chi_squared - 4_095) < 4 * (2 * 4_095) ** 0.5


def test_interactions_are_those_of_the_chosen_namespaces() -> None:
    context = [{"user": {"a": "x"}, "time": {"b": "y"}}]
    action = [[{"article": {"c": "z"}}]]
    alone = 1 + 2 + 1 + 1  # the constant, two of the context, one of the action, and its id
    for interactions, products in (
        ((), 0),
        ((("user", "article"),), 1),
        ((("user", "article"), ("user", "_id"), ("time", "_id")), 3),
        ((("article", "user"), ("user", "user")), 0),
        (None, 4),
    ):
        featuriser = Hashing(bits=20, interactions=interactions)
        contexts = featuriser.rows((context, action), ["id"])
        assert contexts.rows.lengths.tolist() == [alone + products]


def test_strings_numbers_and_names_are_read_as_documented() -> None:
    row = _row_of
    assert row({"a": None}) == row({"a": "null"})
    assert row({"a": True}) == row({"a": "true"})
    assert row({"a": False}) == row({"a": "false"}) != row({"a": True})
    assert row({"a": [1, 2.5]}) == row({"a[0]": 1.0, "a[1]": 2.5})
    assert row({"a": 1}) == row({"a": 1.0}) != row({"a": "1"})
    assert row({"": {"a": 1}}) == row({"a": 1}) != row({"n": {"a": 1}})
    assert row({"a": 1, "_b": {"c": [{}]}, "n": {"_c": object()}}) == row({"a": 1})
    assert row({"a": 1, "_b": 2, "_c": "x", "_d": None, "n": {"_e": 3}}) == row({"a": 1})
    assert row({"a": 1, "_b": math.nan, "_c": [object()], "_": 3}) == row({"a": 1})
    assert row({"a": 0, "b": [], "n": {}}) == row({})


def test_strings_in_a_list_are_separate_indicators() -> None:
    assert _row_of({"latlong": ["47.6,-122.1"]}) == _row_of({"latlong": "47.6,-122.1"})
    assert _row_of({"tags": ["a", "b"]}) == _row_of({"tags": ["b", "a"]}) != _row_of({"tags": "a"})
    assert _row_of({"n": {"tags": ["a", 2]}}) == _row_of({"n": {"tags": "a", "tags[1]": 2}})
    assert _row_of({"tags": []}) == _row_of({})


def test_an_action_without_id_and_features_is_valid() -> None:
    contexts = Hashing().rows(([], [[], [{}]]), ["a", "b"])
    assert contexts.rows.lengths.tolist() == [2, 2]
    assert bytes_of(contexts.row(0)) != bytes_of(contexts.row(1))
    bare = Hashing(ids_are_features=False).rows(([], [[], [{}]]), ["a", "b"])
    assert bare.dense().sum(axis=1) == pytest.approx([0.5**0.5] * 2)


@pytest.mark.parametrize("x", [1.7e308, -1.7e308, 5e-324, 1e-160, 10**300, 10**15])
def test_numbers_of_any_size_stay_finite(x: float) -> None:
    for ids_are_features in (True, False):
        featuriser = Hashing(ids_are_features=ids_are_features)
        check_form(featuriser.rows(([{"x": x}], [[{"y": x}]]), ["a"]), 12)


def nested(levels: int) -> dict[str, Any]:
    features: dict[str, Any] = {"y": 1}
    for _ in range(levels - 1):
        features = {"x": features}
    return features


def test_a_dictionary_in_a_namespace_is_read_under_a_name_with_a_dot() -> None:
    deep = {"user": {"address": {"city": "Delft", "at": [1, 2], "_note": 5}, "_x": {"y": {}}}}
    flat = {"user": {"address.city": "Delft", "address.at": [1, 2]}}
    assert _row_of(deep) == _row_of(flat) != _row_of({"address": {"city": "Delft", "at": [1, 2]}})
    names = ".".join(["x"] * (LEVELS - 2) + ["y"])
    assert _row_of(nested(LEVELS)) == _row_of({"x": {names: 1}})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, "shared is None, but a dictionary, or a list of dictionaries, is expected"),
        ("a", "shared is 'a', but a dictionary, or a list of dictionaries, is expected"),
        ([{}, 3], "shared[1] is 3, but a dictionary is expected"),
        ([[]], "shared[0] is a list, but a dictionary is expected"),
        ([{"a": {"b": [{}]}}], "shared[0]['a']['b'][0] is a dictionary, but"),
        ({"a": {"b": {"c": [{}]}}}, "shared['a']['b']['c'][0] is a dictionary, but"),
        ({"a": {"b": {"c": b"1"}}}, "shared['a']['b']['c'] is b'1', but"),
        ({"a": {"b": {3: 1}}}, "shared['a']['b'] has the name 3, but names must be strings"),
        (nested(LEVELS + 1), "['x']['x'] is a dictionary, but"),
        (nested(LEVELS + 1), "dictionaries are nested up to 11 levels deep, and not in lists"),
        (
            {"a b": [1, None]},
            "shared['a b'][1] is None, but a finite number or a string is expected",
        ),
        ([{"a": [True]}], "shared[0]['a'][0] is True, but a finite number or a string is expected"),
        (
            [{"a": [[1]]}],
            "shared[0]['a'][0] is a list, but a finite number or a string is expected",
        ),
        ([{"a": math.nan}], "shared[0]['a'] is nan, but a finite number"),
        ({"a": np.float32(math.nan)}, "leave out what is missing, or give None"),
        (
            [{"a": [math.inf]}],
            "shared[0]['a'][0] is inf, but a finite number or a string is expected",
        ),
        ([{"a": 10**5_000}], "shared[0]['a'] is an integer of 16610 bits, but"),
        ([{"\n": b"bytes"}], "shared[0]['\\n'] is b'bytes', but"),
        ([{"a": b"bytes"}, 3], "shared[1] is 3, but a dictionary is expected"),
        ([{"a": b"1", "n": {"b": b"2"}}, {"c": b"3"}], "shared[0]['n']['b'] is b'2', but"),
        ([{"_n": {"b": b"1"}, "m": {"_c": b"2", "d": [0, b"3"]}}], "shared[0]['m']['d'][1] is"),
        ({"a": 1, 3: "x"}, "shared has the name 3, but names must be strings"),
        ({"a": {3: [1]}}, "shared['a'] has the name 3, but names must be strings"),
        ({3: {"a": 1}}, "shared has the name 3, but names must be strings"),
    ],
)
def test_an_error_names_the_place_the_value_and_what_was_expected(
    context: Any, message: str
) -> None:
    with pytest.raises(FeatureError) as caught:
        Hashing().rows((context, [[]]), ["a"])
    assert message in str(caught.value)
    with pytest.raises(FeatureError) as caught:
        Hashing().rows(([], [[], context]), ["a", "b"])
    assert message.replace("shared", "rows[1]") in str(caught.value)
    with pytest.raises(FeatureError) as caught:
        Hashing().row(([], context))
    assert message.replace("shared", "context") in str(caught.value)
    assert isinstance(caught.value, RBMLEError)


def test_only_an_id_that_is_a_string_is_a_feature() -> None:
    named, counted, bare = (Hashing().row({"a": 1}, arm) for arm in ("3", 3, None))
    assert bytes_of(counted) == bytes_of(bare) != bytes_of(named)


def test_there_are_as_many_ids_as_rows() -> None:
    one: list[Any] = [[]]
    several: list[Any] = [[], one, ([], []), ([], one)]
    for X in several:
        with pytest.raises(EligibilityError, match="one row for each arm"):
            Hashing().rows(X, ["a", "b"])


def test_more_products_than_memory_can_hold_are_refused() -> None:
    side = int(MOST_PRODUCTS**0.5)
    with pytest.raises(FeatureError, match="products of shared features and its own, but at most"):
        Hashing().rows(([{"a": [1.0] * side}], [[{"b": [1.0] * side}]]), ["a"])


def test_the_repr_of_a_featuriser_rebuilds_it() -> None:
    for featuriser in (Hashing(), Hashing(bits=3, interactions=(("a", "b"), ("", "_id")))):
        assert eval(repr(featuriser)) == featuriser
        assert hash(eval(repr(featuriser))) == hash(featuriser)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bits": 0},
        {"bits": 25},
        {"bits": 12.0},
        {"version": 1},
        {"seed": "a"},
        {"ids_are_features": 1},
        {"interactions": [("a", "b")]},
        {"interactions": (("a",),)},
        {"interactions": (("a", 1),)},
        {"interactions": "ab"},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Hashing(**wrong)


def test_seeds_put_features_elsewhere() -> None:
    one, other = (Hashing(seed=seed).rows((CONTEXT, ACTIONS), IDS) for seed in (0, 1))
    assert bytes_of(one) != bytes_of(other)


def test_the_cache_is_correct_and_bounded() -> None:
    known = Remembered(5)
    for i in range(2**15 + 10):
        known["", str(i), None]
    assert len(known) == 10
    assert known["", "7", "x"] == known["", "7", "x"] == feature_hash(5, "", "7", "x")
    before = len(known)
    assert known["", "a", "x" * 1_000] == feature_hash(5, "", "a", "x" * 1_000)
    assert len(known) == before


def test_a_network_learns_from_these_contexts() -> None:
    """Who likes tea and who likes coffee can be told by the products with the ids alone."""
    featuriser, policy = Hashing(bits=10), NeuralUCB()  # so that no two of them share a slot
    state = policy.init(1, featuriser.size, generator(0, Purpose.START, 0))
    right = []
    for t in range(60):
        guest = "ab"[t % 2]
        contexts = featuriser.rows(([{"guest": guest}], [[], []]), ["tea", "coffee"])
        arm = int(policy.index(state, contexts, generator(0, Purpose.INDEX, t)).argmax())
        reward = float((guest == "a") == (arm == 0))
        seen = Observation(context=contexts.row(arm), reward=reward)
        policy.update(state, seen, generator(0, Purpose.UPDATE, t))
        right.append(reward)
    assert sum(right[20:]) >= 38


@given(features, some.lists(features, min_size=1, max_size=4), some.integers(1, 14))
def test_features_of_the_right_form_always_give_contexts(
    context: Any, actions: list[Any], bits: int
) -> None:
    ids = [str(i) for i in range(len(actions))]
    featuriser = Hashing(bits=bits)
    contexts = featuriser.rows((context, actions), ids)
    check_form(contexts, bits)
    assert bytes_of(contexts) == bytes_of(featuriser.rows((context, actions), ids))


@given(json, some.lists(json, min_size=1, max_size=4))
def test_any_json_gives_contexts_or_a_named_error(context: Any, actions: list[Any]) -> None:
    try:
        check([context, actions])
        contexts = Hashing().rows((context, actions), ["a"] * len(actions))
    except (FeatureError, LimitError) as error:
        assert len(str(error).splitlines()) == 1
    else:
        check_form(contexts, 12)


@given(json, features)
def test_beyond_the_limits_too_only_a_feature_error_is_raised(one: Any, other: Any) -> None:
    for context, action in (([{"a": one}], other), (other, [{"a": {"b": one}}])):
        try:
            contexts = Hashing().rows((context, [action]), ["a"])
        except FeatureError:
            continue
        check_form(contexts, 12)


@given(features, features)
def test_equal_actions_have_equal_rows(context: Any, action: Any) -> None:
    contexts = Hashing(bits=6).rows((context, [action, [], action]), ["a", "b", "a"])
    assert bytes_of(contexts.row(0)) == bytes_of(contexts.row(2))


@given(
    features, some.lists(features, min_size=1, max_size=5), some.sampled_from(PAIRS), some.data()
)
def test_actions_in_another_order_have_the_same_rows(
    context: Any, actions: list[Any], interactions: Any, data: Any
) -> None:
    """So the rows of any of them are the same in any company, and alone."""
    featuriser = Hashing(bits=6, interactions=interactions)
    ids = [str(i) for i in range(len(actions))]
    together = featuriser.rows((context, actions), ids)
    order = data.draw(some.lists(some.sampled_from(range(len(actions))), min_size=1, unique=True))
    others = featuriser.rows((context, [actions[i] for i in order]), [ids[i] for i in order])
    for place, i in enumerate(order):
        assert bytes_of(others.row(place)) == bytes_of(together.row(i))
        alone = featuriser.rows((context, [actions[i]]), [ids[i]])
        assert bytes_of(alone) == bytes_of(together.row(i))


def check_form(contexts: Contexts, bits: int) -> None:
    """Check what the engine relies on."""
    starts, lengths, blocks, indices, values = contexts.rows
    assert contexts.features == 2**bits
    assert indices.dtype == np.int32
    assert values.dtype == np.float64
    assert starts.dtype == lengths.dtype == blocks.dtype == np.int64
    assert not blocks.any()
    assert lengths.sum() == len(indices) == len(values)
    assert np.isfinite(values).all()
    for start, length in zip(starts, lengths, strict=True):
        slots, row = indices[start : start + length], values[start : start + length]
        assert slots[0] == 0
        assert (np.diff(slots) > 0).all()
        assert slots[-1] < 2**bits
        assert row[0] == 0.5**0.5
        square = (row[1:].astype(np.float64) ** 2).sum()
        assert square <= 0.5 + 1e-6


def _slow_row(featuriser: Hashing, i: int) -> dict[int, float]:
    """Return the row of an action of the examples, feature by feature."""
    seed, interactions = featuriser.seed, featuriser.interactions
    context = [
        ("user", feature_hash(seed, "user", "age", None), math.asinh(31)),
        ("user", feature_hash(seed, "user", "country", "de"), 1.0),
        ("user", feature_hash(seed, "user", "member", "true"), 1.0),
        ("", feature_hash(seed, "", "hour", None), math.asinh(13)),
        ("place", feature_hash(seed, "place", "at[0]", None), math.asinh(48.1)),
        ("place", feature_hash(seed, "place", "at[1]", None), math.asinh(-11.6)),
        ("place", feature_hash(seed, "place", "room", "null"), 1.0),
    ]
    action = [
        [
            ("article", feature_hash(seed, "article", "topic", "sport"), 1.0),
            ("article", feature_hash(seed, "article", "length", None), math.asinh(812.5)),
        ],
        [
            ("article", feature_hash(seed, "article", "topic", "news"), 1.0),
            ("article", feature_hash(seed, "article", "length", None), math.asinh(95)),
            ("", feature_hash(seed, "", "fresh", "false"), 1.0),
        ],
        [],
    ][i]
    if featuriser.ids_are_features:
        action = [*action, ("_id", feature_hash(seed, "_id", "", IDS[i]), 1.0)]
    row: dict[int, float] = {}
    products = [(0, h, 1.0, x) for _, h, x in action] + [(h, 0, x, 1.0) for _, h, x in context]
    products += [
        (h, k, x, y)
        for space, h, x in context
        for other, k, y in action
        if interactions is None or (space, other) in interactions
    ]
    for h, k, x, y in products:
        z = _mixed(h, k)
        sign = -1.0 if z >> 63 else 1.0
        slot = max(z % 2**featuriser.bits, 1)
        row[slot] = row.get(slot, 0.0) + sign * x * y
    length = math.hypot(*row.values())
    return {0: 0.5**0.5, **{slot: 0.5**0.5 * x / length for slot, x in row.items()}}


def _mixed(h: int, k: int) -> int:
    z = (h + k * 0x9E3779B97F4A7C15) % 2**64
    z ^= z >> 32
    z = z * 0xBF58476D1CE4E5B9 % 2**64
    return z ^ z >> 32


def _row_of(item: dict[str, Any]) -> bytes:
    return bytes_of(Hashing().rows(([], [[item]]), ["a"]))


def bytes_of(contexts: Contexts) -> bytes:
    return b"".join(part.tobytes() for part in contexts.rows)


@given(
    some.binary(max_size=40)
    | some.text(alphabet='[]{}",:0123456789.eE-+ \\tfnu_ax').map(str.encode)
)
def test_a_kernel_stops_at_the_end_whatever_it_is_given(text: bytes) -> None:
    """A client's JSON is known to be some before it comes here; this is none, mostly."""
    pieces = np.frombuffer(bytearray(text + b"\xff[]\xff"), np.uint8)
    for kinds in ([0, 0], [2, 1], [0, 1]):
        hashes, values, counts, is_read = read_groups(pieces, np.array(kinds), np.uint64(0))
        assert len(hashes) == len(values) == counts.sum()
        assert is_read or len(hashes) == 0
