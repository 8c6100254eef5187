"""Personalizer's bodies, field by field; fields that are not here are ignored."""

from typing import Annotated, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from rbmle.service.deciding.requests import (
    LONGEST_ID,
    MOST_ACTIONS,
    MOST_SLOTS,
    Id,
    RankedAction,
    Reward,
)
from rbmle.service.features.limits import Features

_ACTIONS = Meta(min_length=1, max_length=MOST_ACTIONS)
_SLOTS = Meta(min_length=1, max_length=MOST_SLOTS)
Checked = list[Features] | None
Label = Annotated[str, Meta(max_length=LONGEST_ID)]


AnyAction = TypeVar("AnyAction")  # with features that are checked, or as they were sent
AnyFeatures = TypeVar("AnyFeatures")  # Checked or Raw


class PersonalizerAction(Struct, frozen=True):
    """What may be chosen."""

    id: Id
    features: list[Features]


class PersonalizerRank(
    Struct, Generic[AnyAction, AnyFeatures], frozen=True, kw_only=True, rename="camel"
):
    """POST /rank; clients of some languages send null for what they leave out."""

    actions: Annotated[list[AnyAction], _ACTIONS]
    context_features: AnyFeatures | UnsetType = UNSET
    excluded_actions: list[str] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PersonalizerSlot(Struct, Generic[AnyFeatures], frozen=True, kw_only=True, rename="camel"):
    """A slot of POST /multislot/rank."""

    id: Id
    baseline_action: str
    features: AnyFeatures | UnsetType = UNSET
    excluded_actions: list[str] | None = None


class PersonalizerSlotsRank(
    Struct, Generic[AnyAction, AnyFeatures], frozen=True, kw_only=True, rename="camel"
):
    """POST /multislot/rank."""

    actions: Annotated[list[AnyAction], _ACTIONS]
    slots: Annotated[list[PersonalizerSlot[AnyFeatures]], _SLOTS]
    context_features: AnyFeatures | UnsetType = UNSET
    event_id: Id | None = None
    defer_activation: bool | None = None


class PersonalizerRankAnswer(Struct, frozen=True, rename="camel"):
    """The answer of POST /rank."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class PersonalizerSlotAnswer(Struct, frozen=True, rename="camel"):
    """What was chosen for a slot."""

    id: str
    reward_action_id: str


class PersonalizerSlotsRankAnswer(Struct, frozen=True, rename="camel"):
    """The answer of POST /multislot/rank."""

    slots: list[PersonalizerSlotAnswer]
    event_id: str


class PersonalizerReward(Struct, frozen=True):
    """POST /events/{id}/reward."""

    value: Reward


class PersonalizerSlotReward(Struct, frozen=True, rename="camel"):
    """The reward of a slot."""

    slot_id: Id
    value: Reward


class PersonalizerSlotsReward(Struct, frozen=True):
    """POST /multislot/events/{id}/reward."""

    reward: Annotated[list[PersonalizerSlotReward], Meta(min_length=1, max_length=MOST_SLOTS)]


class PolicyBody(Struct, frozen=True):
    """GET and PUT /configurations/policy: what Personalizer calls a policy, and its learner's arguments."""

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


class AppliedBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """POST /configurations/applyFromEvaluation."""

    evaluation_id: str
    policy_name: str
