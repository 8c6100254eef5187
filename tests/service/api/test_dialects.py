"""Wire formats: what Personalizer's four clients send, byte for byte, and our own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

import rbmle.service
from rbmle.service.access.keys import Scope
from rbmle.service.api.base import Request, Route
from rbmle.service.api.dialects import dialect_of, resolve
from rbmle.service.api.faults import Fault, Refusal, RefusedError
from rbmle.service.api.native import bodies as native
from rbmle.service.api.native.dialect import NATIVE
from rbmle.service.api.native.openapi import openapi
from rbmle.service.api.paths import parameters
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.api.personalizer.dialect import PERSONALIZER, TABLES
from rbmle.service.api.personalizer.errors import (
    CODES,
    ErrorCode,
    encode_problem,
    error_headers,
    fault,
    problem,
)
from rbmle.service.api.personalizer.evaluations import (
    EvaluationAnswer,
    PolicyEstimate,
    Progress,
    encode_evaluation,
    encode_evaluations,
    encode_page,
)
from rbmle.service.api.personalizer.settings import (
    decode_configuration,
    decode_policy,
    encode_configuration,
    encode_log_properties,
    encode_model_properties,
)
from rbmle.service.api.personalizer.versions import Version, version_of
from rbmle.service.api.personalizer.wire import PolicyBody
from rbmle.service.configuration import Aggregation, LearningMode, ServiceConfiguration, Settle
from rbmle.service.deciding.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    EventAnswer,
    RankAnswer,
    RankedAction,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
    SlotAnswer,
    StatusAnswer,
)
from rbmle.service.features.limits import LIMITS
from rbmle.service.log.records import NO_FEATURES, unpacked

V1_0, V1_1, V2022 = "/personalizer/v1.0", "/personalizer/v1.1-preview.3", "/personalizer"
LATER = "api-version=2022-09-01-preview"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = datetime(2019, 1, 19, tzinfo=UTC)

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
CONFIGURATION = (
    b'{"rewardAggregation": "sum", "modelExportFrequency": "PT3M", "defaultReward": 1.0, '
    b'"modelRetrainDays": 2, "rewardWaitTime": "PT4H", "explorationPercentage": 0.3, '
    b'"logRetentionDays": -1, "learningMode": "Online"}'
)

# Every call of the clients: method, path, what it is, the status they take for success.
SHARED = [
    ("POST", "/rank", "rank", 201),
    ("POST", "/events/e/reward", "reward", 204),
    ("POST", "/events/e/activate", "activate", 204),
]
ALL_BUT_V1_0 = [
    *SHARED,
    ("POST", "/multislot/rank", "rank_slots", 201),
    ("POST", "/multislot/events/e/reward", "reward_slots", 204),
    ("POST", "/multislot/events/e/activate", "activate_slots", 204),
    ("GET", "/configurations/service", "get_configuration", 200),
    ("PUT", "/configurations/service", "put_configuration", 200),
    ("POST", "/configurations/applyFromEvaluation", "apply_evaluation", 204),
    ("GET", "/configurations/policy", "get_policy", 200),
    ("PUT", "/configurations/policy", "put_policy", 200),
    ("DELETE", "/configurations/policy", "reset_policy", 200),
    ("GET", "/model", "get_model", 200),
    ("PUT", "/model", "put_model", 204),
    ("DELETE", "/model", "reset_model", 204),
    ("GET", "/model/properties", "get_model_properties", 200),
    ("DELETE", "/logs", "delete_logs", 204),
    ("GET", "/logs/properties", "get_log_properties", 200),
    ("GET", "/evaluations", "list_evaluations", 200),
    ("GET", "/evaluations/e", "get_evaluation", 200),
    ("DELETE", "/evaluations/e", "delete_evaluation", 204),
]
CALLS = [
    *((V1_0, *call) for call in SHARED),
    *((V1_1, *call) for call in ALL_BUT_V1_0),
    (V1_1, "POST", "/evaluations", "create_evaluation", 201),
    (V1_1, "POST", "/logs/interactions", "log_interactions", 204),
    (V1_1, "POST", "/logs/observations", "log_observations", 204),
    *((V2022, *call) for call in ALL_BUT_V1_0),
    (V2022, "PUT", "/evaluations/e", "create_evaluation", 200),
    (V2022, "GET", "/featureImportances", "list_feature_importances", 200),
    (V2022, "GET", "/featureImportances/e", "get_feature_importance", 200),
    (V2022, "PUT", "/featureImportances/e", "create_feature_importance", 200),
    (V2022, "DELETE", "/featureImportances/e", "delete_feature_importance", 204),
]


@pytest.mark.parametrize(("prefix", "method", "path", "operation", "status"), CALLS)
def test_every_call_of_the_clients_has_its_route(
    prefix: str, method: str, path: str, operation: str, status: int
) -> None:
    found = asked(method, prefix + path)
    assert found.endpoint.name == operation
    assert found.endpoint.status == status
    version = Version(prefix.rpartition("/")[2] if prefix != V2022 else LATER.partition("=")[2])
    assert found.endpoint in [e for table in TABLES[version].values() for e in table.values()]
    assert version_of((prefix + path).encode()) is version
    assert found.id == (
        "e" if "/e" in path.replace("/events", "").replace("/evaluations", "") else ""
    )
    is_deciding = operation.startswith(("rank", "reward", "activate"))
    assert found.endpoint.scope is (
        Scope.DECIDE if is_deciding else Scope.READ if method == "GET" else Scope.ADMIN
    )


def test_every_operation_is_called_by_some_client() -> None:
    endpoints = [
        endpoint
        for table in TABLES.values()
        for methods in table.values()
        for endpoint in methods.values()
    ]
    assert {operation for *_, operation, _ in CALLS} == {endpoint.name for endpoint in endpoints}
    for endpoint in endpoints:
        assert endpoint.status in {200, 201, 204}
        assert (endpoint.decode is None) != (endpoint.operate is None)


@pytest.mark.parametrize(
    "event", ["a/b é", "..", "{id}", "100%", "a?b#c", "é" * 256, "+ ;", "reward"]
)
@pytest.mark.parametrize("prefix", [V1_0, V1_1, V2022])
def test_an_event_id_comes_as_it_is(prefix: str, event: str) -> None:
    assert asked("POST", f"{prefix}/events/{quote(event, safe='')}/reward").id == event
    assert asked("POST", f"{prefix}/multislot/events/{quote(event, safe='')}/activate").id == event
    native_route = NATIVE.route("GET", f"/v1/events/{quote(event, safe='')}".encode(), b"")
    assert isinstance(native_route, Route)
    assert native_route.id == event


@pytest.mark.parametrize(
    "path", ["//personalizer/v1.0/rank", "/personalizer/v1.0/rank/", "/Personalizer/V1.0/Rank"]
)
def test_slashes_too_many_and_capitals_find_their_way(path: str) -> None:
    """An endpoint is often written with a slash at its end, and clients send it so."""
    assert asked("POST", path).endpoint.name == "rank"


def test_parameters_of_the_query_are_read() -> None:
    query = (
        b"api-version=2022-09-01-preview&intervalInMinutes=5&startTime=2026-01-01T00%3A00%3A00.000Z"
        b"&window=Expanding"
    )
    found = PERSONALIZER.route("GET", b"/personalizer/evaluations/e%2F1", query)
    assert isinstance(found, Route)
    assert found.id == "e/1"
    assert parameters(query)["starttime"] == "2026-01-01T00:00:00.000Z"
    assert parameters(query)["intervalinminutes"] == "5"


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "code"),
    [
        ("POST", "/personalizer/v1.0/ranks", "", 404, "ResourceNotFound"),
        ("POST", "/personalizer/v1.0/events//reward", "", 404, "ResourceNotFound"),
        ("POST", "/personalizer/v1.0/events/a/b/reward", "", 404, "ResourceNotFound"),
        ("POST", "/personalizer/v1.0", "", 404, "ResourceNotFound"),
        ("GET", "/personalizer/v1.0/rank", "", 405, "MethodNotAllowed"),
        ("PATCH", "/personalizer/v1.1-preview.3/model", "", 405, "MethodNotAllowed"),
        ("POST", "/personalizer/evaluations", LATER, 405, "MethodNotAllowed"),
        ("POST", "/personalizer/rank", "", 400, "BadRequest"),
        ("POST", "/personalizer/rank", "api-version=2030-01-01", 400, "BadRequest"),
        ("POST", "/personalizer/v9/rank", "", 400, "BadRequest"),
        ("POST", "/personalizer", "", 400, "BadRequest"),
        ("POST", "/personalizer/v1.0/events/%FF/reward", "", 400, "BadRequest"),
    ],
)
def test_what_is_not_there_is_refused_in_its_dialect(
    method: str, path: str, query: str, status: int, code: str
) -> None:
    found = PERSONALIZER.route(method, path.encode(), query.encode())
    assert isinstance(found, Refusal)
    assert (found.status, found.code) == (status, code)
    assert bool(found.allow) == (status == 405)


def test_a_method_that_is_not_there_names_those_that_are() -> None:
    found = PERSONALIZER.route("POST", b"/personalizer/v1.0/model", b"")
    assert isinstance(found, Refusal)
    assert error_headers(found) == (
        ("x-ms-error-code", "MethodNotAllowed"),
        ("allow", "DELETE, GET, PUT"),
    )
    here = NATIVE.route("DELETE", b"/v1/configuration", b"")
    assert isinstance(here, Refusal)
    assert (here.status, here.code, here.allow) == (
        405,
        "method_not_allowed",
        ("GET", "PATCH", "PUT"),
    )


@pytest.mark.parametrize(
    "path", [b"", b"/", b"/metrics", b"/personalizers/v1.0/rank", b"/v2/rank", b"/%FF"]
)
def test_paths_of_others_are_left_to_them(path: bytes) -> None:
    assert dialect_of(path) is None
    found = resolve(Request(method="POST", path=path, query=b"", headers={}, address=""))
    assert found.problem is not None
    assert found.problem.status == 404


PIECES = st.lists(
    st.sampled_from(
        [
            b"/",
            b"personalizer",
            b"v1",
            b"v1.0",
            b"events",
            b"rank",
            b"%2F",
            b"%",
            b"%zz",
            b"\xff",
            b"?",
            b"{id}",
        ]
    )
    | st.binary(max_size=4),
    max_size=12,
).map(b"".join)


@given(st.sampled_from(["GET", "POST", "", "é"]) | st.text(), st.binary() | PIECES, st.binary())
def test_no_path_is_too_strange_to_route(method: str, raw_path: bytes, query: bytes) -> None:
    for dialect in (PERSONALIZER, NATIVE):
        for path in (raw_path, b"/v1/" + raw_path, b"/personalizer/v1.0/" + raw_path):
            found = dialect.route(method, path, query)
            assert isinstance(found, Refusal | Route)
            if isinstance(found, Refusal):
                assert found.status in {400, 404, 405}
                assert encode_problem(found, version_of(path))
                assert native.encode_problem(found)


def test_a_rank_of_the_oldest_client_is_understood() -> None:
    assert personalizer.decode_rank(RANK_V1_0) == RankRequest(
        event="é/1",
        context=Raw(b'[{"day": "monday"}]'),
        actions=[Action("pasta", Raw(b'[{"taste": "salty"}, {"n": 3}]'))],
        excluded=["juice"],
    )


def test_a_rank_of_the_newest_client_is_understood() -> None:
    rank = personalizer.decode_rank(RANK)
    assert rank.event == "123456789"
    assert [action.id for action in rank.actions] == ["Video1", "Video2"]
    assert unpacked(rank.actions[1].features) == [{"videoLength": 0.5, "grams": [400, 800]}]
    assert unpacked(rank.context)[0] == {"currentContext": {"day": "tuesday", "weather": None}}
    assert rank.excluded == ["Video1"]
    assert not rank.deferred
    assert rank.slots == []


def test_what_a_client_leaves_out_or_sends_as_null_is_none() -> None:
    least = b'{"actions": [{"id": "a", "features": []}], "deferActivation": false}'
    nulls = (
        b'{"actions":[{"id":"a","features":[]}],"contextFeatures":null,"excludedActions":null,'
        b'"eventId":null,"deferActivation":null,"anything":{"else":[1]}}'
    )
    assert personalizer.decode_rank(least) == RankRequest(actions=[Action("a", NO_FEATURES)])
    assert personalizer.decode_rank(nulls) == RankRequest(actions=[Action("a", NO_FEATURES)])
    assert personalizer.decode_rank(least.replace(b"false", b"true")).deferred


def test_a_rank_with_slots_is_understood() -> None:
    rank = personalizer.decode_slots_rank(SLOTS_RANK)
    assert rank.slots == [
        Slot(id="Main Article", baseline="News", excluded=["Sports", "Fun"]),
        Slot(id="Side Bar", baseline="Sports", features=Raw(b'[{"size":"Small"}]')),
    ]
    assert rank.event == "123456789"


def test_rewards_and_activations_are_understood() -> None:
    assert personalizer.decode_reward("e", b'{"value": 1.0}') == RewardRequest(
        event="e", values={ONLY_SLOT: 1.0}
    )
    assert personalizer.decode_reward("e", b'{"value": -1}').values == {ONLY_SLOT: -1.0}
    slots = b'{"reward": [{"slotId": "s", "value": 1.0}, {"slotId": "t", "value": 0}]}'
    assert personalizer.decode_slots_reward("e", slots).values == {"s": 1.0, "t": 0.0}
    assert personalizer.decode_activate("a/b") == ActivateRequest(event="a/b")


def test_answers_are_what_the_clients_read() -> None:
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
            {"actions": actions("a"), "contextFeatures": [{"x": {"y": {}}}]},
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
def test_a_rank_that_cannot_be_meant_is_refused(
    body: dict[str, Any], target: str, message: str
) -> None:
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
def test_a_reward_that_cannot_be_meant_is_refused(body: bytes, target: str | None) -> None:
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
def test_rewards_of_slots_that_cannot_be_meant_are_refused(body: bytes, target: str) -> None:
    refused = refusal(lambda: personalizer.decode_slots_reward("e", body))
    assert (refused.status, refused.code, refused.target) == (400, "InvalidRewardRequest", target)


def test_an_event_id_that_no_event_has_is_refused() -> None:
    for event in ("e" * 257, "a\nb"):
        refused = refusal(lambda: personalizer.decode_activate(event))
        assert (refused.code, refused.target) == ("InvalidEventIdToActivate", "eventId")
        refused = refusal(lambda: personalizer.decode_reward(event, b'{"value": 1}'))
        assert (refused.code, refused.target) == ("InvalidRewardRequest", "eventId")


HOSTILE = [
    b"",
    b"{",
    b"\xff",
    b'{"value": NaN}',
    b'{"value": Infinity}',
    b'{"value": 1} x',
    b"\xef\xbb\xbf{}",
    b'{"x": "\\ud800"}',
    b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    refused = refusal(lambda: personalizer.decode_reward("e", body))
    assert (refused.status, refused.code) == (400, "BadRequest")
    assert refusal(lambda: native.decode_reward("e", body)).code == "malformed"


def test_a_body_of_too_many_values_is_refused() -> None:
    features = {"x": [0] * (LIMITS.values + 1)}
    body = msgspec.json.encode({"actions": [{"id": "a", "features": [features]}]})
    refused = refusal(lambda: personalizer.decode_rank(body))
    assert (refused.status, refused.code) == (400, "InvalidRankRequest")
    assert f"more than {LIMITS.values:,} values" in refused.message
    objects = {"actions": [{"id": "a", "features": [{"x": [0]}] * (LIMITS.values // 3 + 1)}]}
    refused = refusal(lambda: personalizer.decode_rank(msgspec.json.encode(objects)))
    assert "more than" in refused.message


def test_commas_in_a_text_are_no_values() -> None:
    features = {str(i): "," * 9000 for i in range(LIMITS.values // 9000 + 1)}
    body = msgspec.json.encode({"actions": [{"id": "a", "features": [features]}]})
    assert unpacked(personalizer.decode_rank(body).actions[0].features) == [features]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "actions",
                    "id",
                    "features",
                    "slots",
                    "eventId",
                    "event",
                    "value",
                    "reward",
                    "slotId",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON.map(msgspec.json.encode) | st.binary())
def test_any_body_is_understood_or_refused(body: bytes) -> None:
    for decode in (
        personalizer.decode_rank,
        personalizer.decode_slots_rank,
        lambda b: personalizer.decode_reward("e", b),
        lambda b: personalizer.decode_slots_reward("e", b),
        lambda b: decode_configuration(b, ServiceConfiguration()),
        decode_policy,
        native.decode_rank,
        lambda b: native.decode_reward("e", b),
        lambda b: native.decode_configuration(b, ServiceConfiguration()),
        lambda b: native.decode_change(b, ServiceConfiguration()),
    ):
        try:
            decode(body)
        except RefusedError as error:
            assert error.problem.status == 400
            encode_problem(error.problem, Version.V1_0)


def test_errors_have_personalizers_shape() -> None:
    refused = problem(ErrorCode.INVALID_RANK_REQUEST, "no actions", target="actions")
    assert encode_problem(refused, Version.V2022) == (
        b'{"error":{"code":"InvalidRankRequest","message":"no actions","target":"actions"}}'
    )
    assert encode_problem(refused, Version.V1_0) == (
        b'{"error":{"code":"BadRequest","message":"no actions","target":"actions",'
        b'"innerError":{"code":"InvalidRankRequest"}}}'
    )


def test_v1_0_has_three_codes_and_those_of_its_gateway() -> None:
    seen = {
        msgspec.json.decode(encode_problem(problem(code, "x"), Version.V1_0))["error"]["code"]
        for code in ErrorCode
    }
    assert seen == {"BadRequest", "ResourceNotFound", "InternalServerError", "401", "403", "429"}


def test_every_code_is_sent_somewhere() -> None:
    source = "".join(path.read_text() for path in Path(rbmle.service.__path__[0]).rglob("*.py"))
    assert [code.name for code in ErrorCode if f"ErrorCode.{code.name}" not in source] == []


def test_codes_are_distinct_and_every_fault_has_one() -> None:
    assert len({code.code for code in ErrorCode}) == len(ErrorCode)
    assert set(CODES) == set(Fault)
    for what in Fault:
        assert fault(what, "x").status == what.value == native.fault(what, "x").status


def test_the_version_to_answer_in_is_known_before_the_route() -> None:
    assert version_of(b"//personalizer/v1.0/nothing") is Version.V1_0
    assert version_of(b"/personalizer/V1.1-preview.3/rank") is Version.V1_1
    assert version_of(b"/personalizer/rank") is Version.V2022
    assert version_of(b"/%FF") is Version.V2022


def test_a_configuration_is_read_and_written_as_personalizer_does() -> None:
    configuration = decode_configuration(CONFIGURATION, ServiceConfiguration())
    assert configuration == ServiceConfiguration(
        reward_wait_time=timedelta(hours=4),
        default_reward=1.0,
        reward_aggregation=Aggregation.SUM,
        exploration=0.3,
        model_export_frequency=timedelta(minutes=3),
        model_retrain_days=2,
    )
    written = encode_configuration(configuration, Version.V2022, edited=DAY)
    assert msgspec.json.decode(written) == msgspec.json.decode(CONFIGURATION) | {
        "logMirrorEnabled": False,
        "isAutoOptimizationEnabled": False,
        "lastConfigurationEditDate": "2019-01-19T00:00:00Z",
    }


@pytest.mark.parametrize("settle", Settle)
def test_personalizer_does_not_know_when_events_are_settled_and_leaves_it(settle: Settle) -> None:
    before = ServiceConfiguration(settle=settle)
    assert decode_configuration(CONFIGURATION, before).settle is settle
    assert b"settle" not in encode_configuration(before, Version.V2022)


@pytest.mark.parametrize("version", Version)
def test_a_configuration_can_be_sent_back_as_it_came(version: Version) -> None:
    configuration = ServiceConfiguration(
        is_auto_optimization_enabled=True,
        auto_optimization_frequency=timedelta(days=7),
        auto_optimization_start_date=DAY,
        learning_mode=LearningMode.LOGGING_ONLY,
        model_retrain_days=3,
    )
    body = encode_configuration(configuration, version, edited=NOON)
    assert b'"autoOptimizationFrequency":"P7D"' in body
    assert (b"modelRetrainDays" in body) == (version is Version.V2022)
    assert decode_configuration(body, configuration) == configuration


@pytest.mark.parametrize(
    ("change", "code", "target"),
    [
        ({"rewardWaitTime": "PT1S"}, "InvalidRewardWaitTime", "rewardWaitTime"),
        ({"rewardWaitTime": 600}, "InvalidServiceConfiguration", "rewardWaitTime"),
        ({"logRetentionDays": 0}, "InvalidLogRetentionDays", "logRetentionDays"),
        ({"modelRetrainDays": -1}, "InvalidModelRetrainDays", "modelRetrainDays"),
        ({"defaultReward": 2}, "InvalidServiceConfiguration", "defaultReward"),
        ({"explorationPercentage": 20}, "InvalidServiceConfiguration", "explorationPercentage"),
        ({"rewardAggregation": "average"}, "InvalidServiceConfiguration", "rewardAggregation"),
        ({"learningMode": "Offline"}, "InvalidServiceConfiguration", "learningMode"),
        ({"logMirrorEnabled": True}, "InvalidServiceConfiguration", "logMirrorEnabled"),
        (
            {"autoOptimizationFrequency": "PT1H"},
            "InvalidServiceConfiguration",
            "autoOptimizationFrequency",
        ),
        ({"learningMode": "Apprentice"}, "InvalidLearningModeServiceConfiguration", "learningMode"),
    ],
)
def test_a_setting_out_of_its_range_has_its_code(
    change: dict[str, Any], code: str, target: str
) -> None:
    body = msgspec.json.encode(msgspec.json.decode(CONFIGURATION) | change)
    refused = refusal(lambda: decode_configuration(body, ServiceConfiguration()))
    assert (refused.status, refused.code, refused.target) == (400, code, target)


def test_learning_settings_and_properties_are_read_and_written() -> None:
    policy = b'{"name":"app1","arguments":"--cb_explore_adf --epsilon 0.2"}'
    settings = PolicyBody(name="app1", arguments="--cb_explore_adf --epsilon 0.2")
    assert decode_policy(policy) == settings
    assert msgspec.json.encode(settings) == policy
    refused = refusal(lambda: decode_policy(b'{"name": "app1"}'))
    assert (refused.code, refused.target) == ("InvalidPolicyContract", "arguments")
    assert encode_model_properties(DAY, NOON) == (
        b'{"creationTime":"2019-01-19T00:00:00Z","lastModifiedTime":"2026-01-01T12:00:00Z"}'
    )
    assert encode_log_properties(DAY, NOON) == (
        b'{"dateRange":{"from":"2019-01-19T00:00:00Z","to":"2026-01-01T12:00:00Z"}}'
    )


def test_an_evaluation_is_answered_in_both_shapes() -> None:
    estimate = PolicyEstimate(
        name="Online",
        arguments="",
        source="Online",
        ips_numerator=5.0,
        ips_denominator=10.0,
        snips_denominator=8.0,
        average_reward=0.5,
        half_width=0.25,
    )
    evaluation = EvaluationAnswer(
        id="e",
        name="mine",
        start=DAY,
        end=DAY + timedelta(days=1),
        created=NOON,
        progress=Progress.DONE,
        estimates=(estimate,),
    )
    old = msgspec.json.decode(encode_evaluation(evaluation, Version.V1_1))
    assert (old["status"], old["jobId"], old["evaluationType"]) == ("completed", "e", "Manual")
    summary = old["policyResults"][0]["totalSummary"]
    assert (summary["ipsEstimatorNumerator"], summary["aggregateTimeWindow"]) == (5.0, "P1D")
    new = msgspec.json.decode(encode_evaluation(evaluation, Version.V2022))
    assert new["status"] == "Succeeded"
    assert new["content"]["value"][0]["summary"] == {
        "expectedReward": 0.5,
        "confidenceInterval": [0.25, 0.75],
    }
    listed = msgspec.json.decode(encode_evaluations([evaluation], Version.V2022))
    assert [found["id"] for found in listed["value"]] == ["e"]
    assert encode_evaluations([], Version.V1_1) == b"[]"
    assert encode_page([], Version.V2022) == b'{"value":[]}'


NATIVE_RANK = (
    b'{"event":"e","context":{"user":{"age":30},"hour":12},"actions":[{"id":"a","features":{"x":1}},'
    b'{"id":"b"}],"excluded":["b"],"deferred":true}'
)


def test_a_native_rank_is_the_same_request() -> None:
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
def test_native_rewards_that_cannot_be_meant_are_refused(body: bytes, target: str | None) -> None:
    refused = refusal(lambda: native.decode_reward("e", body))
    assert (refused.status, refused.code, refused.target) == (400, "malformed", target)


def test_natively_an_unknown_field_is_refused() -> None:
    refused = refusal(lambda: native.decode_rank(b'{"actions":[{"id":"a","feature":{}}]}'))
    assert (refused.status, refused.target) == (400, "actions[0].feature")
    refused = refusal(lambda: native.decode_configuration(b'{"x":1}', ServiceConfiguration()))
    assert refused.target == "x"
    refused = refusal(lambda: native.decode_event("\x00"))
    assert refused.target == "event"


def test_native_answers_are_small() -> None:
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
        b'{"version":"0.1.0","records":10,"learned":7,"backlog":3,"observations":3}'
    )
    assert native.encode_problem(native.fault(Fault.THROTTLED, "wait")) == (
        b'{"error":{"code":"throttled","message":"wait"}}'
    )


def test_a_native_configuration_comes_back() -> None:
    configuration = ServiceConfiguration(
        exploration=0.1, auto_optimization_frequency=timedelta(days=7), settle=Settle.DELAYED
    )
    body = native.encode_configuration(configuration)
    assert native.decode_configuration(body, configuration) == configuration
    refused = refusal(lambda: native.decode_change(b'{"exploration":2}', configuration))
    assert (refused.status, refused.target) == (400, "exploration")


def test_a_native_change_leaves_all_else_as_it_was() -> None:
    before = ServiceConfiguration(exploration=0.1, auto_optimization_frequency=timedelta(days=7))
    assert native.decode_change(b"{}", before) == before
    after = native.decode_change(b'{"auto_optimization_frequency":null}', before)
    assert after == ServiceConfiguration(exploration=0.1)
    for missing in before.to_json():
        body = {name: value for name, value in before.to_json().items() if name != missing}
        encoded = msgspec.json.encode(body)
        refused = refusal(lambda encoded=encoded: native.decode_configuration(encoded, before))
        assert (refused.status, refused.target) == (400, missing)


def test_the_openapi_document_asks_for_all_settings_to_put_and_for_none_to_patch() -> None:
    document = openapi("0.1.0")
    bodies = {
        method: document["paths"]["/v1/configuration"][method]["requestBody"]["content"]
        for method in ("put", "patch")
    }
    schemas = {
        method: document["components"]["schemas"][body["application/json"]["schema"]["$ref"][21:]]
        for method, body in bodies.items()
    }
    settings = list(ServiceConfiguration().to_json())
    assert list(schemas["put"]["properties"]) == list(schemas["patch"]["properties"]) == settings
    assert schemas["put"]["required"] == settings
    assert not schemas["patch"].get("required")
    assert schemas["patch"]["properties"]["exploration"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
    }


def test_the_openapi_document_names_every_path_and_status() -> None:
    document = openapi("0.1.0")
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/v1/rank",
        "/v1/events/{id}",
        "/v1/events/{id}/reward",
        "/v1/events/{id}/activate",
        "/v1/configuration",
        "/v1/status",
    }
    rank = document["paths"]["/v1/rank"]["post"]
    assert set(rank["responses"]) == {
        *("201", "400", "401", "403", "408", "409", "413", "429", "503"),
    }
    assert set(document["paths"]["/v1/events/{id}"]["get"]["responses"]) == {
        *("200", "400", "401", "403", "404", "429", "503"),
    }
    reward = document["paths"]["/v1/events/{id}/reward"]["post"]
    assert {"204", "404", "409"} <= set(reward["responses"])
    assert rank["responses"]["503"]["headers"]["retry-after"]["required"]


def test_the_openapi_document_has_all_that_it_refers_to() -> None:
    document = openapi("0.1.0")
    text = msgspec.json.encode(document).decode()
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    assert document["components"]["schemas"]["RankBody"]["additionalProperties"] is False


def test_a_request_made_by_hand_is_checked_too() -> None:
    with pytest.raises(RequestError, match="0 actions"):
        RankRequest(actions=[])
    with pytest.raises(RequestError, match="from -1 to 1"):
        RewardRequest(event="e", values={"s": float("nan")})
    with pytest.raises(RequestError, match="no reward"):
        RewardRequest(event="e", values={})


def asked(method: str, path: str) -> Route:
    query = b"" if "/v1." in path.lower() else LATER.encode()
    found = PERSONALIZER.route(method, path.encode(), query)
    assert isinstance(found, Route), found
    return found


def refusal(call: Any) -> Refusal:
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.problem
