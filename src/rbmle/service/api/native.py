"""Our own dialect: `/v1/rank`, `/v1/events/{id}/reward`, and a few more paths."""

from asyncio import to_thread
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from rbmle.service.api.base import (
    Dialect,
    Fault,
    Refusal,
    RefusedError,
    Reply,
    changing,
    deciding,
    reading,
    table_of,
)
from rbmle.service.api.decoding import BodyError, decode_body, target_of
from rbmle.service.api.operations import Operations, describe_event
from rbmle.service.exports.erasing import Condition, ErasureError, EventSearch, Older
from rbmle.service.front.requests import (
    LONGEST_ID,
    MOST_ACTIONS,
    MOST_SLOTS,
    ONLY_SLOT,
    ActivateRequest,
    Id,
    RankRequest,
    RequestError,
    Reward,
    RewardRequest,
    check_event,
)
from rbmle.service.log.records import NO_FEATURES, RawFeatures
from rbmle.service.model.limits import Features
from rbmle.service.model.private import text_of
from rbmle.service.model.report import ShadowAnswer, lift_answer
from rbmle.service.settings import (
    SETTINGS,
    ConfigurationChange,
    ConfigurationError,
    ServiceConfiguration,
    changed_settings,
)

NO_CONTROLS = (  # the ids that check_id accepts, as a pattern; except joiners in words and emoji
    "^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]*$"
)

_CONFIGURATION = msgspec.json.Decoder(ConfigurationChange)

PREFIX = "v1"
MOST_ERASED = 10_000  # events in one call
REQUEST_HEADER = "idempotency-key"


NewId = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_ID, extra_json_schema={"pattern": NO_CONTROLS}),
]


class ActionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action that may be chosen."""

    id: NewId
    features: Features = {}


class SlotBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place on a page for one action; the baseline is what it would show without the service."""

    id: NewId
    baseline: Annotated[Id, Meta(description="One of the actions; no two slots have the same")]
    features: Features = {}
    excluded: Annotated[
        list[Id], Meta(max_length=MOST_ACTIONS, description="Some of the actions; not the baseline")
    ] = []


class RankBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks which action is best. Without an event id, the service makes one up."""

    actions: Annotated[
        list[ActionBody],
        Meta(min_length=1, max_length=MOST_ACTIONS, description="No two have the same id"),
    ]
    event: NewId | None = None
    context: Features = {}
    excluded: Annotated[
        list[Id], Meta(max_length=MOST_ACTIONS, description="At least one action must remain")
    ] = []
    deferred: bool = False
    unit: Annotated[
        NewId | None,
        Meta(
            description="What is in the holdout or not as a whole, such as a user; else the event"
        ),
    ] = None
    slots: Annotated[
        list[SlotBody],
        Meta(
            max_length=MOST_SLOTS,
            description="No more than there are actions; no two have the same id",
        ),
    ] = []


class RewardBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reward of an event: one value, or one for each slot."""

    value: Reward | None = None
    slots: Annotated[dict[Id, Reward], Meta(max_length=MOST_SLOTS)] | None = None


class ErasureBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks to erase the events that have all features in `where`, or one of these ids."""

    where: Annotated[
        dict[str, bool | float | str],
        Meta(description='Paths of features and their values, as in {"user.id": "u7"}'),
    ] = {}
    events: Annotated[list[Id], Meta(max_length=MOST_ERASED)] = []
    older: Annotated[
        Literal["keep", "forget"] | None,
        Meta(description="Of records that retention deleted: what the model learned of them"),
    ] = None
    dry_run: bool = False


class ErasureAnswer(Struct, frozen=True, kw_only=True):
    """What was erased, or would be."""

    events: int
    records: int
    deleted: int  # records up to this one had been deleted by retention


class ErrorDetails(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request is refused."""

    code: str
    message: str
    target: str | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """An error."""

    error: ErrorDetails


_STRICT_RANK = msgspec.json.Decoder(RankBody)
_RANK = msgspec.json.Decoder(RankRequest)
_ERASURE = msgspec.json.Decoder(ErasureBody)
_REWARD = msgspec.json.Decoder(RewardBody)


def fault(what: Fault, message: str, *, target: str | None = None) -> Refusal:
    """Return a refusal whose code is the name of the fault."""
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
        decode_body(_STRICT_RANK, body)
        return unpack_rank(body)


def unpack_rank(body: bytes) -> RankRequest:
    """Return the request of POST /v1/rank without checking its features.

    Errors do not say well what is wrong; `decode_rank` does.
    """
    rank = _RANK.decode(body)
    force_setattr(rank, "context", _as_array(rank.context))  # nobody else has seen it yet
    for action in rank.actions:
        force_setattr(action, "features", _as_array(action.features))
    for slot in rank.slots:
        force_setattr(slot, "features", _as_array(slot.features))
    return rank


def decode_reward(event: str, body: bytes) -> RewardRequest:
    """Return the request of POST /v1/events/{id}/reward."""
    with refusing():
        reward = decode_body(_REWARD, body)
        if (reward.value is None) == (reward.slots is None):
            raise RequestError((), "send either a value, or slots with a value for each")
        values = {ONLY_SLOT: reward.value} if reward.value is not None else reward.slots
        return RewardRequest(event=event, values=values or {})


def decode_activate(event: str, body: bytes = b"") -> ActivateRequest:
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
        changes = changed_settings(decode_body(_CONFIGURATION, body))
        missing = [name for name in SETTINGS if name not in changes]
        if missing:
            raise RequestError(
                (missing[0],),
                f"PUT takes the whole configuration, but there is no {', '.join(missing)}; send all "
                "settings as GET returns them, or only some with PATCH",
            )
        return before.with_changes(changes)


def decode_change(body: bytes, before: ServiceConfiguration) -> ServiceConfiguration:
    """Return the configuration of PATCH /v1/configuration; settings that are left out keep their value."""
    with refusing():
        return before.with_changes(changed_settings(decode_body(_CONFIGURATION, body)))


def encode_configuration(configuration: ServiceConfiguration) -> bytes:
    """Return the answer of GET, PUT and PATCH /v1/configuration."""
    return msgspec.json.encode(configuration.to_json())


def _as_array(features: RawFeatures) -> RawFeatures:
    return features if features is NO_FEATURES else msgspec.Raw(b"[%s]" % bytes(features))


@contextmanager
def refusing() -> Iterator[None]:
    """Turn errors of decoding into a RefusedError."""
    try:
        yield
    except BodyError as error:
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=error.target)) from None
    except RequestError as error:
        target = target_of(error.target, {}) or None
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=target)) from None
    except ConfigurationError as error:
        raise RefusedError(fault(Fault.MALFORMED, str(error), target=error.field)) from None


async def _get_event(operations: Operations, id: str, body: bytes) -> bytes:
    event = await to_thread(describe_event, operations.service, decode_event(id))
    if event is None:
        raise RefusedError(fault(Fault.NOT_FOUND, f"there is no event {id!r}"))
    return msgspec.json.encode(event)


async def _get_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    return encode_configuration(operations.service.decider.configuration)


async def _put_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    await operations.configure(partial(decode_configuration, body))
    return encode_configuration(operations.service.decider.configuration)


async def _patch_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    await operations.configure(partial(decode_change, body))
    return encode_configuration(operations.service.decider.configuration)


async def _erase(operations: Operations, id: str, body: bytes) -> bytes:
    with refusing():
        asked = decode_body(_ERASURE, body)
        if not asked.where and not asked.events:
            raise RequestError(("where",), "nothing is asked for; send `where` or `events`")
    conditions = [Condition(path, text_of(value)) for path, value in asked.where.items()]
    search = EventSearch(conditions, await to_thread(operations.find_hasher))
    older = None if asked.older is None else Older(asked.older)
    try:
        done = await operations.erase(search, asked.events, older, is_dry_run=asked.dry_run)
    except ErasureError as error:
        raise RefusedError(fault(Fault.CONFLICT, str(error), target="older")) from None
    answer = ErasureAnswer(events=done.events, records=done.records, deleted=done.deleted)
    return msgspec.json.encode(answer)


async def _get_status(operations: Operations, id: str, body: bytes) -> bytes:
    return msgspec.json.encode(operations.service.status())


async def _get_lift(operations: Operations, id: str, body: bytes) -> bytes:
    return msgspec.json.encode(lift_answer(operations.service.report))


async def _get_shadows(operations: Operations, id: str, body: bytes) -> bytes:
    return msgspec.json.encode(ShadowAnswer(shadows=operations.service.report.shadows))


async def _promote_shadow(operations: Operations, id: str, body: bytes) -> bytes:
    if not await operations.promote(id):
        names = ", ".join(operations.service.decider.configuration.shadows) or "none"
        message = f"there is no shadow {id!r}; the configuration has {names}"
        raise RefusedError(fault(Fault.NOT_FOUND, message))
    return b""


TABLE = table_of(
    {
        "POST rank": deciding(
            "rank",
            lambda _, body: decode_rank(body),
            unpack=lambda _, body: unpack_rank(body),
            encode=msgspec.json.encode,
        ),
        "GET events/{id}": reading("get_event", _get_event),
        "POST events/{id}/reward": deciding("reward", decode_reward),
        "POST events/{id}/activate": deciding("activate", decode_activate),
        "GET configuration": reading("get_configuration", _get_configuration),
        "PUT configuration": changing("put_configuration", _put_configuration),
        "PATCH configuration": changing("patch_configuration", _patch_configuration),
        "GET status": reading("get_status", _get_status),
        "GET lift": reading("get_lift", _get_lift),
        "GET shadows": reading("get_shadows", _get_shadows),
        "POST shadows/{id}/promote": changing("promote_shadow", _promote_shadow),
        "POST erasures": changing("erase", _erase),
    }
)


def _refuse(problem: Refusal) -> Reply:
    headers = ((b"allow", ", ".join(problem.allow).encode()),) if problem.allow else ()
    return Reply(problem.status, encode_problem(problem), headers)


NATIVE = Dialect(
    request_header=REQUEST_HEADER.encode(),
    checks_rewards=True,
    endpoints=TABLE,
    fault=fault,
    refuse=_refuse,
)
