"""How the service decides and learns: one table of settings, checked when a value is made, and its JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Self, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from rbmle.service.notices import Notice
from rbmle.service.setting import (
    DATE,
    DURATION,
    FLAG,
    NUMBER,
    WHOLE,
    ConfigurationError,
    Setting,
    one_of,
    optional,
)

FOREVER = -1  # as a number of days
MOST_DAYS = 2**31 - 1  # a signed 32-bit number on the wire

_OF_REWARDS = ("reward_wait_time", "default_reward", "reward_aggregation", "settle")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfiguration:
    """How the service decides and learns: each field is a row of the table of settings.

    Retention, export, retraining and optimization are kept and shown only.
    """

    reward_wait_time: Annotated[
        timedelta, Setting(DURATION, low=timedelta(seconds=5), high=timedelta(days=2))
    ] = timedelta(minutes=10)
    default_reward: Annotated[float, Setting(NUMBER, low=-1, high=1)] = 0.0
    reward_aggregation: Annotated[Aggregation, Setting(one_of(Aggregation))] = Aggregation.EARLIEST
    exploration: Annotated[float, Setting(NUMBER, low=0, high=1)] = 0.02  # ε
    learning_mode: Annotated[
        LearningMode,
        Setting(
            one_of(LearningMode),
            about="Not from Online to Apprentice, or back, together with the reward settings",
        ),
    ] = LearningMode.ONLINE
    log_retention_days: Annotated[
        int,
        Setting(
            WHOLE,
            about="-1 is for ever; else it is a day more than the reward wait time, at least. It is kept and "
            "shown only: nothing is deleted yet",
            schema={
                "anyOf": [
                    {"const": FOREVER},
                    {"type": "integer", "minimum": 2, "maximum": MOST_DAYS},
                ]
            },
        ),
    ] = FOREVER
    model_export_frequency: Annotated[
        timedelta,
        Setting(
            DURATION,
            low=timedelta(microseconds=1),
            range="longer than nothing, for example PT5M",
        ),
    ] = timedelta(minutes=5)
    model_retrain_days: Annotated[
        int, Setting(WHOLE, low=0, high=MOST_DAYS, about="No more than the log is kept")
    ] = 0
    is_auto_optimization_enabled: Annotated[bool, Setting(FLAG)] = False
    auto_optimization_frequency: Annotated[
        timedelta | None,
        Setting(
            optional(DURATION), low=timedelta(days=1), range="a day or longer, for example P7D"
        ),
    ] = None
    auto_optimization_start_date: Annotated[datetime | None, Setting(optional(DATE))] = None
    settle: Annotated[
        Settle,
        Setting(
            one_of(Settle),
            about="When an event is learned: at its deadline, with its first reward, or soon",
        ),
    ] = Settle.DEADLINE

    def __post_init__(self) -> None:
        """Raise a ConfigurationError that names the first setting out of its range."""
        for name, row in SETTINGS.items():
            row.check(name, getattr(self, name))
        kept, retrained = self.log_retention_days, self.model_retrain_days
        shortest = math.ceil(self.reward_wait_time / timedelta(days=1) + 1)
        if kept != FOREVER and not shortest <= kept <= MOST_DAYS:
            raise ConfigurationError(
                "log_retention_days",
                f"the log is to be kept for {kept} days; it must be -1, for ever, or at least the "
                f"reward wait time and a day, which is {shortest}",
            )
        if kept != FOREVER and retrained > kept:
            raise ConfigurationError(
                "model_retrain_days",
                f"the model is to be retrained on {retrained} days; it must be from 0 to the {kept} "
                "days for which the log is kept",
            )

    @property
    def wait_milliseconds(self) -> int:
        """Return for how long an event waits for its reward."""
        return self.reward_wait_time // timedelta(milliseconds=1)

    @property
    def notices(self) -> list[Notice]:
        """Return what an operator should know of settings that have no effect."""
        if self.log_retention_days == FOREVER:
            return []
        return [
            Notice(
                code="log-retention",
                title="No record of the log is deleted.",
                text=f"log_retention_days is {self.log_retention_days}, but this rbmle keeps the log "
                "for ever. Where old records have to go, begin a new log, and delete the old one.",
            )
        ]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_json` wrote; what is missing keeps its default."""
        try:
            given = given_in(msgspec.convert(value, ConfigurationChange))
        except msgspec.ValidationError as error:
            _, _, field = str(error).rpartition("$.")
            raise ConfigurationError(field.rstrip("`"), str(error)) from None
        return cls(**{name: SETTINGS[name].read(name, value) for name, value in given.items()})

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration of a record; one from before there was `settle` keeps its meaning."""
        return cls.from_json({"settle": Settle.ON_REWARD.value, **value})

    def to_json(self) -> dict[str, Any]:
        """Return all settings as JSON can hold them."""
        return {name: row.kind.write(getattr(self, name)) for name, row in SETTINGS.items()}

    def changed(self, given: Mapping[str, Any]) -> Self:
        """Return it with some settings changed, as JSON has them, or raise ConfigurationError."""
        after = self.from_json({**self.to_json(), **given})
        self.check_change(after)
        return after

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


SETTINGS: Mapping[str, Setting] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(ServiceConfiguration, include_extras=True).items()
}

ConfigurationChange = msgspec.defstruct(
    "ConfigurationChange",
    [(name, row.kind.json | UnsetType, UNSET) for name, row in SETTINGS.items()],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    namespace={"__doc__": "Some settings of the configuration; the others stay as they are."},
)


def given_in(some: msgspec.Struct) -> dict[str, Any]:
    """Return the settings that a JSON object has."""
    values = msgspec.structs.asdict(some)
    return {name: value for name, value in values.items() if value is not UNSET}
