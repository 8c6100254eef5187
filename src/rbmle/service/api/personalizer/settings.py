"""Personalizer's calls of the operator: configuration, learning settings, model and log properties."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from rbmle.service.api.decoding import decoded
from rbmle.service.api.faults import Problem, RefusedError
from rbmle.service.api.personalizer.bodies import refusing
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.api.personalizer.routes import Version
from rbmle.service.api.personalizer.wire import (
    ConfigurationBody,
    PolicyBody,
)
from rbmle.service.configuration import ConfigurationError, ConfigurationJSON, ServiceConfiguration
from rbmle.service.iso8601 import format_date, format_duration

_CONFIGURATION = msgspec.json.Decoder(ConfigurationBody)
_POLICY = msgspec.json.Decoder(PolicyBody)

_CODES = {
    "reward_wait_time": ErrorCode.INVALID_REWARD_WAIT_TIME,
    "log_retention_days": ErrorCode.INVALID_LOG_RETENTION_DAYS,
    "model_retrain_days": ErrorCode.INVALID_MODEL_RETRAIN_DAYS,
}
_NAMES = {"exploration": "explorationPercentage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSettings:
    """What Personalizer calls a policy: a name and the arguments of its learner."""

    name: str
    arguments: str


def decode_configuration(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PUT /configurations/service; what is left out stays as it was."""
    with refusing(ErrorCode.INVALID_SERVICE_CONFIGURATION):
        given = decoded(_CONFIGURATION, body)
    if given.log_mirror_enabled:
        raise RefusedError(
            problem(
                ErrorCode.INVALID_SERVICE_CONFIGURATION,
                "this service does not mirror its log; send false, and export the log instead",
                target="logMirrorEnabled",
            )
        )
    kept = {
        name: value
        for name in (
            "learning_mode",
            "is_auto_optimization_enabled",
            "auto_optimization_frequency",
            "auto_optimization_start_date",
            "model_retrain_days",
        )
        if (value := getattr(given, name)) is not None
    }
    required = {
        "reward_wait_time": given.reward_wait_time,
        "default_reward": given.default_reward,
        "reward_aggregation": given.reward_aggregation,
        "exploration": given.exploration_percentage,
        "model_export_frequency": given.model_export_frequency,
        "log_retention_days": given.log_retention_days,
    }
    try:
        after = ServiceConfiguration.from_struct(
            msgspec.convert(before.to_json() | required | kept, ConfigurationJSON)
        )
    except ConfigurationError as error:
        raise RefusedError(refusal_of(error)) from None
    try:
        before.check_change(after)
    except ConfigurationError as error:
        raise RefusedError(
            problem(ErrorCode.INVALID_LEARNING_MODE, str(error), target="learningMode")
        ) from None
    return after


def refusal_of(error: ConfigurationError) -> Problem:
    """Return the refusal of a setting out of its range."""
    code = _CODES.get(error.field, ErrorCode.INVALID_SERVICE_CONFIGURATION)
    return problem(code, str(error), target=_NAMES.get(error.field, _camel(error.field)))


def encode_configuration(
    configuration: ServiceConfiguration, version: Version, edited: datetime | None = None
) -> bytes:
    """Return the answer of GET and PUT /configurations/service; `edited` is None before the first."""
    frequency = configuration.auto_optimization_frequency
    start = configuration.auto_optimization_start_date
    return msgspec.json.encode(
        ConfigurationBody(
            reward_wait_time=format_duration(configuration.reward_wait_time),
            default_reward=configuration.default_reward,
            reward_aggregation=configuration.reward_aggregation.value,
            exploration_percentage=configuration.exploration,
            model_export_frequency=format_duration(configuration.model_export_frequency),
            log_mirror_enabled=False,
            log_retention_days=configuration.log_retention_days,
            last_configuration_edit_date=None if edited is None else format_date(edited),
            learning_mode=configuration.learning_mode.value,
            is_auto_optimization_enabled=configuration.is_auto_optimization_enabled,
            auto_optimization_frequency=None if frequency is None else format_duration(frequency),
            auto_optimization_start_date=None if start is None else format_date(start),
            model_retrain_days=(
                configuration.model_retrain_days if version is Version.V2022 else None
            ),
        )
    )


def decode_policy(body: bytes) -> LearningSettings:
    """Return the learning settings of PUT /configurations/policy."""
    with refusing(ErrorCode.INVALID_POLICY_CONTRACT):
        given = decoded(_POLICY, body)
        return LearningSettings(name=given.name, arguments=given.arguments)


def encode_policy(settings: LearningSettings) -> bytes:
    """Return the answer of GET, PUT and DELETE /configurations/policy."""
    return msgspec.json.encode(PolicyBody(settings.name, settings.arguments))


def encode_model_properties(created: datetime, modified: datetime) -> bytes:
    """Return the answer of GET /model/properties."""
    return msgspec.json.encode(
        {"creationTime": format_date(created), "lastModifiedTime": format_date(modified)}
    )


def encode_log_properties(first: datetime, last: datetime) -> bytes:
    """Return the answer of GET /logs/properties; an empty log is LOGS_PROPERTIES_NOT_FOUND."""
    return msgspec.json.encode({"dateRange": {"from": format_date(first), "to": format_date(last)}})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
