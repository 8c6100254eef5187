"""What Personalizer's four clients send, byte for byte."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.json import encode

from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.front.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    RankAnswer,
    RankedAction,
    RankRequest,
    RewardRequest,
    Slot,
    SlotAnswer,
)
from rbmle.service.log.records import unpack_features
from rbmle.service.model.limits import LIMITS
from tests.service.api.samples import refusal

# PyPI azure-cognitiveservices-personalizer 0.1.1, and the same fields of npm's 2.0.1
RANK_V1_0 = (
    b'{"contextFeatures": [{"day": "monday"}], "actions": [{"id": "pasta", "features": '
    b'[{"taste": "salty"}, {"n": 3}]}], "excludedActions": ["juice"], "eventId": "\\u00e9/1", '
    b'"deferActivation": false}'
)
# PyPI azure-ai-personalizer 1.0.0b1 and npm @azure-rest/ai-personalizer: the body is the caller's
RANK = (
    b'{"eventId": "123456789", "actions": [{"id": "Video1", "features": [{"videoType": "documentary", '
    b'"videoLength": 35, "director": "CarlSagan"}, {"mostWatchedByAge": "30-35"}]}, {"id": "Video2", '
    b'"features": [{"videoLength": 0.5, "grams": [400, 800]}]}], "contextFeatures": [{"currentContext": '
    b'{"day": "tuesday", "weather": null}}, {"userContext": {"payingUser": true, "hoursOnSite": 0.12}}], '
    b'"excludedActions": ["Video1"]}'
)
SLOTS_RANK = (
    b'{"actions":[{"id":"News","features":[{"type":"News"}]},{"id":"Sports","features":[{"type":"Sports"}]},'
    b'{"id":"Fun","features":[{"type":"Fun"}]}],"slots":[{"id":"Main Article","baselineAction":"News",'
    b'"positionFeatures":[{"Size":"Large"}],"excludedActions":["Sports","Fun"]},{"id":"Side Bar",'
    b'"baselineAction":"Sports","features":[{"size":"Small"}]}],"eventId":"123456789"}'
)


def test_a_rank_of_the_oldest_client_is_decoded() -> None:
    expected = RankRequest(
        event="é/1",
        context=Raw(b'[{"day": "monday"}]'),
        actions=[Action("pasta", Raw(b'[{"taste": "salty"}, {"n": 3}]'))],
        excluded=["juice"],
    )
    assert encode(personalizer.decode_rank(RANK_V1_0)) == encode(expected)


def test_a_rank_of_the_newest_client_is_decoded() -> None:
    rank = personalizer.decode_rank(RANK)
    assert rank.event == "123456789"
    assert [action.id for action in rank.actions] == ["Video1", "Video2"]
    assert unpack_features(rank.actions[1].features) == [{"videoLength": 0.5, "grams": [400, 800]}]
    assert unpack_features(rank.context)[0] == {
        "currentContext": {"day": "tuesday", "weather": None}
    }
    assert rank.excluded == ["Video1"]
    assert not rank.deferred
    assert rank.slots == []


def test_absent_and_null_fields_are_the_same() -> None:
    least = b'{"actions": [{"id": "a", "features": []}], "deferActivation": false}'
    nulls = (
        b'{"actions":[{"id":"a","features":[]}],"contextFeatures":null,"excludedActions":null,'
        b'"eventId":null,"deferActivation":null,"anything":{"else":[1]}}'
    )
    expected = encode(RankRequest(actions=[Action("a", Raw(b"[]"))]))
    assert encode(personalizer.decode_rank(least)) == expected
    assert encode(personalizer.decode_rank(nulls)) == expected
    assert personalizer.decode_rank(least.replace(b"false", b"true")).deferred


def test_a_rank_with_slots_is_decoded() -> None:
    rank = personalizer.decode_slots_rank(SLOTS_RANK)
    assert rank.slots == [
        Slot(id="Main Article", baseline="News", excluded=["Sports", "Fun"]),
        Slot(id="Side Bar", baseline="Sports", features=Raw(b'[{"size":"Small"}]')),
    ]
    assert rank.event == "123456789"


def test_rewards_and_activations_are_decoded() -> None:
    assert personalizer.decode_reward("e", b'{"value": 1.0}') == RewardRequest(
        event="e", values={ONLY_SLOT: 1.0}
    )
    assert personalizer.decode_reward("e", b'{"value": -1}').values == {ONLY_SLOT: -1.0}
    slots = b'{"reward": [{"slotId": "s", "value": 1.0}, {"slotId": "t", "value": 0}]}'
    assert personalizer.decode_slots_reward("e", slots).values == {"s": 1.0, "t": 0.0}
    assert personalizer.decode_activate("a/b") == ActivateRequest(event="a/b")


def test_answers_have_the_format_of_the_clients() -> None:
    answer = RankAnswer(
        event="é/1", chosen="b", ranking=[RankedAction("b", 0.75), RankedAction("a", 0.25)]
    )
    assert personalizer.encode_rank(answer).decode() == (
        '{"ranking":[{"id":"b","probability":0.75},{"id":"a","probability":0.25}],'
        '"eventId":"é/1","rewardActionId":"b"}'
    )
    slots = RankAnswer(event="e", slots=[SlotAnswer(id="s", chosen="b", ranking=answer.ranking)])
    assert personalizer.encode_slots_rank(slots) == (
        b'{"slots":[{"id":"s","rewardActionId":"b"}],"eventId":"e"}'
    )


def actions(*ids: str) -> list[dict[str, Any]]:
    return [{"id": id, "features": [{"x": 1}]} for id in ids]


@pytest.mark.parametrize(
    ("body", "target", "message"),
    [
        ({}, "actions", "missing required field"),
        ({"actions": []}, "actions", "length >= 1"),
        ({"actions": actions(*map(str, range(51)))}, "actions", "length <= 50"),
        ({"actions": None}, "actions", "null"),
        ({"actions": [None]}, "actions[0]", "null"),
        ({"actions": [{"id": "a"}]}, "actions[0].features", "missing"),
        ({"actions": [{"features": []}]}, "actions[0].id", "missing"),
        ({"actions": [{"id": "", "features": []}]}, "actions[0].id", "length >= 1"),
        ({"actions": [{"id": 7, "features": []}]}, "actions[0].id", "Expected `str`"),
        ({"actions": [{"id": "a" * 257, "features": []}]}, "actions[0].id", "length <= 256"),
        ({"actions": [{"id": "a", "features": [None]}]}, "actions[0].features[0]", "null"),
        ({"actions": [{"id": "a", "features": {"x": 1}}]}, "actions[0].features", "array"),
        ({"actions": actions("a", "b", "a")}, "actions[2].id", "twice"),
        ({"actions": actions("a"), "excludedActions": ["a"]}, "excludedActions", "all actions"),
        ({"actions": actions("a"), "excludedActions": [1]}, "excludedActions[0]", "Expected `str`"),
        ({"actions": actions("a"), "eventId": ""}, "eventId", "length >= 1"),
        ({"actions": actions("a"), "eventId": "a\x00b"}, "eventId", "control characters"),
        ({"actions": actions("a"), "eventId": 5}, "eventId", "Expected `str"),
        ({"actions": actions("a"), "deferActivation": 1}, "deferActivation", "bool"),
        ({"actions": actions("a"), "contextFeatures": [{"": 1}]}, "contextFeatures[0]", "length"),
        (
            {"actions": actions("a"), "contextFeatures": [{"x": [True]}]},
            "contextFeatures[0]",
            "float",
        ),
        (
            {"actions": actions("a"), "contextFeatures": [{"x": {"y": [{}]}}]},
            "contextFeatures[0]",
            "object",
        ),
        (
            {"actions": actions("a"), "contextFeatures": [{"x": 1e16}]},
            "contextFeatures[0]",
            "float",
        ),
        ({"actions": actions("a"), "contextFeatures": ["x"]}, "contextFeatures[0]", "object"),
    ],
)
def test_an_invalid_rank_is_refused(body: dict[str, Any], target: str, message: str) -> None:
    refused = refusal(lambda: personalizer.decode_rank(msgspec.json.encode(body)))
    assert (refused.status, refused.code) == (400, "InvalidRankRequest")
    assert refused.target is not None
    assert refused.target.startswith(target)
    assert message in refused.message


def slot(id: str, baseline: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "baselineAction": baseline, **more}


@pytest.mark.parametrize(
    ("slots", "target", "message"),
    [
        (None, "slots", "missing"),
        ([], "slots", "length >= 1"),
        ([slot("s", "a"), slot("t", "b"), slot("u", "a")], "slots", "3 slots for 2 actions"),
        ([slot("s", "a"), slot("s", "b")], "slots[1].id", "twice"),
        ([{"id": "s"}], "slots[0].baselineAction", "missing"),
        ([slot("s", "c")], "slots[0].baselineAction", "no such action"),
        ([slot("s", "a"), slot("t", "a")], "slots[1].baselineAction", "another slot"),
        ([slot("s", "a", excludedActions=["a"])], "slots[0].baselineAction", "excludes"),
        ([slot("s", "a", excludedActions=["b", "c"])], "slots[0].excludedActions[1]", "no such"),
    ],
)
def test_slots_that_cannot_be_filled_are_refused(
    slots: list[dict[str, Any]] | None, target: str, message: str
) -> None:
    body = {"actions": actions("a", "b")} | ({} if slots is None else {"slots": slots})
    refused = refusal(lambda: personalizer.decode_slots_rank(msgspec.json.encode(body)))
    assert (refused.status, refused.code, refused.target) == (400, "InvalidRankRequest", target)
    assert message in refused.message


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (b"{}", "value"),
        (b'{"value": "1"}', "value"),
        (b'{"value": true}', "value"),
        (b'{"value": null}', "value"),
        (b'{"value": 1.0001}', "value"),
        (b'{"value": -2}', "value"),
        (b'{"value": 1e999}', "value"),
        (b"[1]", None),
    ],
)
def test_an_invalid_reward_is_refused(body: bytes, target: str | None) -> None:
    refused = refusal(lambda: personalizer.decode_reward("e", body))
    assert (refused.status, refused.code, refused.target) == (400, "InvalidRewardRequest", target)


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (b'{"reward": []}', "reward"),
        (b'{"reward": [{"slotId": "", "value": 1}]}', "reward[0].slotId"),
        (b'{"reward": [{"slotId": "s"}]}', "reward[0].value"),
        (
            b'{"reward": [{"slotId": "s", "value": 1}, {"slotId": "s", "value": 0}]}',
            "reward[1].slotId",
        ),
    ],
)
def test_invalid_rewards_of_slots_are_refused(body: bytes, target: str) -> None:
    refused = refusal(lambda: personalizer.decode_slots_reward("e", body))
    assert (refused.status, refused.code, refused.target) == (400, "InvalidRewardRequest", target)


def test_an_invalid_event_id_is_refused() -> None:
    for event in ("e" * 257, "a\nb"):
        refused = refusal(lambda: personalizer.decode_activate(event))
        assert (refused.code, refused.target) == ("InvalidEventIdToActivate", "eventId")
        refused = refusal(lambda: personalizer.decode_reward(event, b'{"value": 1}'))
        assert (refused.code, refused.target) == ("InvalidRewardRequest", "eventId")


def test_a_body_with_too_many_values_is_refused() -> None:
    features = {"x": [0] * (LIMITS.values + 1)}
    body = msgspec.json.encode({"actions": [{"id": "a", "features": [features]}]})
    refused = refusal(lambda: personalizer.decode_rank(body))
    assert (refused.status, refused.code) == (400, "InvalidRankRequest")
    assert f"more than {LIMITS.values:,} values" in refused.message
    objects = {"actions": [{"id": "a", "features": [{"x": [0]}] * (LIMITS.values // 3 + 1)}]}
    refused = refusal(lambda: personalizer.decode_rank(msgspec.json.encode(objects)))
    assert "more than" in refused.message


def test_commas_in_strings_are_not_counted_as_values() -> None:
    features = {str(i): "," * 9000 for i in range(LIMITS.values // 9000 + 1)}
    body = msgspec.json.encode({"actions": [{"id": "a", "features": [features]}]})
    assert unpack_features(personalizer.decode_rank(body).actions[0].features) == [features]
