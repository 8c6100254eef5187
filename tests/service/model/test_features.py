"""Features as JSON that a client sent: a kernel reads them as Python does."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle.core.errors import FeatureError
from rbmle.features import Hashing
from rbmle.features.hashing import MOST_PRODUCTS
from rbmle.features.json_rows import Offered
from rbmle.service.model.features import call_of, contexts_of, read_by_python
from tests.features.test_hashing import (
    ACTIONS,
    CONTEXT,
    IDS,
    PAIRS,
    bytes_of,
    check_form,
    features,
    numbers,
)


def _offered(shared: list[bytes], own: list[tuple[str, bytes]]) -> Offered:
    return Offered(
        [msgspec.Raw(json) for json in shared],
        [id for id, _ in own],
        [msgspec.Raw(json) for _, json in own],
    )


def _sent(context: Any, actions: list[Any], ids: list[str]) -> Offered:
    own = [(id, msgspec.json.encode(one)) for id, one in zip(ids, actions, strict=True)]
    return _offered([msgspec.json.encode(context)], own)


@pytest.mark.parametrize("bits", [1, 5, 12])
@pytest.mark.parametrize("interactions", PAIRS)
@pytest.mark.parametrize("ids_are_features", [True, False])
def test_rows_of_calls_that_are_stacked_are_to_the_bit_those_of_each(
    bits: int, interactions: Any, ids_are_features: bool
) -> None:
    featuriser = Hashing(
        bits=bits, interactions=interactions, ids_are_features=ids_are_features, seed=3
    )
    offered: list[tuple[Any, list[Any], list[str]]] = [
        (CONTEXT, ACTIONS, IDS),
        ([], [[]], ["a"]),
        ([{"n": {"x": 1.5}}], ACTIONS[::-1], IDS),
        (CONTEXT, ACTIONS[:1] * 4, ["d", "e", "f", "g"]),
    ]
    sent = [_sent(*one) for one in offered]
    together = contexts_of(featuriser, sent)
    slowly = read_by_python(featuriser, sent)
    assert bytes_of(together) == bytes_of(slowly)
    check_form(together, bits)
    start = 0
    for one in offered:
        part = together.part(slice(start, start + len(one[1])))
        each = featuriser.rows(one[:2], one[2])
        for i in range(len(each)):
            assert bytes_of(part.row(i)) == bytes_of(each.row(i))
        start += len(one[1])
    assert start == len(together)


@pytest.mark.parametrize("interactions", PAIRS)
def test_features_in_two_arrays_are_those_of_one_array_of_both(interactions: Any) -> None:
    featuriser = Hashing(bits=7, interactions=interactions)
    own = [(id, msgspec.json.encode(one)) for id, one in zip(IDS, ACTIONS, strict=True)]
    slot = [{"user": {"age": 3}, "wide": True}, {"place": {"at": [1.0]}}]
    for first, second in ((CONTEXT, slot), ([], slot), (CONTEXT, []), ([], [])):
        both = _offered([msgspec.json.encode(first + second)], own)
        two = _offered([msgspec.json.encode(first), msgspec.json.encode(second)], own)
        assert call_of(featuriser, two).products == call_of(featuriser, both).products
        expected = bytes_of(read_by_python(featuriser, [both]))
        assert bytes_of(read_by_python(featuriser, [two])) == expected
        assert bytes_of(contexts_of(featuriser, [two])) == expected
        assert bytes_of(contexts_of(featuriser, [both])) == expected


@pytest.mark.parametrize("interactions", PAIRS)
def test_json_that_is_too_long_to_be_remembered_is_read_alike(interactions: Any) -> None:
    """Spaces make it long; what it says is the same."""
    featuriser = Hashing(bits=7, interactions=interactions, seed=4)
    short = [(id, msgspec.json.encode(one)) for id, one in zip(IDS, ACTIONS, strict=True)]
    long = [(id, json + b" " * 2_000) for id, json in short]
    context = msgspec.json.encode(CONTEXT)
    expected = bytes_of(featuriser.rows((CONTEXT, ACTIONS), IDS))
    for _ in range(2):  # the second time, what is short is remembered
        for shared, own in ((context, short), (context + b" " * 2_000, long)):
            sent = _offered([shared], own)
            assert bytes_of(read_by_python(featuriser, [sent])) == expected
            assert bytes_of(contexts_of(featuriser, [sent])) == expected


def test_strings_in_a_list_are_read_as_if_each_stood_alone() -> None:
    sent = b'[{"at":["47.6","-122.1"],"n":{"t":[1,"x"]}}]'
    offered = _offered([sent], [("a", b'[{"tags":["x","y"]}]')])
    read = Hashing().rows(
        ([{"at": ["47.6", "-122.1"], "n": {"t": [1, "x"]}}], [{"tags": ["x", "y"]}]), ["a"]
    )
    assert bytes_of(contexts_of(Hashing(), [offered])) == bytes_of(read)


def test_a_dictionary_in_a_namespace_is_read_under_a_name_with_a_dot() -> None:
    deep = {"user": {"address": {"city": "Delft", "at": [1, 2], "_note": 5}, "_x": {"y": {}}}}
    flat = {"user": {"address.city": "Delft", "address.at": [1, 2]}}
    for hashing in (Hashing(), Hashing(interactions=(("user", ""),))):
        sent = _offered([msgspec.json.encode([deep])], [("a", msgspec.json.encode([deep]))])
        read = hashing.rows(([flat], [[flat]]), ["a"])
        assert bytes_of(contexts_of(hashing, [sent])) == bytes_of(read)


@pytest.mark.parametrize(
    "json",
    [
        b"",
        b"{",
        b"{}",
        b"null",
        b"[null]",
        b'[{"x": NaN}]',
        b'[{"x": 1e400}]',
        b'[{"x": 1e16}]',
        b'[{"x": "\xff"}]',
        b'[{"x": "\\ud800"}]',
        b'[{"x": {"y": [{}]}}]',
        b'[{"x": ' + b'{"x": ' * 10 + b"{}" + b"}" * 11 + b"]",
        b'[{"x": [true]}]',
        b'[{"": 1}]',
        b"[] []",
    ],
)
def test_json_of_no_features_is_refused_each_time(json: bytes) -> None:
    for text in (json, json, json + b" " * 2_000):
        for shared, own in (([text], [("a", b"[]")]), ([b"[]"], [("a", text)])):
            with pytest.raises(FeatureError):
                contexts_of(Hashing(), [_offered(shared, own)])


def test_a_call_of_too_many_products_is_refused_with_its_slot() -> None:
    side = int(MOST_PRODUCTS**0.5)
    half, whole = (msgspec.json.encode([{"a": [1.0] * n}]) for n in (side // 2, side))
    own = [("a", whole)]
    contexts_of(Hashing(), [_offered([half], own)])
    with pytest.raises(FeatureError, match="products of context and action features, but at most"):
        contexts_of(Hashing(), [_offered([half, half, half], own)])


@given(some.lists(numbers | some.floats(-1e15, 1e15).map(lambda x: round(x, 5)), max_size=6))
def test_a_kernel_reads_numbers_as_python_does(xs: list[float]) -> None:
    for spelled in (str, "{:.17g}".format, "{:e}".format, "{:.3f}".format, "{:.20g}".format):
        text = ",".join(f'{{"x": {spelled(x)}}}' for x in xs).encode()
        sent = _offered([b"[%s]" % text], [("a", b"[]")])
        featuriser = Hashing(bits=4)
        assert _outcome(lambda: contexts_of(featuriser, [sent])) == _outcome(
            lambda: read_by_python(featuriser, [sent])
        )


@given(some.data())
def test_a_kernel_reads_what_python_reads(data: some.DataObject) -> None:
    calls = [
        _sent(data.draw(features), data.draw(some.lists(features, min_size=n, max_size=n)), ids)
        for n in data.draw(some.lists(some.integers(1, 3), min_size=1, max_size=3))
        for ids in [data.draw(some.lists(some.text(max_size=4), min_size=n, max_size=n))]
    ]
    for featuriser in (Hashing(bits=5, seed=3), Hashing(bits=5, ids_are_features=False)):
        assert _outcome(lambda: contexts_of(featuriser, calls)) == _outcome(
            lambda: read_by_python(featuriser, calls)
        )


def _outcome(act: Any) -> bytes | str:
    try:
        return bytes_of(act())
    except FeatureError as error:
        return str(error)
