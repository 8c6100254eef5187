"""Decisions and rewards: what is answered, what is written first, and what a repeated request gets."""

import hashlib
import itertools
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.deciding.choosing import plays_of
from rbmle.service.deciding.requests import (
    Action,
    ActivateRequest,
    RankAnswer,
    RankedAction,
    RankRequest,
    RewardRequest,
    Slot,
    SlotAnswer,
)
from rbmle.service.deciding.slots_known import SlotsKnown
from rbmle.service.learning.published import Published
from rbmle.service.log.base import Log, Row
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    CLOCK,
    EVALUATIONS,
    OPERATOR,
    Activated,
    Decided,
    EvaluationAsked,
    EvaluationDeleted,
    OfferedAction,
    Play,
    Record,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
    packed,
)
from rbmle.service.log.writer import Writer

_EVENTS = uuid.UUID("6f0d2a0e-7c0b-4d4e-9a55-2f1d0b8f3c11")  # of ids that are made from keys


class ConflictError(RBMLEError):
    """A request whose key or event stands for another one."""


class InFlightError(RBMLEError):
    """A request of which an earlier copy is not answered yet."""


class Draft(msgspec.Struct, frozen=True):
    """An answer to a rank call, and the row that makes it hold as soon as it is stored."""

    answer: RankAnswer
    digest: str
    row: Row


class Decider:
    """Decides with the published model, and writes before it answers."""

    def __init__(
        self,
        log: Log,
        writer: Writer,
        published: Callable[[], Published],
        has_slots: Callable[[], bool],
    ) -> None:
        """Make it; `has_slots` says whether some front end has decided an event with slots."""
        self.slots = SlotsKnown(log, has_slots)
        self._log = log
        self._writer = writer
        self._published = published
        self._ids = _fresh_ids()

    @property
    def configuration(self) -> ServiceConfiguration:
        """Return how the service is configured."""
        return self._published().configuration

    def draft(self, asked: Sequence[tuple[RankRequest, str | None]]) -> list[Draft]:
        """Return the answers to some requests, each with its key; raise FeatureError.

        With an event id, or with a key where there is none, a repeated request is one event.
        """
        published = self._published()
        configuration = published.configuration
        events = [self._event(request.event, key) for request, key in asked]
        requests = [request for request, _ in asked]
        plays = plays_of(events, requests, published, configuration)
        for event, request in zip(events, requests, strict=True):
            if request.slots:
                self.slots.remember(event, [slot.id for slot in request.slots])
        return [
            _draft(event, request, own, published)
            for event, request, own in zip(events, requests, plays, strict=True)
        ]

    def recorded(self, event: str, digest: str) -> RankAnswer:
        """Return the answer that an event got, or raise ConflictError if it was another request's."""
        stored = self._log.of_request(f"rank:{event}")
        if stored is None:
            raise InFlightError(f"event {event!r} is being decided; ask again")
        decided = msgspec.json.decode(stored.row.payload, type=Decided)
        if decided.digest != digest:
            raise ConflictError(
                f"event {event!r} was ranked before, with other actions or features; use a new event id"
            )
        return answer_of(event, decided)

    def reward_row(self, request: RewardRequest, key: str | None) -> Row:
        """Return the row of a reward."""
        rewarded = Rewarded(values=request.values, digest=_digest(request))
        return _row(request.event, _reward_key(key), rewarded)

    def check_rewarded(self, request: RewardRequest, key: str | None) -> None:
        """Raise ConflictError unless the reward that was stored with this key is the same."""
        stored = self._log.of_request(_reward_key(key) or "")
        if stored is None:
            raise InFlightError("a reward with this key is being written; send it again")
        rewarded = msgspec.json.decode(stored.row.payload, type=Rewarded)
        if (stored.row.event, rewarded.digest) != (request.event, _digest(request)):
            raise ConflictError(
                f"the key {key!r} was used before, for another reward; use a new key for each reward"
            )

    def activate_row(self, request: ActivateRequest) -> Row:
        """Return the row that says that a deferred event was shown; the log takes it once."""
        return _row(request.event, f"activate:{request.event}", Activated())

    def append(self, record: Record, request: str | None = None) -> "Future[int]":
        """Write a record of the operator, of time or of evaluations; one with a request is written once."""
        match record:
            case Ticked():
                event = CLOCK
            case EvaluationAsked() | EvaluationDeleted():
                event = EVALUATIONS
            case _:
                event = OPERATOR
        return self._writer.submit([_row(event, request, record)])

    def _event(self, event: str | None, key: str | None) -> str:
        """Return the id of an event, a new one if it has none and there is no key to make it from."""
        if event is not None:
            return event
        return self._ids() if key is None else str(uuid.uuid5(_EVENTS, key))


def rehearse(published: Published) -> None:
    """Decide a few made-up calls with a model, and forget them.

    What is loaded or compiled at the first use is there then, and no client waits for it.
    """
    for exploration in {0.0, REHEARSED_EXPLORATION, published.configuration.exploration}:
        configuration = replace(published.configuration, exploration=exploration)
        asked = replace(published, configuration=configuration)
        for requests in (_REHEARSED, _REHEARSED[:1]):
            events = [str(place) for place in range(len(requests))]
            plays = plays_of(events, requests, asked, configuration)
            for event, request, own in zip(events, requests, plays, strict=True):
                _draft(event, request, own, asked)


def _rehearsed() -> list[RankRequest]:
    """Return calls with features of every kind, with slots and without."""
    context = packed([{"user": {"age": 30, "place": "north"}, "is_new": True, "tags": ["a", "b"]}])
    actions = [Action(id, packed([{"price": 0.5, "kind": id}])) for id in ("a", "b", "c")]
    slots = [Slot(id="first", baseline="a"), Slot(id="second", baseline="b", features=context)]
    return [
        RankRequest(context=context, actions=actions),
        RankRequest(context=context, actions=actions, excluded=["a"]),
        RankRequest(context=context, actions=actions, slots=slots),
    ]


REHEARSED_EXPLORATION = 0.1
_REHEARSED = _rehearsed()


def _draft(event: str, request: RankRequest, plays: list[Play], published: Published) -> Draft:
    """Return the answer to a request whose plays are chosen."""
    decided = Decided(
        context=request.context,
        actions=request.actions,
        plays=plays,
        digest=_digest(request),
        learned=published.bandit.round,
        deferred=request.deferred,
        mode=published.configuration.learning_mode.value,
    )
    row = _row(event, f"rank:{event}", decided)
    return Draft(answer_of(event, decided), decided.digest, row)


def _row(event: str, request: str | None, record: Record) -> Row:
    return Row(kind_of(record), event, request, clock.now(), encoded(record))


def _fresh_ids() -> Callable[[], str]:
    """Return a source of ids that no other source has."""
    prefix, counter = uuid.uuid4().hex[:20], itertools.count()
    return lambda: f"{prefix}{next(counter):012x}"


def answer_of(event: str, decided: Decided) -> RankAnswer:
    """Return what a client is told of a decision."""
    if not decided.plays[0].slot:
        play = decided.plays[0]
        return RankAnswer(
            event=event,
            chosen=decided.actions[play.chosen].id,
            ranking=_ranking(decided.actions, play),
        )
    slots = [
        SlotAnswer(
            id=play.slot,
            chosen=decided.actions[play.chosen].id,
            ranking=_ranking(decided.actions, play),
        )
        for play in decided.plays
    ]
    return RankAnswer(event=event, slots=slots)


def _ranking(actions: Sequence[OfferedAction], play: Play) -> list[RankedAction]:
    """Return the chosen action, then the others by their probability; what is not eligible has 0."""
    chances = play.probabilities
    if len(play.eligible) < len(actions):
        chances = [0.0] * len(actions)
        for place, chance in zip(play.eligible, play.probabilities, strict=True):
            chances[place] = chance
    order = sorted(range(len(actions)), key=chances.__getitem__, reverse=True)
    order.remove(play.chosen)
    return [RankedAction(actions[place].id, chances[place]) for place in [play.chosen, *order]]


def _digest(request: object) -> str:
    """Return a hash of all that a request says."""
    return hashlib.blake2b(msgspec.json.encode(request), digest_size=16).hexdigest()


def _reward_key(key: str | None) -> str | None:
    return None if key is None else f"reward:{key}"
