"""All settings of the service, in two tables.

`ServeSettings` says how the service runs: the keys of `serve.toml`, and options of the command line.
`ServiceConfiguration` says how it decides and learns: it is kept in the log, and changed over HTTP. Each field
has its type, its default and a description, from which the TOML file, the options, the JSON schemas and the
reference are made.
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from rbmle.core.errors import RBMLEError, SettingError
from rbmle.service.access.keys import KEYS_FILE
from rbmle.service.access.limits import WORK_PER_SECOND, WorkBudget
from rbmle.service.iso8601 import (
    DURATION_PATTERN,
    format_date,
    format_duration,
    parse_date,
    parse_duration,
)

DATA = "rbmle-data"
CHECKPOINT_SECONDS = 60.0
BITS = 16  # of hashed features
MOST_SHADOWS = 8
FOREVER = -1  # as a number of days
MOST_DAYS = 2**31 - 1  # a signed 32-bit number on the wire


def _about(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class FeatureSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How JSON features become contexts: the table `[features]`."""

    bits: Annotated[int, _about("2^bits slots for hashed features.")] = BITS
    interactions: Annotated[
        list[tuple[str, str]] | None,
        _about(
            'Pairs of namespaces that are multiplied, such as `[["user", "article"]]`; without it, every '
            "context feature with every action feature."
        ),
    ] = None
    ids_are_features: Annotated[
        bool, _about("Whether the id of an action is one of its features.")
    ] = True
    is_scaled: Annotated[
        bool,
        _about(
            "Whether numbers are scaled by their running mean and deviation, and rare features down-weighted."
        ),
    ] = True


class ServeSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the service runs: the keys of the TOML file; on the command line with dashes."""

    host: Annotated[
        str,
        _about("Address to listen on. `0.0.0.0` accepts connections from other machines."),
    ] = "127.0.0.1"
    port: Annotated[int, _about("Port to listen on; 0 picks a free one and prints it.")] = 8080
    data: Annotated[str, _about("Folder of the log, keys and checkpoints.")] = DATA
    log: Annotated[
        str | None,
        _about(
            "`postgresql://…` for a log in PostgreSQL; without it, SQLite in the data folder. The environment "
            "variable `RBMLE_LOG` sets it without showing a password in `ps`."
        ),
    ] = None
    policy: Annotated[
        str | None,
        _about(
            "The policy, as `rbmle policies` lists them, with settings behind the name, as in "
            "`neural-rbmle-pc:bias=1e-4`. They change the service's tuned settings one by one. Without it: the "
            "policy in the log, or `neural-rbmle-pc` for a new log."
        ),
    ] = None
    policy_settings: Annotated[
        str,
        _about(
            "The same settings in another form, `key=value` with spaces between: for the policy in the log, or "
            "the default policy."
        ),
    ] = ""
    seed: Annotated[
        int | None,
        _about("Seed of the model; without it, random once, then kept in the log."),
    ] = None
    fits_per_second: Annotated[
        int | None,
        _about(
            "How many observations a second the network is fitted to. More than that are remembered, and "
            "replayed later. Default: 400."
        ),
    ] = None
    features: Annotated[
        FeatureSettings | None,
        _about("Table `[features]`: how JSON features become numbers."),
    ] = None
    configuration: Annotated[
        dict[str, Any] | None,
        _about("Table `[configuration]`: the configuration of a **new** log."),
    ] = None
    new_model: Annotated[bool, _about("Start a new model in an existing log.")] = False
    checkpoint_seconds: Annotated[
        float,
        _about(
            "Seconds between checkpoints of the learner; sooner if a restart would have to repeat two seconds "
            "of learning."
        ),
    ] = CHECKPOINT_SECONDS
    certificate: Annotated[str | None, _about("TLS certificate, a PEM file.")] = None
    private_key: Annotated[
        str | None, _about("TLS key, if it is not in the certificate's file.")
    ] = None
    proxies: Annotated[
        str,
        _about("Addresses whose `X-Forwarded-…` headers are trusted, such as `10.0.0.0/8`."),
    ] = ""
    connections: Annotated[int, _about("Largest number of open connections of each front end.")] = (
        1_000
    )
    workers: Annotated[int, _about("Number of front ends that share the port.")] = 1
    no_keys: Annotated[bool, _about("Accept requests without a key. Only on 127.0.0.1.")] = False
    private_features: Annotated[
        list[str],
        _about(
            "Paths of features whose values are hashed before anything is stored or learned, such as "
            '`["user.id"]`. '
            "The key is in the environment variable `RBMLE_FEATURE_KEY`, or else made once and kept in the "
            "data folder. All front ends need the same paths and key."
        ),
    ] = []
    work_per_second: Annotated[
        float,
        _about(
            "Feature products a second that each key may use on each front end; 0 for no limit."
        ),
    ] = WORK_PER_SECOND

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise SettingError(f"`workers` must be at least 1, got {self.workers}")

    def budget(self) -> WorkBudget:
        try:
            return WorkBudget(self.work_per_second)
        except ValueError as error:
            raise SettingError(str(error)) from None

    @property
    def keys_path(self) -> Path:
        return Path(self.data) / KEYS_FILE


def read_settings(path: Path | None, options: Mapping[str, Any]) -> ServeSettings:
    """Return the settings in a file, if there is one; options that are not None take precedence."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text())
        except OSError as error:
            raise SettingError(f"{path} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingError(
                f"{path} is not valid TOML: {error}; `rbmle serve --help` lists the settings"
            ) from None
    values |= {name: value for name, value in options.items() if value is not None}
    try:
        return msgspec.convert(values, ServeSettings)
    except msgspec.ValidationError as error:
        known = ", ".join(ServeSettings.__struct_fields__)
        raise SettingError(f"{path or 'a setting'}: {error}; the settings are {known}") from None


def descriptions(table: type) -> dict[str, str]:
    """Return the description of each setting of a table, by name, in Markdown."""
    hints = get_type_hints(table, include_extras=True)
    metas = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: meta[0].description for name, meta in metas.items() if meta}


class ConfigurationError(RBMLEError, ValueError):
    """An invalid setting of the configuration; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type of settings: its type in JSON, and the conversions from and to it."""

    json: Any
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value
    schema: Mapping[str, Any] = field(default_factory=dict)  # besides the type


NUMBER = Kind(json=float)
WHOLE = Kind(json=int)
FLAG = Kind(json=bool)
DURATION = Kind(
    json=str,
    read=parse_duration,
    write=format_duration,
    schema={"type": "string", "pattern": DURATION_PATTERN},
)
DATE = Kind(
    json=str,
    read=parse_date,
    write=format_date,
    schema={"type": "string", "format": "date-time"},
)


NAMES = Kind(
    json=list[str],
    read=tuple,
    write=list,
    schema={"type": "array", "items": {"type": "string"}, "maxItems": MOST_SHADOWS},
)


def _member_of(members: type[StrEnum]) -> Kind:
    return Kind(
        json=str, read=members, write=lambda member: member.value, schema={"enum": list(members)}
    )


def _optional(kind: Kind) -> Kind:
    return Kind(
        json=kind.json | None,
        read=lambda value: None if value is None else kind.read(value),
        write=lambda value: None if value is None else kind.write(value),
        schema={"anyOf": [dict(kind.schema), {"type": "null"}]},
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the configuration, besides its name, type and default."""

    kind: Kind
    description: str
    low: Any = None  # None: no bound
    high: Any = None  # None: no bound
    range: str = ""  # in words; empty: from `low` to `high`
    schema: Mapping[str, Any] = field(default_factory=dict)  # replaces that of the kind

    def read(self, name: str, value: Any) -> Any:
        try:
            return self.kind.read(value)
        except ValueError as error:
            message = str(error)
            if "enum" in self.kind.schema:
                members = ", ".join(self.kind.schema["enum"])
                message = f"the {_words(name)} is {value!r}; it must be one of {members}"
            raise ConfigurationError(name, message) from None

    def check(self, name: str, value: Any) -> None:
        """Raise ConfigurationError for a value out of its range."""
        if value is None:
            return
        is_low = self.low is not None and not value >= self.low
        is_high = self.high is not None and not value <= self.high
        if is_low or is_high:
            shown = self.kind.write(value)
            raise ConfigurationError(
                name, f"the {_words(name)} is {shown}; it must be {self.allowed}"
            )

    @property
    def allowed(self) -> str:
        """Return the range in words; empty if there is none."""
        if self.range or self.low is None:
            return self.range
        return f"from {self.kind.write(self.low)} to {self.kind.write(self.high)}"

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema, without the type and the default."""
        schema, description = dict(self.schema or self.kind.schema), self.description
        if self.kind in (NUMBER, WHOLE):
            bounds = {"minimum": self.low, "maximum": self.high}
            schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        elif self.allowed:
            description += f" It must be {self.allowed}."
        return schema | {"description": description}


def _words(name: str) -> str:
    return name.replace("_", " ")


class Aggregation(StrEnum):
    """How several rewards of one event are combined."""

    EARLIEST = "earliest"
    SUM = "sum"


class Settle(StrEnum):
    """When an event is settled: its reward is final, learned and counted."""

    DEADLINE = "deadline"  # at the end of the reward wait time
    ON_REWARD = "on-reward"  # with the first reward; sums, and events without one, at the deadline
    DELAYED = "delayed"  # counted at the deadline, but learned soon; late rewards correct it


class LearningMode(StrEnum):
    """Whether the service decides, imitates the first action, or only writes its log."""

    ONLINE = "Online"
    APPRENTICE = "Apprentice"
    LOGGING_ONLY = "LoggingOnly"


class Promotion(StrEnum):
    """Who decides that a shadow policy replaces the policy."""

    BY_HAND = "by-hand"
    AUTOMATIC = "automatic"  # as soon as the interval of its lift is above zero


class HoldoutPlay(StrEnum):
    """What the holdout is shown."""

    BASELINE = "baseline"
    UNIFORM = "uniform"


_NO_EFFECT = "Kept for Personalizer's clients; no effect."
_REWARD_SETTINGS = ("reward_wait_time", "default_reward", "reward_aggregation", "settle")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfiguration:
    """How the service decides and learns: kept in the log, and changed over HTTP.

    Export, retraining and optimization are stored and shown, and have no effect.
    """

    reward_wait_time: Annotated[
        timedelta,
        Setting(
            DURATION,
            "How long an event waits for its reward, an ISO 8601 duration.",
            low=timedelta(seconds=5),
            high=timedelta(days=2),
        ),
    ] = timedelta(minutes=10)
    default_reward: Annotated[
        float, Setting(NUMBER, "The reward of an event that got none in time.", low=-1, high=1)
    ] = 0.0
    reward_aggregation: Annotated[
        Aggregation,
        Setting(
            _member_of(Aggregation),
            "What several rewards of one event make: the `earliest`, or their `sum`.",
        ),
    ] = Aggregation.EARLIEST
    exploration: Annotated[
        float,
        Setting(
            NUMBER,
            "ε: each of n eligible actions has a probability of at least ε/n.",
            low=0,
            high=1,
        ),
    ] = 0.02
    learning_mode: Annotated[
        LearningMode,
        Setting(
            _member_of(LearningMode),
            "`Online`: decide and learn. `Apprentice`: always show the first action, and learn from it. "
            "`LoggingOnly`: always show the first action, learn nothing. It cannot change from Online to "
            "Apprentice, or back, together with the reward settings.",
        ),
    ] = LearningMode.ONLINE
    log_retention_days: Annotated[
        int,
        Setting(
            WHOLE,
            "After how many days records of the log are deleted; the model keeps what it learned of them. −1 "
            "means never; otherwise it must be at least a day longer than the reward wait time.",
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
            "Kept for Personalizer's clients; models are exported on request.",
            low=timedelta(microseconds=1),
            range="longer than nothing, for example PT5M",
        ),
    ] = timedelta(minutes=5)
    model_retrain_days: Annotated[
        int,
        Setting(
            WHOLE,
            f"{_NO_EFFECT} It must not exceed the log retention.",
            low=0,
            high=MOST_DAYS,
        ),
    ] = 0
    is_auto_optimization_enabled: Annotated[bool, Setting(FLAG, _NO_EFFECT)] = False
    auto_optimization_frequency: Annotated[
        timedelta | None,
        Setting(
            _optional(DURATION),
            _NO_EFFECT,
            low=timedelta(days=1),
            range="a day or longer, for example P7D",
        ),
    ] = None
    auto_optimization_start_date: Annotated[
        datetime | None, Setting(_optional(DATE), _NO_EFFECT)
    ] = None
    shadows: Annotated[
        tuple[str, ...],
        Setting(
            NAMES,
            "Policies that learn from the same log and do not decide, as in `neural-ucb:exploration=0.5`; what "
            "each would have earned is compared with what was played.",
        ),
    ] = ()
    promotion: Annotated[
        Promotion,
        Setting(
            _member_of(Promotion),
            "When a shadow replaces the policy: `by-hand`, or `automatic`, once the interval of its lift is "
            "above zero.",
        ),
    ] = Promotion.BY_HAND
    conservative: Annotated[
        float,
        Setting(
            NUMBER,
            "α: mean rewards sum to at least (1 − α) of what the baseline action would have earned, at all "
            "times; while there is no room for the policy, the baseline is shown. 0: off.",
            low=0,
            high=0.9,
        ),
    ] = 0.0
    conservative_error: Annotated[
        float,
        Setting(
            NUMBER,
            "δ: the probability with which conservative mode may fail.",
            low=1e-9,
            high=0.5,
        ),
    ] = 0.05
    lowest_reward: Annotated[
        float,
        Setting(
            NUMBER,
            "The smallest reward there can be, from which conservative mode measures all; while that is on, "
            "smaller ones are refused.",
            low=-1,
            high=1,
        ),
    ] = 0.0
    highest_reward: Annotated[
        float, Setting(NUMBER, "The largest reward there can be, likewise.", low=-1, high=1)
    ] = 1.0
    holdout: Annotated[
        float,
        Setting(
            NUMBER,
            "The share of units that never see the model's choice: they are counted, not learned from, and the "
            "lift is measured against them. The `unit` of a rank call says which calls belong together.",
            low=0,
            high=0.5,
        ),
    ] = 0.0
    holdout_play: Annotated[
        HoldoutPlay,
        Setting(
            _member_of(HoldoutPlay),
            "What the holdout is shown: the `baseline` action, or each action equally often (`uniform`).",
        ),
    ] = HoldoutPlay.BASELINE
    settle: Annotated[
        Settle,
        Setting(
            _member_of(Settle), "When an event is learned: `deadline`, `on-reward` or `delayed`."
        ),
    ] = Settle.DEADLINE

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            setting.check(name, getattr(self, name))
        kept, retrained = self.log_retention_days, self.model_retrain_days
        shortest = math.ceil(self.reward_wait_time / timedelta(days=1) + 1)
        if kept != FOREVER and not shortest <= kept <= MOST_DAYS:
            raise ConfigurationError(
                "log_retention_days",
                f"the log retention is {kept} days; it must be -1, for ever, or at least a day longer than "
                f"the reward wait time, which is {shortest}",
            )
        if kept != FOREVER and retrained > kept:
            raise ConfigurationError(
                "model_retrain_days",
                f"the model retrain days are {retrained}; they must be from 0 to the log retention of {kept} "
                "days",
            )

        if len(set(self.shadows)) < len(self.shadows) or len(self.shadows) > MOST_SHADOWS:
            raise ConfigurationError(
                "shadows", f"there may be {MOST_SHADOWS} shadows at most, each of them once"
            )
        if self.conservative:
            self._check_conservative()

    def _check_conservative(self) -> None:
        """Raise ConfigurationError for settings with which the promise could not be kept."""
        low, high = self.lowest_reward, self.highest_reward
        for name, is_wrong, message in (
            ("highest_reward", high <= low, f"it is {high:g}; it must be above {low:g}"),
            (
                "default_reward",
                not low <= self.default_reward <= high,
                f"it is {self.default_reward:g}; it must be from {low:g} to {high:g}",
            ),
            (
                "settle",
                self.settle is Settle.ON_REWARD,
                "events with a reward are settled before those without; use deadline or delayed",
            ),
            (
                "reward_aggregation",
                self.reward_aggregation is Aggregation.SUM,
                "sums of rewards have no bound; use earliest",
            ),
        ):
            if is_wrong:
                raise ConfigurationError(
                    name, f"conservative mode cannot work with this {_words(name)}: {message}"
                )

    @property
    def wait_milliseconds(self) -> int:
        return self.reward_wait_time // timedelta(milliseconds=1)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_json` wrote; missing settings keep their defaults."""
        try:
            settings = changed_settings(msgspec.convert(value, ConfigurationChange))
        except msgspec.ValidationError as error:
            _, _, field = str(error).rpartition("$.")
            raise ConfigurationError(field.rstrip("`"), str(error)) from None
        return cls(**{name: SETTINGS[name].read(name, value) for name, value in settings.items()})

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> Self:
        """Return the configuration of a record; before `settle` existed, it was `on-reward`."""
        return cls.from_json({"settle": Settle.ON_REWARD.value, **value})

    def to_json(self) -> dict[str, Any]:
        return {name: setting.kind.write(getattr(self, name)) for name, setting in SETTINGS.items()}

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return a configuration with some JSON values changed, or raise ConfigurationError."""
        after = self.from_json({**self.to_json(), **changes})
        self.check_change(after)
        return after

    def check_change(self, after: "ServiceConfiguration") -> None:
        """Raise a ConfigurationError if the mode and the meaning of rewards change together.

        Events that were decided in the old mode would be counted with the new rewards.
        """
        modes = {self.learning_mode, after.learning_mode}
        is_moved = any(getattr(self, name) != getattr(after, name) for name in _REWARD_SETTINGS)
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
    [(name, setting.kind.json | UnsetType, UNSET) for name, setting in SETTINGS.items()],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    namespace={"__doc__": "Some settings of the configuration; the others stay as they are."},
)


def changed_settings(change: msgspec.Struct) -> dict[str, Any]:
    """Return the settings that a ConfigurationChange has, as JSON values."""
    values = msgspec.structs.asdict(change)
    return {name: value for name, value in values.items() if value is not UNSET}
