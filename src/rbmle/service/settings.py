"""How a service is run: a TOML file, and what stands on the command line before it."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from rbmle.core.errors import SettingError
from rbmle.features import Hashing
from rbmle.policies.settings import differences, split
from rbmle.policies.specification import name_of
from rbmle.service.access.budget import WORK_PER_SECOND, WorkBudget
from rbmle.service.access.keys import KEYS_FILE
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.http.binding import Binding
from rbmle.service.learning.model import (
    BITS,
    DEFAULT_POLICY,
    ModelSettings,
    default_featuriser,
    service_policy,
    settings_in,
)
from rbmle.service.learning.start import CHECKPOINT_SECONDS, Start, WrittenSettings
from rbmle.service.setting import ConfigurationError

DATA = "rbmle-data"


class FeatureSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How JSON features become contexts."""

    bits: int = BITS
    interactions: list[tuple[str, str]] | None = None
    ids_are_features: bool = True
    is_scaled: bool = True


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All that can be set; the names are those of the file, and of the command line with dashes."""

    host: str = "127.0.0.1"
    port: int = 8080
    data: str = DATA
    log: str | None = None  # None: a file in the data folder
    policy: str | None = None  # None: that of the log, or the default
    policy_settings: str = ""  # key=value, with spaces between
    seed: int | None = None  # None: that of the log, or a random one
    fits_per_second: int | None = None  # None: those of the log, or the default
    features: FeatureSettings | None = None  # None: those of the log, or the default
    configuration: dict[str, Any] | None = None  # of a new log
    new_model: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    certificate: str | None = None
    private_key: str | None = None
    proxies: str = ""
    connections: int = 1_000
    workers: int = 1  # front ends
    no_keys: bool = False
    work_per_second: float = WORK_PER_SECOND  # that each key may ask for; 0: as much as it likes

    def __post_init__(self) -> None:
        """Raise SettingError for what cannot be."""
        if self.workers < 1:
            raise SettingError(f"`workers` must be at least 1, got {self.workers}")

    def start(self) -> Start:
        """Return how the service starts, or raise SettingError."""
        named = self.policy is not None or self.policy_settings
        name = self.policy or DEFAULT_POLICY
        policy = service_policy(name, self.policy_settings) if named else None
        featuriser = None
        if self.features is not None:
            pairs = self.features.interactions
            featuriser = Hashing(
                bits=self.features.bits,
                interactions=None if pairs is None else tuple(pairs),
                ids_are_features=self.features.ids_are_features,
                is_scaled=self.features.is_scaled,
            )
        try:
            configuration = (
                None
                if self.configuration is None
                else ServiceConfiguration.from_json(self.configuration)
            )
        except ConfigurationError as error:
            raise SettingError(f"configuration.{error.field}: {error}") from None
        return Start(
            data=Path(self.data),
            log=self.log,
            policy=policy,
            policy_settings=tuple(split(self.policy_settings, " \t\n")) if named else None,
            featuriser=featuriser,
            seed=self.seed,
            fits_per_second=self.fits_per_second,
            configuration=configuration,
            configured=frozenset(self.configuration or ()),
            is_new_model=self.new_model,
            checkpoint_seconds=self.checkpoint_seconds,
        )

    def binding(self) -> Binding:
        """Return where it listens; raise SettingError for a public address without keys."""
        binding = Binding(
            host=self.host,
            port=self.port,
            certificate=None if self.certificate is None else Path(self.certificate),
            private_key=None if self.private_key is None else Path(self.private_key),
            proxies=self.proxies,
            connections=self.connections,
        )
        if self.no_keys and binding.is_public:
            raise SettingError(
                f"{self.host} can be reached from other machines, so keys are needed; leave --no-keys out, "
                "or listen on 127.0.0.1"
            )
        return binding

    def budget(self) -> WorkBudget:
        """Return what each key may ask for, or raise SettingError."""
        try:
            return WorkBudget(self.work_per_second)
        except ValueError as error:
            raise SettingError(str(error)) from None

    @property
    def keys_path(self) -> Path:
        """Return where the keys are."""
        return Path(self.data) / KEYS_FILE


def read_settings(path: Path | None, given: dict[str, Any]) -> Settings:
    """Return the settings of a file, if there is one, with those that are given in their place."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text())
        except OSError as error:
            raise SettingError(f"{path} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingError(f"{path} is not valid TOML: {error}; see docs/service.md") from None
    values |= {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        known = ", ".join(Settings.__struct_fields__)
        raise SettingError(f"{path or 'a setting'}: {error}; there are {known}") from None


def in_force(written: WrittenSettings) -> list[str]:
    """Return the policy of a log with its settings that are not the defaults, and what has no effect."""
    model, configuration = written.model, written.configuration
    if model is None or configuration is None:  # a log that has no beginning yet
        return ["The log has no model yet."]
    usual = ModelSettings(policy=model.policy, featuriser=default_featuriser(model.policy))
    differing = [
        settings_in(model.policy),
        *differences(model.featuriser, usual.featuriser, "features."),
        *(
            f"{name}={getattr(model, name)!r}"
            for name in ("fits_per_second", "sharpness")
            if getattr(model, name) != getattr(usual, name)
        ),
        *(
            f"configuration.{name}={value}"
            for name, value in configuration.to_json().items()
            if value != ServiceConfiguration().to_json()[name]
        ),
    ]
    shown = " ".join(setting for setting in differing if setting)
    name = name_of(model.policy)
    first = f"The policy is {name}; settings that are not the defaults: {shown or 'none'}"
    return [first, *(f"{notice.title} {notice.text}" for notice in configuration.notices)]
