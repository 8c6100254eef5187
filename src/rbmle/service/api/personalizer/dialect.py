"""Azure Personalizer's dialects, `/personalizer`: all calls of its four clients, by path and method."""

from asyncio import to_thread
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from rbmle.core.policy import Policy
from rbmle.policies.registry import name_of
from rbmle.service.api.base import (
    BYTES,
    Dialect,
    Endpoint,
    EndpointTable,
    Refusal,
    RefusedError,
    Reply,
    changing,
    deciding,
    reading,
    table_of,
)
from rbmle.service.api.decoding import decode_body
from rbmle.service.api.operations import Operations, export_model, log_times
from rbmle.service.api.personalizer import bodies
from rbmle.service.api.personalizer import evaluations as judge
from rbmle.service.api.personalizer.bodies import PolicyBody, policy_of, refusing
from rbmle.service.api.personalizer.errors import (
    ErrorCode,
    Version,
    encode_problem,
    error_headers,
    fault,
    problem,
)
from rbmle.service.iso8601 import format_date
from rbmle.service.model.settings import settings_in
from rbmle.service.settings import SETTINGS, ConfigurationError, ServiceConfiguration

MOST_MODEL_BYTES = 2**28

MIRRORED, EDITED = "log_mirror_enabled", "last_configuration_edit_date"  # not settings of ours
NAMES = {  # of settings on the wire, in the order of the answer
    "reward_wait_time": "rewardWaitTime",
    "default_reward": "defaultReward",
    "reward_aggregation": "rewardAggregation",
    "exploration": "explorationPercentage",
    "model_export_frequency": "modelExportFrequency",
    MIRRORED: "logMirrorEnabled",
    "log_retention_days": "logRetentionDays",
    EDITED: "lastConfigurationEditDate",
    "learning_mode": "learningMode",
    "is_auto_optimization_enabled": "isAutoOptimizationEnabled",
    "auto_optimization_frequency": "autoOptimizationFrequency",
    "auto_optimization_start_date": "autoOptimizationStartDate",
    "model_retrain_days": "modelRetrainDays",
}
_REQUIRED = (
    *("reward_wait_time", "default_reward", "reward_aggregation", "exploration"),
    *("model_export_frequency", "log_retention_days"),
)
_TYPES = {name: row.kind.json for name, row in SETTINGS.items()} | {MIRRORED: bool, EDITED: str}
_CONFIGURATION = msgspec.json.Decoder(
    msgspec.defstruct(
        "ConfigurationBody",
        [
            (name, _TYPES[name]) if name in _REQUIRED else (name, _TYPES[name] | None, None)
            for name in NAMES
        ],
        kw_only=True,
        rename=NAMES,
    )
)
_POLICY = msgspec.json.Decoder(PolicyBody)
_CODES = {
    "reward_wait_time": ErrorCode.INVALID_REWARD_WAIT_TIME,
    "log_retention_days": ErrorCode.INVALID_LOG_RETENTION_DAYS,
    "model_retrain_days": ErrorCode.INVALID_MODEL_RETRAIN_DAYS,
}


def decode_configuration(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PUT /configurations/service; what is left out keeps its value."""
    invalid = ErrorCode.INVALID_SERVICE_CONFIGURATION
    with refusing(invalid):
        values = msgspec.structs.asdict(decode_body(_CONFIGURATION, body))
    if values[MIRRORED]:
        message = "this service does not mirror its log; send false, and export the log instead"
        raise RefusedError(problem(invalid, message, target=NAMES[MIRRORED]))
    changes = {name: values[name] for name in SETTINGS if values.get(name) is not None}
    try:
        after = ServiceConfiguration.from_json(before.to_json() | changes)
    except ConfigurationError as error:
        code = _CODES.get(error.field, invalid)
        raise RefusedError(problem(code, str(error), target=NAMES[error.field])) from None
    try:
        before.check_change(after)
    except ConfigurationError as error:
        code = ErrorCode.INVALID_LEARNING_MODE
        raise RefusedError(problem(code, str(error), target=NAMES[error.field])) from None
    return after


def encode_configuration(configuration: ServiceConfiguration, version: Version) -> bytes:
    """Return the answer of GET and PUT /configurations/service."""
    values = configuration.to_json() | {MIRRORED: False}
    if version is not Version.V2022:
        del values["model_retrain_days"]
    answer = {wire: values[name] for name, wire in NAMES.items() if values.get(name) is not None}
    return msgspec.json.encode(answer)


def decode_policy(body: bytes) -> PolicyBody:
    """Return the learning settings of PUT /configurations/policy."""
    with refusing(ErrorCode.INVALID_POLICY_CONTRACT):
        return decode_body(_POLICY, body)


def encode_model_properties(created: datetime, modified: datetime) -> bytes:
    """Return the answer of GET /model/properties."""
    return msgspec.json.encode(
        {"creationTime": format_date(created), "lastModifiedTime": format_date(modified)}
    )


def encode_log_properties(first: datetime, last: datetime) -> bytes:
    """Return the answer of GET /logs/properties."""
    return msgspec.json.encode({"dateRange": {"from": format_date(first), "to": format_date(last)}})


async def _get_configuration(
    version: Version, operations: Operations, id: str, body: bytes
) -> bytes:
    return encode_configuration(operations.service.decider.configuration, version)


async def _put_configuration(
    version: Version, operations: Operations, id: str, body: bytes
) -> bytes:
    await operations.configure(partial(decode_configuration, body))
    return encode_configuration(operations.service.decider.configuration, version)


async def _get_policy(operations: Operations, id: str, body: bytes) -> bytes:
    return _encode_policy(operations.service.model.policy)


async def _put_policy(operations: Operations, id: str, body: bytes) -> bytes:
    settings = decode_policy(body)
    policy = policy_of(settings.name, settings.arguments)
    return _encode_policy(await operations.choose_policy(policy))


async def _reset_policy(operations: Operations, id: str, body: bytes) -> bytes:
    return _encode_policy(await operations.choose_policy(None))


async def _get_model(operations: Operations, id: str, body: bytes) -> bytes:
    return await to_thread(export_model, operations.service)


async def _put_model(operations: Operations, id: str, body: bytes) -> bytes:
    await operations.import_model(body)
    return b""


async def _reset_model(operations: Operations, id: str, body: bytes) -> bytes:
    await operations.reset_model()
    return b""


async def _get_model_properties(operations: Operations, id: str, body: bytes) -> bytes:
    return encode_model_properties(*await operations.model_times())


async def _get_log_properties(operations: Operations, id: str, body: bytes) -> bytes:
    return encode_log_properties(*await to_thread(log_times, operations.service))


async def _delete_logs(operations: Operations, id: str, body: bytes) -> bytes:
    await operations.clear_log()
    return b""


async def _add_logs(operations: Operations, id: str, body: bytes) -> bytes:
    message = "this service does not accept logs over HTTP; send rank and reward requests"
    raise RefusedError(problem(ErrorCode.NOT_IMPLEMENTED, message))


def _encode_policy(policy: Policy[Any]) -> bytes:
    return msgspec.json.encode(PolicyBody(name_of(policy), settings_in(policy)))


def _endpoints(version: Version) -> dict[str, Endpoint]:
    """Return the endpoints of all versions; Personalizer's v1.0 has fewer, but more do no harm."""
    return {
        "POST rank": deciding(
            "rank",
            lambda _, body: bodies.decode_rank(body),
            unpack=lambda _, body: bodies.unpack_rank(body),
            encode=bodies.encode_rank,
        ),
        "POST events/{id}/reward": deciding("reward", bodies.decode_reward),
        "POST events/{id}/activate": deciding("activate", bodies.decode_activate),
        "POST multislot/rank": deciding(
            "rank_slots",
            lambda _, body: bodies.decode_slots_rank(body),
            encode=bodies.encode_slots_rank,
        ),
        "POST multislot/events/{id}/reward": deciding("reward_slots", bodies.decode_slots_reward),
        "POST multislot/events/{id}/activate": deciding("activate_slots", bodies.decode_activate),
        "GET configurations/service": reading(
            "get_configuration", partial(_get_configuration, version)
        ),
        "PUT configurations/service": changing(
            "put_configuration", partial(_put_configuration, version)
        ),
        "GET configurations/policy": reading("get_policy", _get_policy),
        "PUT configurations/policy": changing("put_policy", _put_policy),
        "DELETE configurations/policy": changing("reset_policy", _reset_policy),
        "POST configurations/applyfromevaluation": changing(
            "apply_evaluation", judge.apply, status=204
        ),
        "GET model": reading("get_model", _get_model, kind=BYTES),
        "PUT model": changing("put_model", _put_model, status=204, most_bytes=MOST_MODEL_BYTES),
        "DELETE model": changing("reset_model", _reset_model, status=204),
        "GET model/properties": reading("get_model_properties", _get_model_properties),
        "DELETE logs": changing("delete_logs", _delete_logs, status=204),
        "GET logs/properties": reading("get_log_properties", _get_log_properties),
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
            "POST logs/interactions": changing("log_interactions", _add_logs, status=204),
            "POST logs/observations": changing("log_observations", _add_logs, status=204),
        }
    )


def _v2022() -> EndpointTable:
    version = Version.V2022
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


IN_PATH = {version.value: version for version in (Version.V1_0, Version.V1_1)}


def choose_version(
    parts: Sequence[str], query: bytes
) -> tuple[Dialect, Sequence[str], Refusal | None]:
    """Return the dialect of a path, the segments after its prefix, and why it is refused, if it is."""
    version = IN_PATH.get(parts[1].lower()) if len(parts) > 1 else None
    if version is not None:
        return PERSONALIZER[version], parts[2:], None
    given_version = parse_query(query).get("api-version")
    if given_version is not None and given_version.lower() == Version.V2022.value:
        return PERSONALIZER[Version.V2022], parts[1:], None
    unknown = problem(
        ErrorCode.BAD_REQUEST,
        f"the API version {given_version!r} is not known; send the query "
        f"?api-version={Version.V2022.value}, or a path with /{Version.V1_0.value}/ "
        f"or /{Version.V1_1.value}/",
        target="api-version",
    )
    return PERSONALIZER[Version.V2022], (), unknown


def parse_query(query: bytes) -> dict[str, str]:
    """Return the parameters of a query by lower-case name; of repeated ones the last."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return {name.lower(): value for name, value in pairs}


def _refuse(version: Version, problem: Refusal) -> Reply:
    headers = tuple((name.encode(), value.encode()) for name, value in error_headers(problem))
    return Reply(problem.status, encode_problem(problem, version), headers)


def _dialect(version: Version) -> Dialect:
    return Dialect(
        request_header=b"x-ms-client-request-id",
        checks_rewards=False,  # Personalizer accepted all of them
        endpoints=_v2022() if version is Version.V2022 else _v1(version),
        fault=fault,
        refuse=partial(_refuse, version),
    )


PERSONALIZER = {version: _dialect(version) for version in Version}
