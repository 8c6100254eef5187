"""How a service starts, and what a log begins with."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rbmle.core.errors import SettingError
from rbmle.core.policy import Policy
from rbmle.features import Hashing
from rbmle.policies.settings import with_setting
from rbmle.policies.specification import name_of
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.learning.model import (
    ModelSettings,
    bounded,
    default_featuriser,
    default_policy,
    settings_in,
)
from rbmle.service.learning.reward_range import check_rewards
from rbmle.service.log.base import Log, Row
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    OPERATOR,
    Configured,
    Modelled,
    Record,
    decoded,
    encoded,
    kind_of,
)

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a service starts: where it remembers, and what a new log begins with."""

    data: Path
    log: str | None = field(default=None, repr=False)  # its address; None: a file in the folder
    policy: Policy[Any] | None = None  # None: that of the log, or the default; as the others
    policy_settings: tuple[str, ...] | None = (
        None  # those given, key=value; None: all of the policy
    )
    featuriser: Hashing | None = None
    seed: int | None = None
    fits_per_second: int | None = None
    configuration: ServiceConfiguration | None = None  # of a new log; an old one has its own
    configured: frozenset[str] | None = None  # the settings of it that were given; None: all
    is_new_model: bool = False  # begin another model if the log has one that is not the same
    checkpoint_seconds: float = CHECKPOINT_SECONDS


class Appending(Protocol):
    """A log, or a lease on it."""

    def append(self, rows: Sequence[Row]) -> int:
        """Store rows; return the seq of the first."""
        ...


def begin(
    log: Log,
    start: Start,
    notify: Callable[[str], None],
    *,
    at: int | None = None,
    writer: Appending | None = None,
) -> None:
    """Write what a new log begins with, or what is to change in an old one; `notify` is given what is not.

    It is written by `writer` if that is not the log itself. `at` is the time of the records in
    milliseconds, if it is not now.

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
                f"the log has the model {before.model!r}, but {wanted!r} is asked for; leave the model's "
                "settings out to go on with it, or begin another one with --new-model"
            )
        records.append(Modelled(settings=wanted.to_json()))
    if before.configuration is None:
        configuration = start.configuration or ServiceConfiguration()
        records.append(Configured(configuration=configuration.to_json()))
    elif differing := _differing(start, before.configuration):
        notify(
            f"[configuration] is for the first start, and no longer what the log has: {differing}. The "
            "service goes on with what the log has. To change it, send PATCH /v1/configuration; to be "
            "rid of this message, take these settings out of the file, or make them the same."
        )
    if records:
        then = clock.now() if at is None else at
        rows = [Row(kind_of(record), OPERATOR, None, then, encoded(record)) for record in records]
        (writer or log).append(rows)


def _policy(
    start: Start, model: ModelSettings | None, notify: Callable[[str], None]
) -> Policy[Any] | None:
    """Return the policy that is asked for: that of the log, if it has all settings that were given.

    The others may have had another default when the model was begun.
    """
    if model is None or start.is_new_model or start.policy_settings is None:
        return start.policy
    if type(model.policy) is not type(start.policy) or model.policy == start.policy:
        return start.policy
    same = model.policy
    for setting in start.policy_settings:
        same = with_setting(same, setting)
    if bounded(same) != model.policy:
        return start.policy
    notify(
        f"The model of the log goes on as {name_of(same)} {settings_in(same)}. With the settings that are "
        f"given, a new model would be {name_of(same)} {settings_in(start.policy)}; --new-model begins it."
    )
    return same


def _differing(start: Start, before: ServiceConfiguration) -> str:
    """Return in words which of the settings that were given the log has otherwise."""
    if start.configuration is None:
        return ""
    wanted, kept = start.configuration.to_json(), before.to_json()
    names = wanted if start.configured is None else [n for n in wanted if n in start.configured]
    return ", ".join(
        f"`{name}` is {kept[name]!r} there, and {wanted[name]!r} in the file"
        for name in names
        if wanted[name] != kept[name]
    )


@dataclass(frozen=True, slots=True)
class WrittenSettings:
    """What the operator wrote last."""

    model: ModelSettings | None = None
    configuration: ServiceConfiguration | None = None
    seq: int = 0  # of the last record that changed the model
    configured: int = 0  # the seq of the configuration's record


def settings_of(log: Log) -> WrittenSettings:
    """Return what the operator wrote last."""
    found = WrittenSettings()
    for stored in log.of_event(OPERATOR):
        match decoded(stored.row.kind, stored.row.payload):
            case Modelled(settings=settings):
                found = replace(found, model=ModelSettings.from_json(settings), seq=stored.seq)
            case Configured(configuration=configuration):
                after = ServiceConfiguration.from_record(configuration)
                found = replace(found, configuration=after, configured=stored.seq)
            case _:
                found = replace(found, seq=stored.seq)
    return found
