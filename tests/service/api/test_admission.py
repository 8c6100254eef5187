"""The work of a rank call: what is charged, and what is free."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Raw

from rbmle.service.api import native
from rbmle.service.api.admission import FREE, is_costly, is_light, work_of
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.front.requests import Action, RankRequest


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
def test_work_is_the_number_of_products_beyond_the_free_ones(
    size: tuple[int, ...], work: int
) -> None:
    request = native.unpack_rank(of(*size))
    assert work_of(request) == max(0, work - FREE)
    assert is_costly(request) >= (work > FREE)


def test_arrays_count_and_both_dialects_are_read() -> None:
    old = {
        "contextFeatures": [{"a": [1] * 100}, {"b": {"c": ["x", "y"]}}],
        "actions": [{"id": "a", "features": [{"p": [0.5] * 300}]}],
    }
    request = personalizer.unpack_rank(msgspec.json.encode(old))
    assert work_of(request) == 103 * 302 - FREE
    assert is_costly(request)


def test_text_with_commas_is_not_charged() -> None:
    text = {
        "context": {f"c{i}": "a," * 200 for i in range(5)},
        "actions": [{"id": "a"}, {"id": "b"}],
    }
    body = msgspec.json.encode(text)
    assert not is_light(body)
    assert work_of(native.unpack_rank(body)) == 0


@given(some.binary() | some.binary(max_size=9).map(lambda junk: b"[" + junk + b",1" * 400 + b"]"))
def test_the_work_of_any_features_can_be_computed(junk: bytes) -> None:
    actions = [Action("a", Raw(junk)), Action("b", Raw(b"[]"))]
    assert work_of(RankRequest(context=Raw(b'[{"x": 1}]'), actions=actions)) >= 0
    assert work_of(RankRequest(context=Raw(junk), actions=actions[1:])) >= 0


@given(some.integers(0, 60), some.integers(1, 50), some.integers(0, 60))
def test_light_or_cheap_requests_are_free(context: int, actions: int, own: int) -> None:
    body = of(context, actions, own)
    request = native.unpack_rank(body)
    if is_light(body) or not is_costly(request):
        assert work_of(request) == 0
