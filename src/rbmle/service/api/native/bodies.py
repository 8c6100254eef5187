"""Our own wire format, small: `/v1/rank`, `/v1/events/{id}/reward`, and a few more."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

import msgspec

from rbmle.service.access.keys import Scope
from rbmle.service.api.decoding import BodyError, decoded, target_of
from rbmle.service.api.faults import Fault, Problem, RefusedError
from rbmle.service.api.native.wire import (
    ErrorBody,
    ErrorDetails,
    EventBody,
    PackedRankBody,
    RankAnswerBody,
    RankBody,
    RewardBody,
    SlotAnswerBody,
    StatusBody,
)
from rbmle.service.api.paths import ID, Table, match, segments
from rbmle.service.configuration import (
    ConfigurationError,
    ConfigurationJSON,
    ServiceConfiguration,
    format_date,
)
from rbmle.service.deciding.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    EventAnswer,
    RankAnswer,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
    StatusAnswer,
    check_event,
)
from rbmle.service.log.records import NO_FEATURES, Features

PREFIX = "v1"
REQUEST_HEADER = "idempotency-key"


class Operation(Enum):
    """What a client asks."""

    RANK = auto()
    REWARD = auto()
    ACTIVATE = auto()
    GET_EVENT = auto()
    GET_CONFIGURATION = auto()
    PUT_CONFIGURATION = auto()
    PATCH_CONFIGURATION = auto()
    GET_STATUS = auto()


TABLE: Table[Operation] = MappingProxyType(
    {
        ("rank",): {"POST": Operation.RANK},
        ("events", ID): {"GET": Operation.GET_EVENT},
        ("events", ID, "reward"): {"POST": Operation.REWARD},
        ("events", ID, "activate"): {"POST": Operation.ACTIVATE},
        ("configuration",): {
            "GET": Operation.GET_CONFIGURATION,
            "PUT": Operation.PUT_CONFIGURATION,
            "PATCH": Operation.PATCH_CONFIGURATION,
        },
        ("status",): {"GET": Operation.GET_STATUS},
    }
)

SUCCESS: Mapping[Operation, int] = MappingProxyType(
    {
        Operation.RANK: 201,
        Operation.REWARD: 204,
        Operation.ACTIVATE: 204,
        Operation.GET_EVENT: 200,
        Operation.GET_CONFIGURATION: 200,
        Operation.PUT_CONFIGURATION: 200,
        Operation.PATCH_CONFIGURATION: 200,
        Operation.GET_STATUS: 200,
    }
)

_DECIDING = frozenset({Operation.RANK, Operation.REWARD, Operation.ACTIVATE})

_RANK = msgspec.json.Decoder(RankBody)
_PACKED_RANK = msgspec.json.Decoder(PackedRankBody)
_REWARD = msgspec.json.Decoder(RewardBody)
_CONFIGURATION = msgspec.json.Decoder(ConfigurationJSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What is asked, and of which event."""

    operation: Operation
    id: str | None = None  # None: the path has none
    is_read: bool  # it changes nothing

    @property
    def scope(self) -> Scope:
        """Return what a key needs."""
        if self.operation in _DECIDING:
            return Scope.DECIDE
        return Scope.READ if self.is_read else Scope.ADMIN

    @property
    def status(self) -> int:
        """Return the status of success."""
        return SUCCESS[self.operation]


def route(method: str, raw_path: bytes, query: bytes = b"") -> Route | Problem | None:
    """Return what is asked, why it cannot be, or None if the path is not of this dialect."""
    parts = segments(raw_path)
    if parts is None:
        if not raw_path.lstrip(b"/").lower().startswith(PREFIX.encode() + b"/"):
            return None
        return fault(Fault.MALFORMED, "the path is no UTF-8; encode ids as UTF-8")
    if parts[0].lower() != PREFIX:
        return None
    found = match(TABLE, parts[1:])
    if found is None:
        return fault(Fault.NOT_FOUND, f"there is nothing at /{'/'.join(parts)}")
    if method not in found.methods:
        return refusal_of_method(method, tuple(sorted(found.methods)))
    return Route(operation=found.methods[method], id=found.id, is_read=method == "GET")


def fault(what: Fault, message: str, *, target: str | None = None) -> Problem:
    """Return a refusal; its code is the name of what went wrong."""
    return Problem(status=what.value, code=what.name.lower(), message=message, target=target)


def refusal_of_method(method: str, allow: tuple[str, ...]) -> Problem:
    """Return the refusal of a method that a path does not have."""
    return Problem(
        status=Fault.METHOD_NOT_ALLOWED.value,
        code=Fault.METHOD_NOT_ALLOWED.name.lower(),
        message=f"{method} is not possible here; there is {', '.join(allow)}",
        allow=allow,
    )


def encode_problem(refusal: Problem) -> bytes:
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
        decoded(_CONFIGURATION, body)
        given = msgspec.json.decode(body)
        missing = [name for name in ConfigurationJSON.__struct_fields__ if name not in given]
        if missing:
            raise RequestError(
                (missing[0],),
                f"PUT takes the whole configuration, but there is no {', '.join(missing)}; send all "
                "settings as GET gives them, or only some with PATCH",
            )
        return _changed(before, given)


def decode_change(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PATCH /v1/configuration; what is left out stays as it was."""
    with refusing():
        decoded(_CONFIGURATION, body)
        return _changed(before, msgspec.json.decode(body))


def _changed(before: ServiceConfiguration, given: dict[str, Any]) -> ServiceConfiguration:
    after = ServiceConfiguration.from_json(before.to_json() | given)
    before.check_change(after)
    return after


def encode_rank(answer: RankAnswer) -> bytes:
    """Return the answer of POST /v1/rank."""
    return msgspec.json.encode(_rank_body(answer))


def encode_event(event: EventAnswer) -> bytes:
    """Return the answer of GET /v1/events/{id}."""
    return msgspec.json.encode(
        EventBody(
            answer=_rank_body(event.answer),
            time=format_date(event.time),
            is_active=event.is_active,
            is_closed=event.is_closed,
            rewards=event.rewards,
            deadline=None if event.deadline is None else format_date(event.deadline),
        )
    )


def encode_configuration(configuration: ServiceConfiguration) -> bytes:
    """Return the answer of GET, PUT and PATCH /v1/configuration."""
    return msgspec.json.encode(configuration.to_json())


def encode_status(status: StatusAnswer) -> bytes:
    """Return the answer of GET /v1/status."""
    return msgspec.json.encode(
        StatusBody(
            version=status.version,
            records=status.records,
            learned=status.learned,
            backlog=status.backlog,
            observations=status.observations,
        )
    )


def _rank_body(answer: RankAnswer) -> RankAnswerBody:
    return RankAnswerBody(
        event=answer.event,
        chosen=answer.chosen or None,
        ranking=list(answer.ranking),
        slots=[SlotAnswerBody(slot.id, slot.chosen, list(slot.ranking)) for slot in answer.slots],
    )


def _listed(features: Features) -> Features:
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
