"""Azure Personalizer's dialects, `/personalizer`: every call of its four clients, by path and method."""

from functools import partial

from rbmle.service.api.base import (
    BYTES,
    Dialect,
    Endpoint,
    EndpointTable,
    Reply,
    Segments,
    changing,
    deciding,
    reading,
    table_of,
)
from rbmle.service.api.faults import Refusal
from rbmle.service.api.paths import parameters
from rbmle.service.api.personalizer import bodies
from rbmle.service.api.personalizer import evaluating as judge
from rbmle.service.api.personalizer import operating as do
from rbmle.service.api.personalizer.errors import (
    ErrorCode,
    encode_problem,
    error_headers,
    fault,
    problem,
)
from rbmle.service.api.personalizer.versions import IN_PATH, Version, version_of
from rbmle.service.deciding.requests import ActivateRequest

MOST_MODEL_BYTES = 2**28


def _endpoints(version: Version) -> dict[str, Endpoint]:
    """Return what all versions have; v1.0 has fewer calls, but that it answers more hurts no client."""
    return {
        "POST rank": deciding(
            "rank",
            lambda _, body: bodies.decode_rank(body),
            unpack=lambda _, body: bodies.unpack_rank(body),
            encode=bodies.encode_rank,
        ),
        "POST events/{id}/reward": deciding("reward", bodies.decode_reward),
        "POST events/{id}/activate": deciding("activate", _activate),
        "POST multislot/rank": deciding(
            "rank_slots",
            lambda _, body: bodies.decode_slots_rank(body),
            encode=bodies.encode_slots_rank,
        ),
        "POST multislot/events/{id}/reward": deciding("reward_slots", bodies.decode_slots_reward),
        "POST multislot/events/{id}/activate": deciding("activate_slots", _activate),
        "GET configurations/service": reading(
            "get_configuration", partial(do.get_configuration, version)
        ),
        "PUT configurations/service": changing(
            "put_configuration", partial(do.put_configuration, version)
        ),
        "GET configurations/policy": reading("get_policy", do.get_policy),
        "PUT configurations/policy": changing("put_policy", do.put_policy),
        "DELETE configurations/policy": changing("reset_policy", do.reset_policy),
        "POST configurations/applyfromevaluation": changing(
            "apply_evaluation", judge.apply, status=204
        ),
        "GET model": reading("get_model", do.get_model, kind=BYTES),
        "PUT model": changing("put_model", do.put_model, status=204, most_bytes=MOST_MODEL_BYTES),
        "DELETE model": changing("reset_model", do.reset_model, status=204),
        "GET model/properties": reading("get_model_properties", do.get_model_properties),
        "DELETE logs": changing("delete_logs", do.delete_no_logs, status=204),
        "GET logs/properties": reading("get_log_properties", do.get_log_properties),
        "GET evaluations": reading("list_evaluations", partial(judge.list_all, version)),
        "GET evaluations/{id}": reading("get_evaluation", partial(judge.get, version)),
        "DELETE evaluations/{id}": changing("delete_evaluation", judge.delete, status=204),
    }


def _v1(version: Version) -> EndpointTable:
    create = partial(judge.create, version)
    return table_of(
        {
            **_endpoints(version),
            "POST evaluations": changing("create_evaluation", create, status=201),
            "POST logs/interactions": changing("log_interactions", do.take_no_logs, status=204),
            "POST logs/observations": changing("log_observations", do.take_no_logs, status=204),
        }
    )


def _v2022(version: Version) -> EndpointTable:
    create = partial(judge.create, version)
    return table_of(
        {
            **_endpoints(version),
            "PUT evaluations/{id}": changing("create_evaluation", create),
            "GET featureimportances": reading("list_feature_importances", judge.list_importances),
            "GET featureimportances/{id}": reading("get_feature_importance", judge.get_importance),
            "PUT featureimportances/{id}": changing(
                "create_feature_importance", judge.create_importance
            ),
            "DELETE featureimportances/{id}": changing(
                "delete_feature_importance", judge.delete_importance, status=204
            ),
        }
    )


def _activate(event: str, body: bytes) -> ActivateRequest:
    return bodies.decode_activate(event)


TABLES = {
    Version.V1_0: _v1(Version.V1_0),
    Version.V1_1: _v1(Version.V1_1),
    Version.V2022: _v2022(Version.V2022),
}


def _table(parts: Segments, query: bytes) -> tuple[EndpointTable, Segments] | Refusal:
    version = IN_PATH.get(parts[1].lower()) if len(parts) > 1 else None
    if version is not None:
        return TABLES[version], parts[2:]
    given = parameters(query).get("api-version")
    if given is None or given.lower() != Version.V2022.value:
        return problem(
            ErrorCode.BAD_REQUEST,
            f"the API version {given!r} is not known; send the query "
            f"?api-version={Version.V2022.value}, or a path with /{Version.V1_0.value}/ "
            f"or /{Version.V1_1.value}/",
            target="api-version",
        )
    return TABLES[Version.V2022], parts[1:]


def _refuse(problem: Refusal, path: bytes) -> Reply:
    headers = tuple((name.encode(), value.encode()) for name, value in error_headers(problem))
    return Reply(problem.status, encode_problem(problem, version_of(path)), headers)


PERSONALIZER = Dialect(
    request_header=b"x-ms-client-request-id",
    checks_rewards=False,  # Personalizer took all of them
    table=_table,
    fault=fault,
    refuse=_refuse,
)
