"""Personalizer's bodies, field by field; fields that are not here are ignored."""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from rbmle.service.deciding.requests import (
    LONGEST_ID,
    MOST_ACTIONS,
    MOST_SLOTS,
    Action,
    Id,
    RankedAction,
    Reward,
)
from rbmle.service.features.values import Features
from rbmle.service.log.records import NO_FEATURES

_ACTIONS = Meta(min_length=1, max_length=MOST_ACTIONS)
_SLOTS = Meta(min_length=1, max_length=MOST_SLOTS)
Label = Annotated[str, Meta(max_length=LONGEST_ID)]


class ActionBody(Struct, frozen=True):
    """What may be chosen."""

    id: Id
    features: list[Features]


class RankBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /rank; clients of some languages send null for what they leave out."""

    actions: Annotated[list[ActionBody], _ACTIONS]
    context_features: list[Features] | None = None
    excluded_actions: list[str] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PackedRankBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /rank, with features as they were sent."""

    actions: Annotated[list[Action], _ACTIONS]
    context_features: Raw = NO_FEATURES
    excluded_actions: list[str] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class SlotBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """A slot of POST /multislot/rank."""

    id: Id
    baseline_action: str
    features: list[Features] | None = None
    excluded_actions: list[str] | None = None


class SlotsRankBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /multislot/rank."""

    actions: Annotated[list[ActionBody], _ACTIONS]
    slots: Annotated[list[SlotBody], _SLOTS]
    context_features: list[Features] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PackedSlotBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """A slot of POST /multislot/rank, with features as they were sent."""

    id: Id
    baseline_action: str
    features: Raw = NO_FEATURES
    excluded_actions: list[str] | None = None


class PackedSlotsRankBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /multislot/rank, with features as they were sent."""

    actions: Annotated[list[Action], _ACTIONS]
    slots: Annotated[list[PackedSlotBody], _SLOTS]
    context_features: Raw = NO_FEATURES
    event_id: Id | None = None
    defer_activation: bool | None = None


class RankAnswerBody(Struct, frozen=True, rename="camel"):
    """The answer of POST /rank."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class SlotAnswerBody(Struct, frozen=True, rename="camel"):
    """What was chosen for a slot."""

    id: str
    reward_action_id: str


class SlotsRankAnswerBody(Struct, frozen=True, rename="camel"):
    """The answer of POST /multislot/rank."""

    slots: list[SlotAnswerBody]
    event_id: str


class RewardBody(Struct, frozen=True):
    """POST /events/{id}/reward."""

    value: Reward


class SlotRewardBody(Struct, frozen=True, rename="camel"):
    """The reward of a slot."""

    slot_id: Id
    value: Reward


class SlotsRewardBody(Struct, frozen=True):
    """POST /multislot/events/{id}/reward."""

    reward: Annotated[list[SlotRewardBody], Meta(min_length=1, max_length=MOST_SLOTS)]


class PolicyBody(Struct, frozen=True):
    """GET and PUT /configurations/policy."""

    name: Label
    arguments: Annotated[str, Meta(max_length=1024)]


class EvaluationBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /evaluations and PUT /evaluations/{id}."""

    name: Label
    start_time: str
    end_time: str
    policies: list[PolicyBody] | None = None
    enable_offline_experimentation: bool | None = None  # its name in v1
    enable_policy_optimization: bool | None = None
