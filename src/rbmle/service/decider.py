"""Decisions and rewards: what is answered, what is written first, and what a repeated request gets."""

import hashlib
import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import msgspec
import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.errors import RBMLEError
from rbmle.core.policy import frequencies
from rbmle.core.types import Probabilities
from rbmle.service.configuration import LearningMode, ServiceConfiguration
from rbmle.service.logs.base import Log, Row
from rbmle.service.model import Model
from rbmle.service.records import (
    CLOCK,
    OPERATOR,
    Activated,
    Decided,
    Features,
    Offer,
    Play,
    Record,
    Rewarded,
    Ticked,
    encoded,
    kind_of,
)
from rbmle.service.requests import (
    ActivateRequest,
    RankAnswer,
    RankedAction,
    RankRequest,
    RewardRequest,
    Slot,
    SlotAnswer,
)
from rbmle.service.seats import Seats
from rbmle.service.writer import Writer

_EVENTS = uuid.UUID("6f0d2a0e-7c0b-4d4e-9a55-2f1d0b8f3c11")  # of ids that are made from keys


class ConflictError(RBMLEError):
    """A request whose key or event stands for another one."""


class InFlightError(RBMLEError):
    """A request of which an earlier copy is not answered yet."""


@dataclass(frozen=True, slots=True)
class Published:
    """A model that decides: a copy that nobody changes."""

    model: Model
    bandit: Bandit
    seq: int = 0  # the last record that it knows
    time: int = 0  # of that record, in milliseconds


@dataclass(frozen=True, slots=True)
class Proposal:
    """An answer to a rank call; it holds as soon as it is stored."""

    answer: RankAnswer
    digest: str
    stored: "Future[int]"


class Decider:
    """Decides with the published model, and writes before it answers."""

    def __init__(self, log: Log, writer: Writer, published: Callable[[], Published]) -> None:
        self.configuration = ServiceConfiguration()
        self._log = log
        self._writer = writer
        self._published = published
        self._ids = _fresh_ids()

    def rank(self, request: RankRequest, key: str | None = None) -> Proposal:
        """Return an answer that is being written; raise FeatureError for features that cannot be read.

        With an event id, or with a key where there is none, a repeated request is one event.
        """
        event = request.event
        if event is None:
            event = self._ids() if key is None else str(uuid.uuid5(_EVENTS, key))
        digest = _digest(request)
        published, configuration = self._published(), self.configuration
        plays = (
            self._slots(request, event, published, configuration)
            if request.slots
            else [self._only(request, event, published, configuration)]
        )
        decided = Decided(
            context=request.context,
            actions=[Offer(id=action.id, features=action.features) for action in request.actions],
            plays=plays,
            digest=digest,
            learned=published.bandit.round,
            deferred=request.deferred,
            mode=configuration.learning_mode.value,
        )
        stored = self._append(event, f"rank:{event}", decided)
        return Proposal(answer_of(event, decided), digest, stored)

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

    def reward(self, request: RewardRequest, key: str | None = None) -> "Future[int]":
        """Write a reward."""
        rewarded = Rewarded(values=request.values, digest=_digest(request))
        return self._append(request.event, _reward_key(key), rewarded)

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

    def activate(self, request: ActivateRequest) -> "Future[int]":
        """Write that a deferred event was shown; the second time is a DuplicateRequest."""
        return self._append(request.event, f"activate:{request.event}", Activated())

    def append(self, record: Record) -> "Future[int]":
        """Write a record of the operator, or of time."""
        return self._append(CLOCK if isinstance(record, Ticked) else OPERATOR, None, record)

    def _append(self, event: str, request: str | None, record: Record) -> "Future[int]":
        row = Row(kind_of(record), event, request, time.time_ns() // 1_000_000, encoded(record))
        return self._writer.submit([row])

    def _only(
        self,
        request: RankRequest,
        event: str,
        published: Published,
        configuration: ServiceConfiguration,
    ) -> Play:
        """Return the play of an event without slots; its baseline is the first eligible action."""
        excluded = set(request.excluded)
        eligible = [
            place for place, action in enumerate(request.actions) if action.id not in excluded
        ]
        return self._play(request, event, eligible, eligible[0], None, published, configuration)

    def _slots(
        self,
        request: RankRequest,
        event: str,
        published: Published,
        configuration: ServiceConfiguration,
    ) -> list[Play]:
        """Return the plays of all slots, each action shown once."""
        places = {action.id: place for place, action in enumerate(request.actions)}
        allowed = [
            [place for id, place in places.items() if id not in set(slot.excluded)]
            for slot in request.slots
        ]
        seats = Seats(allowed, [places[slot.baseline] for slot in request.slots])
        plays = []
        for at, slot in enumerate(request.slots):
            play = self._play(
                request,
                f"{event}/{slot.id}",
                seats.eligible(at),
                places[slot.baseline],
                slot,
                published,
                configuration,
            )
            seats.take(at, play.chosen)
            plays.append(play)
        return plays

    def _play(
        self,
        request: RankRequest,
        seed: str,
        eligible: list[int],
        baseline: int,
        slot: Slot | None,
        published: Published,
        configuration: ServiceConfiguration,
    ) -> Play:
        """Choose one of the eligible actions."""
        own: Features = [] if slot is None else slot.features
        actions = [request.actions[place] for place in eligible]
        contexts = published.model.contexts(
            [*request.context, *own],
            [action.features for action in actions],
            [action.id for action in actions],
        )
        place, indices, probabilities = published.bandit.weigh(
            contexts, seed, configuration.exploration
        )
        if probabilities is None:  # no exploration, and a policy whose index is not random
            probabilities = frequencies(indices[None])
        chosen, preferred = eligible[place], None
        if configuration.learning_mode is not LearningMode.ONLINE:
            shown = baseline if baseline in eligible else eligible[0]
            preferred = eligible[int(np.argmax(probabilities))]
            chosen, probabilities = shown, _certain(eligible.index(shown), len(eligible))
        return Play(
            eligible=eligible,
            probabilities=probabilities.tolist(),
            chosen=chosen,
            slot="" if slot is None else slot.id,
            features=own,
            baseline=baseline,
            preferred=preferred,
        )


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


def _ranking(actions: Sequence[Offer], play: Play) -> list[RankedAction]:
    """Return the chosen action, then the others by their probability; what is not eligible has 0."""
    chances = [0.0] * len(actions)
    for place, chance in zip(play.eligible, play.probabilities, strict=True):
        chances[place] = chance
    order = sorted(range(len(actions)), key=chances.__getitem__, reverse=True)
    order.remove(play.chosen)
    return [RankedAction(actions[place].id, chances[place]) for place in [play.chosen, *order]]


def _certain(place: int, n: int) -> Probabilities:
    """Return probabilities of which one is 1."""
    chances = np.zeros(n)
    chances[place] = 1.0
    return chances


def _digest(request: object) -> str:
    """Return a hash of all that a request says."""
    return hashlib.blake2b(msgspec.json.encode(request), digest_size=16).hexdigest()


def _reward_key(key: str | None) -> str | None:
    return None if key is None else f"reward:{key}"
