"""Personalizer's calls of the operator: configuration, learning settings, model and log properties."""

from datetime import datetime

import msgspec

from rbmle.service.api.decoding import decoded
from rbmle.service.api.faults import Refusal, RefusedError
from rbmle.service.api.personalizer.bodies import refusing
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.api.personalizer.versions import Version
from rbmle.service.api.personalizer.wire import PolicyBody
from rbmle.service.configuration import SETTINGS, ServiceConfiguration
from rbmle.service.iso8601 import format_date
from rbmle.service.setting import ConfigurationError

MIRRORED, EDITED = "log_mirror_enabled", "last_configuration_edit_date"  # no settings of ours

NAMES = {  # of settings on the wire, in the order in which they are sent
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
    """Return the configuration of PUT /configurations/service; what is left out stays as it was."""
    with refusing(ErrorCode.INVALID_SERVICE_CONFIGURATION):
        given = msgspec.structs.asdict(decoded(_CONFIGURATION, body))
    if given[MIRRORED]:
        raise RefusedError(
            problem(
                ErrorCode.INVALID_SERVICE_CONFIGURATION,
                "this service does not mirror its log; send false, and export the log instead",
                target=NAMES[MIRRORED],
            )
        )
    changes = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    try:
        after = ServiceConfiguration.from_json(before.to_json() | changes)
    except ConfigurationError as error:
        raise RefusedError(refusal_of(error)) from None
    try:
        before.check_change(after)
    except ConfigurationError as error:
        raise RefusedError(
            problem(ErrorCode.INVALID_LEARNING_MODE, str(error), target=NAMES[error.field])
        ) from None
    return after


def refusal_of(error: ConfigurationError) -> Refusal:
    """Return the refusal of a setting out of its range."""
    code = _CODES.get(error.field, ErrorCode.INVALID_SERVICE_CONFIGURATION)
    return problem(code, str(error), target=NAMES[error.field])


def encode_configuration(configuration: ServiceConfiguration, version: Version) -> bytes:
    """Return the answer of GET and PUT /configurations/service."""
    values = configuration.to_json() | {MIRRORED: False}
    if version is not Version.V2022:
        del values["model_retrain_days"]
    sent = {wire: values[name] for name, wire in NAMES.items() if values.get(name) is not None}
    return msgspec.json.encode(sent)


def decode_policy(body: bytes) -> PolicyBody:
    """Return the learning settings of PUT /configurations/policy."""
    with refusing(ErrorCode.INVALID_POLICY_CONTRACT):
        return decoded(_POLICY, body)


def encode_model_properties(created: datetime, modified: datetime) -> bytes:
    """Return the answer of GET /model/properties."""
    return msgspec.json.encode(
        {"creationTime": format_date(created), "lastModifiedTime": format_date(modified)}
    )


def encode_log_properties(first: datetime, last: datetime) -> bytes:
    """Return the answer of GET /logs/properties; an empty log is LOGS_PROPERTIES_NOT_FOUND."""
    return msgspec.json.encode({"dateRange": {"from": format_date(first), "to": format_date(last)}})
