"""The work of a rank call: what is charged, and what is free."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rbmle.service.api.native import bodies as native
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.api.work import FREE, is_costly, is_light, work_of


def of(context: int, actions: int, own: int, slots: int = 0) -> bytes:
    """Return a call with so many features."""
    return msgspec.json.encode(
        {
            "context": {f"c{i}": i for i in range(context)},
            "actions": [
                {"id": str(k), "features": {"x": {f"f{i}": 0.5 for i in range(own)}}}
                for k in range(actions)
            ],
            "slots": [{"id": f"s{k}", "baseline": str(k)} for k in range(slots)],
        }
    )


@pytest.mark.parametrize(
    ("size", "work"),
    [
        ((10, 10, 5), 0),
        ((20, 50, 10), 0),  # 12,600
        ((100, 10, 20), 22_220),
        ((100, 50, 98), 505_000),
        ((500, 50, 98), 2**19),
        ((10, 50, 10, 3), 19_800),
        ((10, 50, 10, 50), 330_000),
    ],
)
def test_work_is_the_number_of_products_and_little_is_free(
    size: tuple[int, ...], work: int
) -> None:
    body = of(*size)
    assert work_of(body) == max(0, work - FREE)
    assert is_costly(native.unpack_rank(body)) >= (work > FREE)


def test_arrays_count_and_both_dialects_are_read() -> None:
    old = {
        "contextFeatures": [{"a": [1] * 100}, {"b": {"c": ["x", "y"]}}],
        "actions": [{"id": "a", "features": [{"p": [0.5] * 300}]}],
    }
    body = msgspec.json.encode(old)
    assert work_of(body) == 103 * 302 - FREE
    assert is_costly(personalizer.unpack_rank(body))


def test_text_with_commas_is_not_charged() -> None:
    text = {
        "context": {f"c{i}": "a," * 200 for i in range(5)},
        "actions": [{"id": "a"}, {"id": "b"}],
    }
    body = msgspec.json.encode(text)
    assert not is_light(body)
    assert work_of(body) == 0


@given(some.binary() | some.binary(max_size=9).map(lambda junk: b"[" + junk + b",1" * 400 + b"]"))
def test_whatever_is_sent_has_some_work(body: bytes) -> None:
    assert work_of(body) >= 0


@given(some.integers(0, 60), some.integers(1, 50), some.integers(0, 60))
def test_what_is_light_or_not_costly_is_free(context: int, actions: int, own: int) -> None:
    body = of(context, actions, own)
    if is_light(body) or not is_costly(native.unpack_rank(body)):
        assert work_of(body) == 0
