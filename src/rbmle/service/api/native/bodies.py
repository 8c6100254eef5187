"""Bodies of our own dialect: from JSON to requests, and from answers to JSON."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from rbmle.service.api.decoding import BodyError, decoded, target_of
from rbmle.service.api.faults import Fault, Refusal, RefusedError
from rbmle.service.api.native.wire import (
    ErrorBody,
    ErrorDetails,
    PackedRankBody,
    RankBody,
    RewardBody,
)
from rbmle.service.configuration import (
    SETTINGS,
    ConfigurationChange,
    ServiceConfiguration,
    given_in,
)
from rbmle.service.deciding.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
    check_event,
)
from rbmle.service.log.records import NO_FEATURES, RawFeatures
from rbmle.service.setting import ConfigurationError

_RANK = msgspec.json.Decoder(RankBody)
_PACKED_RANK = msgspec.json.Decoder(PackedRankBody)
_REWARD = msgspec.json.Decoder(RewardBody)
_CONFIGURATION = msgspec.json.Decoder(ConfigurationChange)


def fault(what: Fault, message: str, *, target: str | None = None) -> Refusal:
    """Return a refusal; its code is the name of what went wrong."""
    return Refusal(status=what.value, code=what.name.lower(), message=message, target=target)


def encode_problem(refusal: Refusal) -> bytes:
    """Return the error object."""
    return msgspec.json.encode(
        ErrorBody(
            error=ErrorDetails(code=refusal.code, message=refusal.message, target=refusal.target)
        )
    )


def decode_rank(body: bytes) -> RankRequest:
    """Return the request of POST /v1/rank."""
    with refusing():
        decoded(_RANK, body)
        return unpack_rank(body)


def unpack_rank(body: bytes) -> RankRequest:
    """Return the request of POST /v1/rank, whose features nobody has looked at.

    Raise an error that `decode_rank` says better.
    """
    rank = _PACKED_RANK.decode(body)
    return RankRequest(
        event=rank.event,
        context=_listed(rank.context),
        actions=[Action(action.id, _listed(action.features)) for action in rank.actions],
        excluded=rank.excluded,
        deferred=rank.deferred,
        slots=[
            Slot(
                id=slot.id,
                baseline=slot.baseline,
                features=_listed(slot.features),
                excluded=slot.excluded,
            )
            for slot in rank.slots
        ],
    )


def decode_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /v1/events/{id}/reward."""
    with refusing():
        reward = decoded(_REWARD, body)
        if (reward.value is None) == (reward.slots is None):
            raise RequestError((), "send either a value, or slots with a value for each")
        values = {ONLY_SLOT: reward.value} if reward.value is not None else reward.slots
        return RewardRequest(event=event, values=values or {})


def decode_activate(event: str) -> ActivateRequest:
    """Return the request of POST /v1/events/{id}/activate."""
    with refusing():
        return ActivateRequest(event=event)


def decode_event(event: str) -> str:
    """Return the event of GET /v1/events/{id}."""
    with refusing():
        check_event(event)
        return event


def decode_configuration(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PUT /v1/configuration, which has every setting."""
    with refusing():
        given = given_in(decoded(_CONFIGURATION, body))
        missing = [name for name in SETTINGS if name not in given]
        if missing:
            raise RequestError(
                (missing[0],),
                f"PUT takes the whole configuration, but there is no {', '.join(missing)}; send all "
                "settings as GET gives them, or only some with PATCH",
            )
        return before.changed(given)


def decode_change(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PATCH /v1/configuration; what is left out stays as it was."""
    with refusing():
        return before.changed(given_in(decoded(_CONFIGURATION, body)))


def encode_configuration(configuration: ServiceConfiguration) -> bytes:
    """Return the answer of GET, PUT and PATCH /v1/configuration."""
    return msgspec.json.encode(configuration.to_json())


def _listed(features: RawFeatures) -> RawFeatures:
    """Return an object as an array of it."""
    return features if features is NO_FEATURES else msgspec.Raw(b"[%s]" % bytes(features))


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse what cannot be meant."""
    try:
        yield
    except BodyError as error:
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=error.target)) from None
    except RequestError as error:
        target = target_of(error.target, {}) or None
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=target)) from None
    except ConfigurationError as error:
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=error.field)) from None
