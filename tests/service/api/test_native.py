"""Our own wire format: what is sent and what is answered, byte for byte."""

from datetime import timedelta

import msgspec
import pytest
from msgspec import Raw

from rbmle.service.api import native
from rbmle.service.api.base import Fault
from rbmle.service.front.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    EventAnswer,
    RankAnswer,
    RankedAction,
    RankRequest,
    Slot,
    SlotAnswer,
    StatusAnswer,
)
from rbmle.service.log.records import NO_FEATURES
from rbmle.service.settings import ServiceConfiguration, Settle
from tests.service.api.samples import NOON, refusal

NATIVE_RANK = (
    b'{"event":"e","context":{"user":{"age":30},"hour":12},"actions":[{"id":"a","features":{"x":1}},'
    b'{"id":"b"}],"excluded":["b"],"deferred":true}'
)


def test_a_native_rank_is_decoded() -> None:
    assert native.decode_rank(NATIVE_RANK) == RankRequest(
        event="e",
        context=Raw(b'[{"user":{"age":30},"hour":12}]'),
        actions=[Action("a", Raw(b'[{"x":1}]')), Action("b", NO_FEATURES)],
        excluded=["b"],
        deferred=True,
    )
    slots = b'{"actions":[{"id":"a"}],"slots":[{"id":"s","baseline":"a","features":{"y":true}}]}'
    assert native.decode_rank(slots).slots == [
        Slot(id="s", baseline="a", features=Raw(b'[{"y":true}]'))
    ]


def test_native_rewards_are_for_an_event_or_its_slots() -> None:
    assert native.decode_reward("e", b'{"value":0.5}').values == {ONLY_SLOT: 0.5}
    assert native.decode_reward("e", b'{"slots":{"s":1,"t":0}}').values == {"s": 1.0, "t": 0.0}
    assert native.decode_activate("e") == ActivateRequest(event="e")
    assert native.decode_event("e") == "e"


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (b"{}", None),
        (b'{"value":1,"slots":{"s":1}}', None),
        (b'{"slots":{}}', "values"),
        (b'{"value":1,"values":1}', "values"),
        (b'{"value":"1"}', "value"),
        (b'{"value":7}', "value"),
    ],
)
def test_invalid_native_rewards_are_refused(body: bytes, target: str | None) -> None:
    refused = refusal(lambda: native.decode_reward("e", body))
    assert (refused.status, refused.code, refused.target) == (400, "malformed", target)


def test_an_unknown_native_field_is_refused() -> None:
    refused = refusal(lambda: native.decode_rank(b'{"actions":[{"id":"a","feature":{}}]}'))
    assert (refused.status, refused.target) == (400, "actions[0].feature")
    refused = refusal(lambda: native.decode_configuration(b'{"x":1}', ServiceConfiguration()))
    assert refused.target == "x"
    refused = refusal(lambda: native.decode_event("\x00"))
    assert refused.target == "event"


def test_native_answers_omit_empty_fields() -> None:
    ranking = [RankedAction("a", 1.0)]
    answer = RankAnswer(event="e", chosen="a", ranking=ranking)
    expected = b'{"event":"e","chosen":"a","ranking":[{"id":"a","probability":1.0}]}'
    assert msgspec.json.encode(answer) == expected
    slots = RankAnswer(event="e", slots=[SlotAnswer(id="s", chosen="a", ranking=ranking)])
    assert msgspec.json.encode(slots) == (
        b'{"event":"e","slots":[{"id":"s","chosen":"a","ranking":[{"id":"a","probability":1.0}]}]}'
    )
    event = EventAnswer(
        answer=answer,
        time=NOON,
        is_active=True,
        rewards={ONLY_SLOT: 1.0},
        is_closed=False,
        deadline=NOON + timedelta(minutes=10),
    )
    assert msgspec.json.encode(event) == (
        b'{"answer":' + expected + b',"time":"2026-01-01T12:00:00Z","is_active":true,'
        b'"is_closed":false,"rewards":{"":1.0},"deadline":"2026-01-01T12:10:00Z"}'
    )
    status = StatusAnswer(version="0.1.0", records=10, learned=7, backlog=3, observations=3)
    assert msgspec.json.encode(status) == (
        b'{"version":"0.1.0","records":10,"learned":7,"backlog":3,"observations":3,'
        b'"deleted":0,"erasures":0,"oldest":null}'
    )
    assert native.encode_problem(native.fault(Fault.THROTTLED, "wait")) == (
        b'{"error":{"code":"throttled","message":"wait"}}'
    )


def test_a_native_configuration_round_trips() -> None:
    configuration = ServiceConfiguration(
        exploration=0.1, auto_optimization_frequency=timedelta(days=7), settle=Settle.DELAYED
    )
    body = native.encode_configuration(configuration)
    assert native.decode_configuration(body, configuration) == configuration
    refused = refusal(lambda: native.decode_change(b'{"exploration":2}', configuration))
    assert (refused.status, refused.target) == (400, "exploration")


def test_a_native_change_keeps_all_other_settings() -> None:
    before = ServiceConfiguration(exploration=0.1, auto_optimization_frequency=timedelta(days=7))
    assert native.decode_change(b"{}", before) == before
    after = native.decode_change(b'{"auto_optimization_frequency":null}', before)
    assert after == ServiceConfiguration(exploration=0.1)
    for missing in before.to_json():
        body = {name: value for name, value in before.to_json().items() if name != missing}
        encoded = msgspec.json.encode(body)
        refused = refusal(lambda encoded=encoded: native.decode_configuration(encoded, before))
        assert (refused.status, refused.target) == (400, missing)
