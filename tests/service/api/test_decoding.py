"""JSON of a client, taken literally."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle.service.api import native
from rbmle.service.api.base import RefusedError
from rbmle.service.api.decoding import BodyError, decode_body
from rbmle.service.api.personalizer import bodies as personalizer

ANYTHING = msgspec.json.Decoder()


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
def test_invalid_json_is_refused(body: bytes) -> None:
    with pytest.raises(BodyError, match="not valid JSON") as caught:
        decode_body(ANYTHING, body)
    assert not caught.value.is_json


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("closing", [b"", b"1"])
def test_deeply_nested_json_is_refused_without_harm(opening: bytes, closing: bytes) -> None:
    end = b"]" if opening == b"[" else b"}"
    body = opening * 100_000 + (closing and closing + end * 100_000)
    with pytest.raises(BodyError, match="nested"):
        decode_body(ANYTHING, body)


@pytest.mark.parametrize(
    "body", [b"9" * 5_000, b"-" + b"9" * 5_000 + b".5", b"1" + b"0" * 400 + b".0", b"[-1e999]"]
)
def test_a_number_too_large_for_a_float_is_refused(body: bytes) -> None:
    with pytest.raises(BodyError, match="out of range"):
        decode_body(ANYTHING, body)


def test_more_values_than_the_limit_are_refused() -> None:
    with pytest.raises(BodyError, match="more than 50,000 values"):
        decode_body(ANYTHING, b"[" + b"1," * 50_000 + b"1]")


def test_the_last_of_repeated_names_counts() -> None:
    assert decode_body(ANYTHING, b'{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


def test_signs_and_small_numbers_are_kept() -> None:
    assert decode_body(ANYTHING, b"[-0.0, 1e-999, 5e-324, 1e15]") == [-0.0, 0.0, 5e-324, 1e15]


@given(some.binary())
def test_any_bytes_decode_or_raise_body_error(body: bytes) -> None:
    try:
        value = decode_body(ANYTHING, body)
    except BodyError as error:
        assert str(error)
    else:
        assert msgspec.json.decode(msgspec.json.encode(value)) == value


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (b'{"actions":[{"id":"a"}],"context":{"user":{"age":[1,2,true]}}}', "context.user.age[2]"),
        (b'{"actions":[{"id":"a"}],"context":{"hour":1,"user":{"x":{"y":[true]}}}}', "context.user.x.y[0]"),
        (b'{"actions":[{"id":"a"}],"context":{"hour":1e16}}', "context.hour"),
        (b'{"actions":[{"id":"a"},{"id":"b","features":{"p":[{}]}}]}', "actions[1].features.p[0]"),
        (b'{"actions":[{"id":"a","features":{"a.b [1]":[null]}}]}', 'actions[0].features["a.b [1]"][0]'),
        (b'{"actions":[{"id":"a","features":{"a":{},"b":[null]}}],"context":', "actions[0].features[...][0]"),
        (b'{"slots":[{"id":"s","baseline":"a","features":{"x":{"y":[{}]}}}]}', "slots[0].features.x.y[0]"),
    ],
)  # fmt: skip
def test_an_error_names_the_field_with_its_full_path(body: bytes, target: str) -> None:
    with pytest.raises(RefusedError) as caught:
        native.decode_rank(body)
    assert caught.value.problem.target == target


@pytest.mark.parametrize(
    "twice",
    [
        b'{"user": {"age": [1, [2]]}, "user": true}',
        b'{"user": {"age": [1, 2, [3]]}, "user": {"age": [[1]]}}',
        b'{"user": {"age": [1, [2]]}, "user": 1}',
    ],
)
def test_an_invalid_value_with_a_repeated_name_is_refused(twice: bytes) -> None:
    """The value that is wrong is gone when its name is looked for."""
    body = b'{"context": ' + twice + b', "actions": [{"id": "a"}]}'
    with pytest.raises(RefusedError, match="got `array`"):
        native.decode_rank(body)


def test_an_error_names_the_field_in_personalizers_names() -> None:
    body = (
        b'{"contextFeatures":[{},{"user":{"age":[1,false]}}],"actions":[{"id":"a","features":[]}]}'
    )
    with pytest.raises(RefusedError) as caught:
        personalizer.decode_rank(body)
    assert caught.value.problem.target == "contextFeatures[1].user.age[1]"


def test_an_error_names_the_slot_of_a_reward() -> None:
    with pytest.raises(RefusedError) as caught:
        native.decode_reward("e", b'{"slots":{"top":1,"left side":2}}')
    assert caught.value.problem.target == 'slots["left side"]'
