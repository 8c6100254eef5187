"""Every call of Personalizer's four clients has its route."""

import pytest

from rbmle.service.access.keys import Scope
from rbmle.service.api.personalizer.dialect import PERSONALIZER, parse_query
from rbmle.service.api.personalizer.errors import Version
from rbmle.service.api.routes import find_route
from tests.service.api.samples import LATER, V1_0, V1_1, V2022, asked

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
    assert found.dialect is PERSONALIZER[version]
    assert found.endpoint in [
        e for table in found.dialect.endpoints.values() for e in table.values()
    ]
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
        for dialect in PERSONALIZER.values()
        for methods in dialect.endpoints.values()
        for endpoint in methods.values()
    ]
    assert {operation for *_, operation, _ in CALLS} == {endpoint.name for endpoint in endpoints}
    for endpoint in endpoints:
        assert endpoint.status in {200, 201, 204}
        assert (endpoint.decode is None) != (endpoint.operate is None)


@pytest.mark.parametrize(
    "path", ["//personalizer/v1.0/rank", "/personalizer/v1.0/rank/", "/Personalizer/V1.0/Rank"]
)
def test_extra_slashes_and_capitals_are_accepted(path: str) -> None:
    """An endpoint is often written with a slash at its end, and clients send it so."""
    assert asked("POST", path).endpoint.name == "rank"


def test_parameters_of_the_query_are_read() -> None:
    query = (
        b"api-version=2022-09-01-preview&intervalInMinutes=5&startTime=2026-01-01T00%3A00%3A00.000Z"
        b"&window=Expanding"
    )
    route = find_route("GET", b"/personalizer/evaluations/e%2F1", query)
    assert (route.id, route.problem) == ("e/1", None)
    assert parse_query(query)["starttime"] == "2026-01-01T00:00:00.000Z"
    assert parse_query(query)["intervalinminutes"] == "5"


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
def test_unknown_paths_are_refused_in_their_dialect(
    method: str, path: str, query: str, status: int, code: str
) -> None:
    problem = find_route(method, path.encode(), query.encode()).problem
    assert problem is not None
    assert (problem.status, problem.code) == (status, code)
    assert bool(problem.allow) == (status == 405)


@pytest.mark.parametrize(
    ("path", "version"),
    [
        (b"//personalizer/v1.0/nothing", Version.V1_0),
        (b"/personalizer/V1.1-preview.3/rank", Version.V1_1),
        (b"/personalizer/rank", Version.V2022),
        (b"/personalizer/%FF", Version.V2022),
    ],
)
def test_a_refusal_is_worded_in_the_version_of_the_path(path: bytes, version: Version) -> None:
    assert find_route("GET", path, b"").dialect is PERSONALIZER[version]
