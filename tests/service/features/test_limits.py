"""What a client may send, and what is refused with which code."""

import json
import math
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle.core.errors import RBMLEError
from rbmle.service.features.limits import (
    LIMITS,
    LimitError,
    Limits,
    check,
    check_actions,
    check_id,
    check_slots,
    decode,
)

CODES = {"malformed", "depth", "values", "string", "number", "actions", "slots", "id"}

scalars = some.none() | some.booleans() | some.integers() | some.floats() | some.text()
trees = some.recursive(
    scalars, lambda below: some.lists(below) | some.dictionaries(some.text(), below)
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"nul",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b'"\\ud800"',  # half of a surrogate pair
        b'{"\\ud800": 1}',
        b'"\\udc00\\ud800"',
        b'"\xed\xa0\x80"',  # the same in bytes
        b'"\xff"',
        b'{"\xff": 1}',
        b'"\xc0\x80"',  # zero, spelled too long
        b"\xef\xbb\xbf1",  # a byte order mark
        b"1 2",
        b"[1,]",
        b"01",
        b"'a'",
        b'"\t"',
        b'"open',
        b"{1: 2}",
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert _refused(body).code == "malformed"


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [17, 900, 100_000])
def test_a_depth_bomb_is_refused_and_does_no_harm(opening: bytes, depth: int) -> None:
    closing = b"]" if opening == b"[" else b"}"
    assert _refused(opening * depth + b"1" + closing * depth).code == "depth"


def test_a_depth_bomb_that_is_never_closed_is_refused() -> None:
    assert _refused(b"[" * 100_000).code == "depth"


@pytest.mark.parametrize(
    "body",
    [
        b"9" * 5_000,
        b"-" + b"9" * 5_000,
        b"9" * 5_000 + b".5",
        b"1" + b"0" * 300,
        b"1e999",
        b"[-1e999]",
        b"1000000000000001",
        b'{"a": [1.1e15]}',
    ],
)
def test_a_number_that_is_too_large_is_refused(body: bytes) -> None:
    assert _refused(body).code == "number"


def test_limits_are_reached_and_not_passed() -> None:
    limits = Limits(depth=2, values=4, string=3, number=10)
    for body in (
        b"[[1, 2]]",
        b'{"abc": "abc"}',
        b"[10, -10.0]",
        b"[1, 2, 3]",
        b'"\xf0\x9f\x98\x80"',
    ):
        decode(body, limits)
    for body, code in (
        (b"[[[]]]", "depth"),
        (b'{"a": {"a": {}}}', "depth"),
        (b"[1, 2, 3, 4]", "values"),
        (b'"abcd"', "string"),
        (b'{"abcd": 1}', "string"),
        (b"[10.5]", "number"),
        (b"-11", "number"),
    ):
        with pytest.raises(LimitError) as caught:
            decode(body, limits)
        assert caught.value.code == code, body


def test_values_that_never_were_json_are_checked_too() -> None:
    for value in (math.nan, math.inf, 10**5_000):
        with pytest.raises(LimitError, match="larger than 1e"):
            check([value])
    with pytest.raises(LimitError, match="longer than"):
        check({"a" * 10_001: 1})


def test_of_equal_names_the_last_counts() -> None:
    assert decode(b'{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


def test_signs_and_small_numbers_are_kept() -> None:
    assert decode(b"[-0.0, 1e-999, 5e-324, 1e15, true, null]") == [
        -0.0,
        0.0,
        5e-324,
        1e15,
        True,
        None,
    ]


@pytest.mark.parametrize("name", ["actions", "slots"])
def test_there_are_one_to_fifty_actions_and_slots(name: str) -> None:
    check_count = check_actions if name == "actions" else check_slots
    check_count(1)
    check_count(50)
    for count in (0, 51):
        with pytest.raises(LimitError, match=f"{count} {name}, but 1 to 50") as caught:
            check_count(count)
        assert caught.value.code == name


@pytest.mark.parametrize("id", ["a", "a/b é 😀", "x" * 256, "\u2028", " "])
def test_an_id_is_any_text_of_256_characters(id: str) -> None:
    assert check_id(id) == id


@pytest.mark.parametrize(
    "id", ["", "x" * 257, "a\n", "\x00", "\x7f", "\x85", "\ud800", None, 3, b"a", ["a"]]
)
def test_what_is_no_id_is_refused(id: Any) -> None:
    with pytest.raises(LimitError, match="eventId") as caught:
        check_id(id)
    assert caught.value.code == "id"
    with pytest.raises(LimitError, match=r"actions\[3\]\.id"):
        check_id(id, "actions[3].id")


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(LimitError("depth", "too deep")))
    assert (error.code, str(error)) == ("depth", "too deep")
    assert isinstance(error, RBMLEError)
    assert isinstance(error, ValueError)


@given(some.binary() | trees.map(lambda tree: json.dumps(tree).encode()))
def test_any_bytes_are_a_value_or_a_limit_error(body: bytes) -> None:
    try:
        value = decode(body)
    except LimitError as error:
        assert error.code in CODES
        assert len(str(error).splitlines()) == 1
    else:
        check(value)
        assert msgspec.json.decode(msgspec.json.encode(value)) == value


@given(trees)
def test_any_tree_is_within_the_limits_or_a_limit_error(tree: Any) -> None:
    try:
        check(tree)
    except LimitError as error:
        assert error.code in {"depth", "number"}
    else:
        assert decode(json.dumps(tree).encode("utf-8", "surrogatepass")) == tree


def _refused(body: bytes) -> LimitError:
    with pytest.raises(LimitError) as caught:
        decode(body)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 200
    assert LIMITS == Limits()
    return caught.value
