"""How the service decides and learns: a value, checked when it is made, and its JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self, TypeVar

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.iso8601 import format_date, format_duration, parse_date, parse_duration

SHORTEST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(days=2)
FOREVER = -1  # as a number of days
MOST_DAYS = 2**31 - 1  # a signed 32-bit number on the wire

_OF_REWARDS = ("reward_wait_time", "default_reward", "reward_aggregation", "settle")

Member = TypeVar("Member", bound=StrEnum)


class ConfigurationError(RBMLEError, ValueError):
    """A setting of the service out of its range; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class Aggregation(StrEnum):
    """What several rewards of one event are together."""

    EARLIEST = "earliest"
    SUM = "sum"


class Settle(StrEnum):
    """When an event is settled: its reward is final, learned and counted."""

    DEADLINE = "deadline"  # when the reward wait time is over
    ON_REWARD = "on-reward"  # with the first reward; sums, and events without one, at the deadline
    DELAYED = "delayed"  # counted at the deadline, but learned soon, and late rewards once more


class LearningMode(StrEnum):
    """Whether the service decides, watches the first action being played, or keeps a log only."""

    ONLINE = "Online"
    APPRENTICE = "Apprentice"
    LOGGING_ONLY = "LoggingOnly"


class ConfigurationJSON(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration as JSON; durations as in ISO 8601, `PT10M`, and dates too."""

    reward_wait_time: str = "PT10M"
    default_reward: float = 0.0
    reward_aggregation: str = "earliest"
    exploration: float = 0.02
    learning_mode: str = "Online"
    log_retention_days: int = FOREVER
    model_export_frequency: str = "PT5M"
    model_retrain_days: int = 0
    is_auto_optimization_enabled: bool = False
    auto_optimization_frequency: str | None = None
    auto_optimization_start_date: str | None = None
    settle: str = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfiguration:
    """How the service decides and learns; export, retraining and optimization are kept and shown only."""

    reward_wait_time: timedelta = timedelta(minutes=10)
    default_reward: float = 0.0  # of an event without a reward in that time
    reward_aggregation: Aggregation = Aggregation.EARLIEST
    exploration: float = (
        0.02  # ε, the part of all decisions that is drawn at random, at least; 0 … 1
    )
    learning_mode: LearningMode = LearningMode.ONLINE
    log_retention_days: int = FOREVER
    model_export_frequency: timedelta = timedelta(minutes=5)
    model_retrain_days: int = 0
    is_auto_optimization_enabled: bool = False
    auto_optimization_frequency: timedelta | None = None  # None: never set
    auto_optimization_start_date: datetime | None = None  # None: never set
    settle: Settle = Settle.DEADLINE

    def __post_init__(self) -> None:
        """Raise a ConfigurationError that names the first setting out of its range."""
        if not SHORTEST_WAIT <= self.reward_wait_time <= LONGEST_WAIT:
            raise ConfigurationError(
                "reward_wait_time",
                f"the reward wait time is {format_duration(self.reward_wait_time)}; "
                f"it must be from {format_duration(SHORTEST_WAIT)} to {format_duration(LONGEST_WAIT)}",
            )
        if not -1.0 <= self.default_reward <= 1.0:
            raise ConfigurationError(
                "default_reward",
                f"the default reward is {self.default_reward}; it must be from -1 to 1",
            )
        if not 0.0 <= self.exploration <= 1.0:
            raise ConfigurationError(
                "exploration",
                f"the exploration percentage is {self.exploration}; it must be from 0 to 1",
            )
        shortest = math.ceil(self.reward_wait_time / timedelta(days=1) + 1)
        if self.log_retention_days != FOREVER and not (
            shortest <= self.log_retention_days <= MOST_DAYS
        ):
            raise ConfigurationError(
                "log_retention_days",
                f"the log is to be kept for {self.log_retention_days} days; it must be -1, for ever, or "
                f"at least the reward wait time and a day, which is {shortest}",
            )
        if self.model_export_frequency <= timedelta(0):
            raise ConfigurationError(
                "model_export_frequency",
                f"the model export frequency is {format_duration(self.model_export_frequency)}; "
                "it must be longer than nothing, for example PT5M",
            )
        most = MOST_DAYS if self.log_retention_days == FOREVER else self.log_retention_days
        if not 0 <= self.model_retrain_days <= most:
            raise ConfigurationError(
                "model_retrain_days",
                f"the model is to be retrained on {self.model_retrain_days} days; it must be from 0 to "
                f"the {most} days for which the log is kept",
            )
        frequency = self.auto_optimization_frequency
        if frequency is not None and frequency < timedelta(days=1):
            raise ConfigurationError(
                "auto_optimization_frequency",
                f"the auto-optimization frequency is {format_duration(frequency)}; "
                "it must be a day or longer, for example P7D",
            )

    @property
    def wait_milliseconds(self) -> int:
        """Return for how long an event waits for its reward."""
        return self.reward_wait_time // timedelta(milliseconds=1)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_json` wrote; what is missing keeps its default."""
        try:
            return cls.from_struct(msgspec.convert(value, ConfigurationJSON))
        except msgspec.ValidationError as error:
            _, _, field = str(error).rpartition("$.")
            raise ConfigurationError(field.rstrip("`"), str(error)) from None

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration of a record; one from before there was `settle` keeps its meaning."""
        return cls.from_json({"settle": Settle.ON_REWARD.value, **value})

    @classmethod
    def from_struct(cls, value: ConfigurationJSON) -> Self:
        """Return the configuration of a decoded JSON object."""
        frequency, start = value.auto_optimization_frequency, value.auto_optimization_start_date
        return cls(
            reward_wait_time=_duration("reward_wait_time", value.reward_wait_time),
            default_reward=value.default_reward,
            reward_aggregation=_member(Aggregation, "reward_aggregation", value.reward_aggregation),
            exploration=value.exploration,
            learning_mode=_member(LearningMode, "learning_mode", value.learning_mode),
            log_retention_days=value.log_retention_days,
            model_export_frequency=_duration(
                "model_export_frequency", value.model_export_frequency
            ),
            model_retrain_days=value.model_retrain_days,
            is_auto_optimization_enabled=value.is_auto_optimization_enabled,
            auto_optimization_frequency=(
                None if frequency is None else _duration("auto_optimization_frequency", frequency)
            ),
            auto_optimization_start_date=(
                None if start is None else _date("auto_optimization_start_date", start)
            ),
            settle=_member(Settle, "settle", value.settle),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all settings as JSON can hold them."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def check_change(self, after: "ServiceConfiguration") -> None:
        """Raise a ConfigurationError if rewards would change their meaning together with the mode.

        Events that were decided in the old mode would be counted with the new rewards.
        """
        modes = {self.learning_mode, after.learning_mode}
        is_moved = any(getattr(self, name) != getattr(after, name) for name in _OF_REWARDS)
        if modes == {LearningMode.ONLINE, LearningMode.APPRENTICE} and is_moved:
            raise ConfigurationError(
                "learning_mode",
                f"the mode cannot change from {self.learning_mode} to {after.learning_mode} together with "
                "the reward wait time, default reward, reward aggregation or settle; change the mode "
                "first, and these in a second call",
            )


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return format_duration(value)
        case datetime():
            return format_date(value)
        case StrEnum():
            return value.value
        case _:
            return value


def _duration(field: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigurationError(field, str(error)) from None


def _date(field: str, text: str) -> datetime:
    try:
        return parse_date(text)
    except ValueError as error:
        raise ConfigurationError(field, str(error)) from None


def _member(kind: type[Member], field: str, text: str) -> Member:
    try:
        return kind(text)
    except ValueError:
        raise ConfigurationError(
            field, f"the {field.replace('_', ' ')} is {text!r}; it must be one of {', '.join(kind)}"
        ) from None
