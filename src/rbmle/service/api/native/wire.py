"""The bodies of our own wire format; a field that is not here is refused."""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from rbmle.service.deciding.requests import (
    LONGEST_ID,
    MOST_ACTIONS,
    MOST_SLOTS,
    Id,
    Reward,
)
from rbmle.service.features.limits import Features
from rbmle.service.log.records import NO_FEATURES

NO_CONTROLS = (  # what check_id takes, as a pattern, but for joiners in words and emoji
    "^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]*$"
)

GivenId = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_ID, extra_json_schema={"pattern": NO_CONTROLS}),
]


class ActionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be chosen."""

    id: GivenId
    features: Features = {}


class SlotBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place for one action; its baseline is the action that would be shown without the service."""

    id: GivenId
    baseline: Annotated[Id, Meta(description="One of the actions; no two slots have the same")]
    features: Features = {}
    excluded: Annotated[
        list[Id], Meta(max_length=MOST_ACTIONS, description="Some of the actions; not the baseline")
    ] = []


class RankBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which action is best? Without an event id, the service gives one."""

    actions: Annotated[
        list[ActionBody],
        Meta(min_length=1, max_length=MOST_ACTIONS, description="No two have the same id"),
    ]
    event: GivenId | None = None
    context: Features = {}
    excluded: Annotated[
        list[Id], Meta(max_length=MOST_ACTIONS, description="One action at least is not among them")
    ] = []
    deferred: bool = False
    slots: Annotated[
        list[SlotBody],
        Meta(
            max_length=MOST_SLOTS,
            description="No more than there are actions; no two have the same id",
        ),
    ] = []


class PackedActionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be chosen, with features as they were sent."""

    id: Id
    features: Raw = NO_FEATURES


class PackedSlotBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place for one action, with features as they were sent."""

    id: Id
    baseline: Id
    features: Raw = NO_FEATURES
    excluded: list[Id] = []


class PackedRankBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which action is best? Features are as they were sent."""

    actions: Annotated[list[PackedActionBody], Meta(min_length=1, max_length=MOST_ACTIONS)]
    event: GivenId | None = None
    context: Raw = NO_FEATURES
    excluded: list[Id] = []
    deferred: bool = False
    slots: list[PackedSlotBody] = []


class RewardBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an event was worth: one value, or one for each slot."""

    value: Reward | None = None
    slots: Annotated[dict[Id, Reward], Meta(max_length=MOST_SLOTS)] | None = None


class ErrorDetails(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request is refused."""

    code: str
    message: str
    target: str | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """An error."""

    error: ErrorDetails
