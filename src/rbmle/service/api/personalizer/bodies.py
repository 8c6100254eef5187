"""Bodies of Personalizer's rank, reward and activate calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.service.api.base import RefusedError
from rbmle.service.api.decoding import BodyError, decode_body, target_of
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.front.requests import (
    LONGEST_ID,
    MOST_ACTIONS,
    MOST_SLOTS,
    ONLY_SLOT,
    Action,
    ActivateRequest,
    Id,
    RankAnswer,
    RankRequest,
    RequestError,
    Reward,
    RewardRequest,
    Slot,
)
from rbmle.service.log.records import NO_FEATURES, RawFeatures
from rbmle.service.model.limits import Features
from rbmle.service.model.settings import service_policy

_ACTIONS = Meta(min_length=1, max_length=MOST_ACTIONS)
_SLOTS = Meta(min_length=1, max_length=MOST_SLOTS)

NAMES = {
    "event": "eventId",
    "context": "contextFeatures",
    "excluded": "excludedActions",
    "deferred": "deferActivation",
    "baseline": "baselineAction",
    "values": "reward",
}


Checked = list[Features] | None
AnyAction = TypeVar("AnyAction")  # PersonalizerAction, or _PackedAction with unchecked features
AnyFeatures = TypeVar("AnyFeatures")  # Checked, or RawFeatures


class PersonalizerAction(Struct, frozen=True):
    """An action that may be chosen."""

    id: Id
    features: list[Features]


class _PackedAction(Action, frozen=True, forbid_unknown_fields=False):
    features: RawFeatures  # required


class PersonalizerRank(
    Struct, Generic[AnyAction, AnyFeatures], frozen=True, kw_only=True, rename="camel"
):
    """POST /rank; clients in some languages send null for absent fields."""

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


Label = Annotated[str, Meta(max_length=LONGEST_ID)]


class PolicyBody(Struct, frozen=True):
    """GET and PUT /configurations/policy: the name of a policy, and its settings as key=value."""

    name: Label
    arguments: Annotated[str, Meta(max_length=1024)]


_RANK = msgspec.json.Decoder(PersonalizerRank[PersonalizerAction, Checked])
_PACKED_RANK = msgspec.json.Decoder(PersonalizerRank[_PackedAction, RawFeatures])
_SLOTS_RANK = msgspec.json.Decoder(PersonalizerSlotsRank[PersonalizerAction, Checked])
_PACKED_SLOTS_RANK = msgspec.json.Decoder(PersonalizerSlotsRank[_PackedAction, RawFeatures])
_REWARD = msgspec.json.Decoder(PersonalizerReward)
_SLOTS_REWARD = msgspec.json.Decoder(PersonalizerSlotsReward)


def decode_rank(body: bytes) -> RankRequest:
    """Return the request of POST /rank."""
    with refusing(ErrorCode.INVALID_RANK_REQUEST):
        decode_body(_RANK, body)
        return unpack_rank(body)


def unpack_rank(body: bytes) -> RankRequest:
    """Return the request of POST /rank without checking its features.

    Errors do not say well what is wrong; `decode_rank` does.
    """
    rank = _PACKED_RANK.decode(body)
    return RankRequest(
        event=rank.event_id,
        context=_present(rank.context_features),
        actions=rank.actions,
        excluded=rank.excluded_actions or [],
        deferred=bool(rank.defer_activation),
    )


def decode_slots_rank(body: bytes) -> RankRequest:
    """Return the request of POST /multislot/rank."""
    with refusing(ErrorCode.INVALID_RANK_REQUEST):
        decode_body(_SLOTS_RANK, body)
        rank = _PACKED_SLOTS_RANK.decode(body)
        return RankRequest(
            event=rank.event_id,
            context=_present(rank.context_features),
            actions=rank.actions,
            deferred=bool(rank.defer_activation),
            slots=[
                Slot(
                    id=slot.id,
                    baseline=slot.baseline_action,
                    features=_present(slot.features),
                    excluded=slot.excluded_actions or [],
                )
                for slot in rank.slots
            ],
        )


def decode_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /events/{id}/reward."""
    with refusing(ErrorCode.INVALID_REWARD_REQUEST):
        return RewardRequest(event=event, values={ONLY_SLOT: decode_body(_REWARD, body).value})


def decode_slots_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /multislot/events/{id}/reward."""
    with refusing(ErrorCode.INVALID_REWARD_REQUEST):
        values: dict[str, float] = {}
        for place, reward in enumerate(decode_body(_SLOTS_REWARD, body).reward):
            if reward.slot_id in values:
                raise RequestError(
                    ("reward", place, "slotId"),
                    f"the slot {reward.slot_id!r} is given twice; send one reward for each",
                )
            values[reward.slot_id] = reward.value
        return RewardRequest(event=event, values=values)


def decode_activate(event: str, body: bytes = b"") -> ActivateRequest:
    """Return the request of POST /events/{id}/activate, with slots or without."""
    with refusing(ErrorCode.INVALID_EVENT_ID_TO_ACTIVATE):
        return ActivateRequest(event=event)


def encode_rank(answer: RankAnswer) -> bytes:
    """Return the answer of POST /rank."""
    return msgspec.json.encode(
        {"ranking": answer.ranking, "eventId": answer.event, "rewardActionId": answer.chosen}
    )


def encode_slots_rank(answer: RankAnswer) -> bytes:
    """Return the answer of POST /multislot/rank."""
    slots = [{"id": slot.id, "rewardActionId": slot.chosen} for slot in answer.slots]
    return msgspec.json.encode({"slots": slots, "eventId": answer.event})


def _present(features: RawFeatures | UnsetType) -> RawFeatures:
    if isinstance(features, UnsetType) or bytes(features) == b"null":
        return NO_FEATURES
    return features


@contextmanager
def refusing(code: ErrorCode) -> Iterator[None]:
    """Turn errors of decoding into a RefusedError with this code; invalid JSON is a bad request."""
    try:
        yield
    except BodyError as error:
        refused = problem(
            code if error.is_json else ErrorCode.BAD_REQUEST, str(error), target=error.target
        )
        raise RefusedError(refused) from None
    except RequestError as error:
        target = target_of(error.target, NAMES)
        raise RefusedError(problem(code, str(error), target=target)) from None


def policy_of(name: str, arguments: str) -> Policy[Any]:
    """Return the policy of learning settings; raise RefusedError for those of Vowpal Wabbit, for example."""
    try:
        return service_policy(name, arguments)
    except RBMLEError as error:
        message = (
            f"{error}; send the name of a policy, and as arguments key=value with spaces between"
        )
        code = ErrorCode.INVALID_POLICY_CONFIGURATION
        raise RefusedError(problem(code, message, target="arguments")) from None
