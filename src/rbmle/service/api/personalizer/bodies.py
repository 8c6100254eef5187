"""Bodies of Personalizer's calls: rank, reward and activate, from JSON to requests and back."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import UnsetType

from rbmle.service.api.decoding import BodyError, decoded, target_of
from rbmle.service.api.faults import RefusedError
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.api.personalizer.wire import (
    Checked,
    PersonalizerAction,
    PersonalizerRank,
    PersonalizerRankAnswer,
    PersonalizerReward,
    PersonalizerSlotAnswer,
    PersonalizerSlotsRank,
    PersonalizerSlotsRankAnswer,
    PersonalizerSlotsReward,
)
from rbmle.service.deciding.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    RankAnswer,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
)
from rbmle.service.log.records import NO_FEATURES, RawFeatures

NAMES = {
    "event": "eventId",
    "context": "contextFeatures",
    "excluded": "excludedActions",
    "deferred": "deferActivation",
    "baseline": "baselineAction",
    "values": "reward",
}

_RANK = msgspec.json.Decoder(PersonalizerRank[PersonalizerAction, Checked])
_PACKED_RANK = msgspec.json.Decoder(PersonalizerRank[Action, RawFeatures])
_SLOTS_RANK = msgspec.json.Decoder(PersonalizerSlotsRank[PersonalizerAction, Checked])
_PACKED_SLOTS_RANK = msgspec.json.Decoder(PersonalizerSlotsRank[Action, RawFeatures])
_REWARD = msgspec.json.Decoder(PersonalizerReward)
_SLOTS_REWARD = msgspec.json.Decoder(PersonalizerSlotsReward)


def decode_rank(body: bytes) -> RankRequest:
    """Return the request of POST /rank."""
    with refusing(ErrorCode.INVALID_RANK_REQUEST):
        decoded(_RANK, body)
        return unpack_rank(body)


def unpack_rank(body: bytes) -> RankRequest:
    """Return the request of POST /rank, whose features nobody has looked at.

    Raise an error that `decode_rank` says better.
    """
    rank = _PACKED_RANK.decode(body)
    return RankRequest(
        event=rank.event_id,
        context=_listed(rank.context_features),
        actions=rank.actions,
        excluded=rank.excluded_actions or [],
        deferred=bool(rank.defer_activation),
    )


def decode_slots_rank(body: bytes) -> RankRequest:
    """Return the request of POST /multislot/rank."""
    with refusing(ErrorCode.INVALID_RANK_REQUEST):
        decoded(_SLOTS_RANK, body)
        rank = _PACKED_SLOTS_RANK.decode(body)
        return RankRequest(
            event=rank.event_id,
            context=_listed(rank.context_features),
            actions=rank.actions,
            deferred=bool(rank.defer_activation),
            slots=[
                Slot(
                    id=slot.id,
                    baseline=slot.baseline_action,
                    features=_listed(slot.features),
                    excluded=slot.excluded_actions or [],
                )
                for slot in rank.slots
            ],
        )


def decode_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /events/{id}/reward."""
    with refusing(ErrorCode.INVALID_REWARD_REQUEST):
        return RewardRequest(event=event, values={ONLY_SLOT: decoded(_REWARD, body).value})


def decode_slots_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /multislot/events/{id}/reward."""
    with refusing(ErrorCode.INVALID_REWARD_REQUEST):
        values: dict[str, float] = {}
        for place, reward in enumerate(decoded(_SLOTS_REWARD, body).reward):
            if reward.slot_id in values:
                raise RequestError(
                    ("reward", place, "slotId"),
                    f"the slot {reward.slot_id!r} is given twice; send one reward for each",
                )
            values[reward.slot_id] = reward.value
        return RewardRequest(event=event, values=values)


def decode_activate(event: str) -> ActivateRequest:
    """Return the request of POST /events/{id}/activate, with slots or without."""
    with refusing(ErrorCode.INVALID_EVENT_ID_TO_ACTIVATE):
        return ActivateRequest(event=event)


def encode_rank(answer: RankAnswer) -> bytes:
    """Return the answer of POST /rank."""
    return msgspec.json.encode(
        PersonalizerRankAnswer(list(answer.ranking), answer.event, answer.chosen)
    )


def encode_slots_rank(answer: RankAnswer) -> bytes:
    """Return the answer of POST /multislot/rank."""
    slots = [PersonalizerSlotAnswer(slot.id, slot.chosen) for slot in answer.slots]
    return msgspec.json.encode(PersonalizerSlotsRankAnswer(slots, answer.event))


def _listed(features: RawFeatures | UnsetType) -> RawFeatures:
    """Return features that are there, though a client may say null for none."""
    if isinstance(features, UnsetType) or bytes(features) == b"null":
        return NO_FEATURES
    return features


@contextmanager
def refusing(code: ErrorCode) -> Iterator[None]:
    """Refuse with this code what cannot be meant, and as a bad request what is no JSON."""
    try:
        yield
    except BodyError as error:
        given = code if error.is_json else ErrorCode.BAD_REQUEST
        raise RefusedError(problem(given, str(error), target=error.target)) from None
    except RequestError as error:
        target = target_of(error.target, NAMES)
        raise RefusedError(problem(code, str(error), target=target)) from None
