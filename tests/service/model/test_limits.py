"""What a client may send, and what is refused."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle.service.model.limits import LIMITS, LimitError, Limits, check, check_id

scalars = some.none() | some.booleans() | some.integers() | some.floats() | some.text()
trees = some.recursive(
    scalars, lambda below: some.lists(below) | some.dictionaries(some.text(), below)
)


@pytest.mark.parametrize("depth", [17, 900, 100_000])
def test_a_depth_bomb_is_refused_and_does_no_harm(depth: int) -> None:
    for wrap in (lambda inner: [inner], lambda inner: {"a": inner}):
        value: Any = 1
        for _ in range(depth):
            value = wrap(value)
        with pytest.raises(LimitError, match="nested deeper than 16"):
            check(value)
        while type(value) is not int:  # Python itself would take it apart by recursion
            value = value[0] if type(value) is list else value["a"]


@pytest.mark.parametrize("number", [10**300, -(10**300), 1.1e15, 10**15 + 1, math.inf, math.nan])
def test_a_number_that_is_too_large_is_refused(number: float) -> None:
    with pytest.raises(LimitError, match="larger than 1e"):
        check({"a": [number]})


def test_limits_are_reached_and_not_passed() -> None:
    limits = Limits(depth=2, values=4, string=3, number=10)
    for good in ([[1, 2]], {"abc": "abc"}, [10, -10.0], [1, 2, 3], "😀"):
        check(good, limits)
    for value, message in (
        ([[[]]], "deeper"),
        ({"a": {"a": {}}}, "deeper"),
        ([1, 2, 3, 4], "more than 4 values"),
        ("abcd", "longer"),
        ({"abcd": 1}, "longer"),
        ([10.5], "larger"),
        (-11, "larger"),
    ):
        with pytest.raises(LimitError, match=message):
            check(value, limits)


def test_values_that_never_were_json_are_checked_too() -> None:
    for value in (math.nan, math.inf, 10**5_000):
        with pytest.raises(LimitError, match="larger than 1e"):
            check([value])
    with pytest.raises(LimitError, match="longer than"):
        check({"a" * 10_001: 1})


def is_refused(id: str) -> bool:
    try:
        check_id(id, "the id")
    except LimitError:
        return True
    return False


@pytest.mark.parametrize("id", ["a", "a/b é 😀", "x" * 256, "\u2028", " ", "العربية", "עברית"])
def test_an_id_is_any_text_of_256_characters(id: str) -> None:
    assert not is_refused(id)


@pytest.mark.parametrize("id", ["", "x" * 257, "a\n", "\x00", "\x7f", "\x85", "\ud800"])
def test_what_is_no_id_is_refused(id: str) -> None:
    with pytest.raises(LimitError, match=r"actions\[3\]\.id"):
        check_id(id, "actions[3].id")


@pytest.mark.parametrize(
    "control", "\u202e\u202a\u2066\u2069\u200f\u061c\u200b\ufeff\u00ad\U000e0041"
)
def test_an_id_has_nothing_that_changes_how_it_is_shown(control: str) -> None:
    with pytest.raises(LimitError, match="direction of a text") as caught:
        check_id(f"a{control}b", "the id")
    assert control not in str(caught.value)


@given(trees)
def test_any_tree_is_within_the_limits_or_a_limit_error(tree: Any) -> None:
    try:
        check(tree)
    except LimitError as error:
        assert len(str(error).splitlines()) == 1
        assert len(str(error)) < 200
    else:
        assert json.loads(json.dumps(tree)) == tree
    assert LIMITS == Limits()


@pytest.mark.parametrize(
    "id",
    [
        "\U0001f469\u200d\U0001f4bb",  # a woman with a computer
        "\U0001f469\U0001f3fd\u200d\U0001f4bb",  # of brown skin
        "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
        "\U0001f642\u200d\u2194\ufe0f",  # a head that shakes
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937",  # Hindi: half a ka
        "\u0d28\u0d4d\u200d",  # Malayalam: a chillu at the end
    ],
)
def test_ids_have_joiners_where_words_and_emoji_need_them(id: str) -> None:
    assert not is_refused(id)


@pytest.mark.parametrize(
    "id",
    [
        "a\u200db",  # looks like ab
        "a\u200c",
        "\u200d\U0001f4bb",
        "\U0001f469\u200d",
        "\U0001f469\u200d\u200d\U0001f4bb",
        "\u0645\u200ca",
        "1\u200d\U0001f4bb",
        "\U0001f469\u200d\u202e\U0001f4bb",
    ],
)
def test_ids_have_no_joiners_that_nobody_sees(id: str) -> None:
    with pytest.raises(LimitError, match="joiners are allowed in words"):
        check_id(id, "the id")
