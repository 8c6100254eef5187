"""How a service starts, and the first records of a new log."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.features import Hashing
from rbmle.policies.registry import name_of
from rbmle.policies.settings import differences, split, with_setting
from rbmle.service.log.base import Log, Row
from rbmle.service.log.clock import clock
from rbmle.service.log.records import OPERATOR, Configured, Modelled, Record, row_of
from rbmle.service.model.settings import (
    DEFAULT_POLICY,
    ModelSettings,
    WrittenSettings,
    bound_memory,
    check_rewards,
    default_featuriser,
    default_policy,
    service_policy,
    settings_in,
    settings_of,
)
from rbmle.service.settings import (
    CHECKPOINT_SECONDS,
    ConfigurationError,
    ServeSettings,
    ServiceConfiguration,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a service starts: where its data are, and the settings of a new log."""

    data: Path
    log: str | None = field(default=None, repr=False)  # its address; None: a file in the folder
    policy: Policy[Any] | None = None  # here and below, None: that of the log, or the default
    policy_settings: tuple[str, ...] | None = None  # those that were named, key=value; None: all
    featuriser: Hashing | None = None
    seed: int | None = None
    fits_per_second: int | None = None
    configuration: ServiceConfiguration | None = None  # of a new log
    configured: frozenset[str] | None = None  # the settings of it that were named; None: all
    is_new_model: bool = False  # begin another model if the log has one with other settings
    checkpoint_seconds: float = CHECKPOINT_SECONDS

    @classmethod
    def of(cls, settings: ServeSettings) -> Self:
        """Return the start of a service with these settings, or raise SettingError."""
        policy, featuriser, configuration = None, None, None
        has_policy = settings.policy is not None or settings.policy_settings
        if has_policy:
            policy = service_policy(settings.policy or DEFAULT_POLICY, settings.policy_settings)
        if settings.features is not None:
            pairs = settings.features.interactions
            featuriser = Hashing(
                bits=settings.features.bits,
                interactions=None if pairs is None else tuple(pairs),
                ids_are_features=settings.features.ids_are_features,
                is_scaled=settings.features.is_scaled,
            )
        try:
            if settings.configuration is not None:
                configuration = ServiceConfiguration.from_json(settings.configuration)
        except ConfigurationError as error:
            raise SettingError(f"configuration.{error.field}: {error}") from None
        return cls(
            data=Path(settings.data),
            log=settings.log,
            policy=policy,
            policy_settings=(
                tuple(split(settings.policy_settings, " \t\n")) if has_policy else None
            ),
            featuriser=featuriser,
            seed=settings.seed,
            fits_per_second=settings.fits_per_second,
            configuration=configuration,
            configured=frozenset(settings.configuration or ()),
            is_new_model=settings.new_model,
            checkpoint_seconds=settings.checkpoint_seconds,
        )


class Appending(Protocol):
    """A log, or a lease on it."""

    def append(self, rows: Sequence[Row]) -> int: ...


def begin(
    log: Log,
    start: Start,
    notify: Callable[[str], None],
    *,
    at: int | None = None,
    writer: Appending | None = None,
) -> None:
    """Write the first records of a new log, or another model to an old one; `notify` hears what stays as it is.

    Records are appended to `writer`, or else to the log, with the time `at` in milliseconds, or else now.
    Raise SettingError for a model that cannot be begun, or not with these rewards.
    """
    before = settings_of(log)
    policy = start.policy or default_policy()
    model = before.model or ModelSettings(
        policy=policy, featuriser=default_featuriser(policy), seed=secrets.randbits(63)
    )
    parts: dict[str, Any] = {
        "policy": _policy(start, before.model, notify),
        "featuriser": start.featuriser,
        "seed": start.seed,
        "fits_per_second": start.fits_per_second,
    }
    wanted = replace(model, **{name: part for name, part in parts.items() if part is not None})
    records: list[Record] = []
    if wanted != before.model or before.configuration is None:
        configuration = before.configuration or start.configuration or ServiceConfiguration()
        check_rewards(wanted.policy, configuration)
    if wanted != before.model:
        if before.model is not None and not start.is_new_model:
            raise SettingError(
                f"the log has the model {before.model!r}, but the settings ask for {wanted!r}; remove the "
                "model's settings to go on with it, or begin another one with --new-model"
            )
        records.append(Modelled(settings=wanted.to_json()))
    if before.configuration is None:
        configuration = start.configuration or ServiceConfiguration()
        records.append(Configured(configuration=configuration.to_json()))
    elif differing := _differing(start, before.configuration):
        notify(
            f"[configuration] applies to the first start only, and differs from the log: {differing}. The "
            "service uses the configuration in the log. To change it, send PATCH /v1/configuration; to stop "
            "this message, remove these settings from the file, or make them the same."
        )
    if records:
        then = clock.now() if at is None else at
        (writer or log).append([row_of(record, OPERATOR, then) for record in records])


def _policy(
    start: Start, model: ModelSettings | None, notify: Callable[[str], None]
) -> Policy[Any] | None:
    """Return the policy to use: that of the log, if it has all settings that were named.

    Settings that were not named may have had other defaults when the model was begun.
    """
    if model is None or start.is_new_model or start.policy_settings is None:
        return start.policy
    if type(model.policy) is not type(start.policy) or model.policy == start.policy:
        return start.policy
    same = model.policy
    for setting in start.policy_settings:
        same = with_setting(same, setting)
    if bound_memory(same) != model.policy:
        return start.policy
    notify(
        f"The model of the log continues as {name_of(same)} {settings_in(same)}. A new model with these "
        f"settings would be {name_of(same)} {settings_in(start.policy)}; --new-model begins it."
    )
    return same


def _differing(start: Start, before: ServiceConfiguration) -> str:
    if start.configuration is None:
        return ""
    wanted, kept = start.configuration.to_json(), before.to_json()
    names = wanted if start.configured is None else [n for n in wanted if n in start.configured]
    return ", ".join(
        f"`{name}` is {kept[name]!r} there, and {wanted[name]!r} in the file"
        for name in names
        if wanted[name] != kept[name]
    )


def describe_settings(written: WrittenSettings) -> list[str]:
    """Return lines about the policy of a log, and its settings that are not the defaults."""
    model, configuration = written.model, written.configuration
    if model is None or configuration is None:
        return ["The log has no model yet."]
    usual = ModelSettings(policy=model.policy, featuriser=default_featuriser(model.policy))
    defaults = ServiceConfiguration().to_json()
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
            if value != defaults[name]
        ),
    ]
    shown = " ".join(filter(None, differing)) or "none"
    line = f"The policy is {name_of(model.policy)}; settings that are not the defaults: {shown}"
    return [line]
