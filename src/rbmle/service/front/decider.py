"""Decisions and rewards: choices by the published model, answers, rows for the log, and repeated requests."""

import hashlib
import itertools
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from rbmle.core.choosing import shares
from rbmle.core.errors import RBMLEError
from rbmle.core.randomness import Purpose, uniform
from rbmle.core.types import Chosen
from rbmle.features.json_rows import Offered
from rbmle.service.front.requests import (
    ONLY_SLOT,
    Action,
    ActivateRequest,
    RankAnswer,
    RankedAction,
    RankRequest,
    RequestError,
    RewardRequest,
    Slot,
    SlotAnswer,
)
from rbmle.service.log.base import Log, Row
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    CLOCK,
    EVALUATIONS,
    NO_FEATURES,
    OPERATOR,
    RETENTION,
    Activated,
    Assignment,
    Decided,
    EvaluationAsked,
    EvaluationDeleted,
    Guarded,
    GuardRule,
    LogCleared,
    OfferedAction,
    Play,
    PromotionAsked,
    Record,
    Rewarded,
    Ticked,
    pack_features,
    row_of,
)
from rbmle.service.log.writer import Writer
from rbmle.service.model.private import FeatureHasher
from rbmle.service.model.published import Published
from rbmle.service.model.settings import offer_of
from rbmle.service.settings import HoldoutPlay, LearningMode, ServiceConfiguration

_EVENTS = uuid.UUID("6f0d2a0e-7c0b-4d4e-9a55-2f1d0b8f3c11")  # namespace of ids made from keys


class ConflictError(RBMLEError):
    """A request whose idempotency key or event id belongs to a different request."""


class InFlightError(RBMLEError):
    """A repeated request whose first copy is still being stored."""


class Draft(NamedTuple):
    """The answer to a rank request, which holds as soon as its row is stored."""

    answer: RankAnswer
    row: Row


class Decider:
    """Decides with the published model, and makes the rows that must be stored before the answer is sent."""

    def __init__(
        self,
        log: Log,
        writer: Writer,
        published: Callable[[], Published],
        has_slots: Callable[[], bool],
        private: FeatureHasher | None = None,
    ) -> None:
        """Create it; `has_slots` says whether any front end has decided an event with slots.

        The values of `private` features are hashed before anything else is done with a request.
        """
        self._private = private
        self.slots = EventSlots(log, has_slots)
        self._log = log
        self._writer = writer
        self._published = published
        self._make_id = _id_source()
        self._front = uuid.uuid4().hex[:12]  # this front end, in conservative mode
        self._costly = 0  # plays in which something else than the baseline was proposed

    @property
    def configuration(self) -> ServiceConfiguration:
        """The configuration that decisions follow."""
        return self._published().configuration

    def draft(self, requests: Sequence[tuple[RankRequest, str | None, bytes]]) -> list[Draft]:
        """Return the answers to rank requests, each with its idempotency key and its body; raise FeatureError.

        Requests with the same event id are one event, as are those without one that have the same key.
        """
        published = self._published()
        events = [self._event_of(request, key) for request, key, _ in requests]
        ranks = [self._hide(request) for request, _, _ in requests]
        assignments = assign_units(events, ranks, published.configuration)
        plays = choose_plays(events, ranks, published, assignments)
        guarded = self._guard(events, ranks, plays, assignments, published)
        for event, request in zip(events, ranks, strict=True):
            if request.slots:
                self.slots.remember(event, [slot.id for slot in request.slots])
        digests = [self._digest_of(body) for _, _, body in requests]
        return [
            _draft(event, request, chosen, digest, published, assignment, guard)
            for event, request, digest, chosen, assignment, guard in zip(
                events, ranks, digests, plays, assignments, guarded, strict=True
            )
        ]

    def _guard(
        self,
        events: Sequence[str],
        requests: Sequence[RankRequest],
        plays: list[list[Play]],
        assignments: Sequence[Assignment | None],
        published: Published,
    ) -> Sequence[Guarded | None]:
        """Keep plays within the grant of conservative mode, and return how each event was decided.

        Events with slots, or that may not be shown, get their baselines.
        """
        configuration = published.configuration
        if not configuration.conservative or configuration.learning_mode is not LearningMode.ONLINE:
            return [None] * len(requests)
        rule = GuardRule(
            tolerance=configuration.conservative,
            error=configuration.conservative_error,
            low=configuration.lowest_reward,
            high=configuration.highest_reward,
        )
        grant = published.grant
        if grant is not None and grant.rule != rule:
            grant = None
        seed, guarded = published.bandit.seed, list[Guarded | None]()
        for place, (event, request) in enumerate(zip(events, requests, strict=True)):
            assignment = assignments[place]
            if assignment is not None and assignment.is_held:
                guarded.append(None)
                continue
            if request.slots or request.deferred:
                plays[place] = _play_held(event, request, _BASELINE, seed)
                guarded.append(Guarded(rule=rule, front=self._front, number=self._costly))
                continue
            (proposal,) = plays[place]
            share = 1.0 if grant is None else grant.share(self._front, self._costly)
            guard = Guarded(
                rule=rule,
                front=self._front,
                number=self._costly,
                share=share,
                proposed=proposal.chosen,
            )
            if guard.is_costly(proposal):
                self._costly += 1
                guard = msgspec.structs.replace(guard, number=self._costly)
            coin = uniform(seed, Purpose.CHOOSE, f"{event}/baseline")
            plays[place] = [_mix(proposal, share, is_baseline=coin < share)]
            guarded.append(guard)
        return guarded

    def repeat(self, event: str, request: RankRequest, body: bytes) -> RankAnswer:
        """Return the stored answer of an event; raise ConflictError if it was for a different request."""
        stored = self._log.of_request(f"rank:{event}")
        if stored is None:
            raise InFlightError(f"event {event!r} is being decided; ask again")
        decided = msgspec.json.decode(stored.row.payload, type=Decided)
        slots = [slot.id for slot in request.slots] or [ONLY_SLOT]
        is_same = decided.digest in (self._digest_of(body), content_digest_of(request))
        if not is_same or [play.slot for play in decided.plays] != slots:
            raise ConflictError(
                f"event {event!r} was ranked before, with other actions or features; use a new event id"
            )
        return answer_of(event, decided)

    def reward_row(self, request: RewardRequest, key: str | None) -> Row:
        """Return the row of a reward."""
        return _row(request.event, _reward_key(key), Rewarded(values=request.values))

    def check_rewarded(self, request: RewardRequest, key: str | None) -> None:
        """Raise ConflictError if a different reward was stored with this key."""
        stored = self._log.of_request(_reward_key(key) or "")
        if stored is None:
            raise InFlightError("a reward with this key is being written; send it again")
        rewarded = msgspec.json.decode(stored.row.payload, type=Rewarded)
        if (stored.row.event, rewarded.values) != (request.event, request.values):
            raise ConflictError(
                f"the key {key!r} was used before, for another reward; use a new key for each reward"
            )

    def activate_row(self, request: ActivateRequest) -> Row:
        """Return the row of an activation; the log stores it once."""
        return _row(request.event, f"activate:{request.event}", Activated())

    def append(self, record: Record, request: str | None = None) -> "Future[int]":
        """Store a record that no client sent; one with a request is stored once."""
        match record:
            case Ticked():
                event = CLOCK
            case EvaluationAsked() | EvaluationDeleted() | PromotionAsked():
                event = EVALUATIONS
            case LogCleared():
                event = RETENTION
            case _:
                event = OPERATOR
        return self._writer.submit([_row(event, request, record)])

    def _hide(self, request: RankRequest) -> RankRequest:
        """Return a request without the values of private features; raise FeatureError if it has bad JSON."""
        if self._private is None:
            return request
        hide, unit = self._private.hide, request.unit
        return msgspec.structs.replace(
            request,
            unit=None if unit is None else self._private.hash("unit", unit),
            context=hide(request.context),
            actions=[
                msgspec.structs.replace(action, features=hide(action.features))
                for action in request.actions
            ],
            slots=[
                msgspec.structs.replace(slot, features=hide(slot.features))
                for slot in request.slots
            ],
        )

    def _digest_of(self, body: bytes) -> str:
        return digest_of(body) if self._private is None else self._private.digest(body)

    def _event_of(self, request: RankRequest, key: str | None) -> str:
        if request.event is not None:
            return request.event
        return self._make_id() if key is None else str(uuid.uuid5(_EVENTS, key))


class EventSlots:
    """Checks rewards against the slots of their event, which are in a cache or in the log."""

    REMEMBERED = 10_000  # events with slots

    def __init__(self, log: Log, are_used: Callable[[], bool]) -> None:
        """Create it; `are_used` says whether any front end has decided an event with slots."""
        self._log = log
        self._used_elsewhere = are_used
        self._are_used = False
        self._slots: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def remember(self, event: str, slots: Sequence[str]) -> None:
        """Remember the slots of an event that has some."""
        self._are_used = True
        self._slots[event] = tuple(slots)
        while len(self._slots) > self.REMEMBERED:
            self._slots.popitem(last=False)

    def may_mismatch(self, request: RewardRequest) -> bool:
        """Return whether `check` could refuse a reward; False for one value while no event has slots.

        Nearly all rewards are like that, and reading the log takes 30 µs, or a round trip to the database.
        """
        self._are_used = self._are_used or self._used_elsewhere()
        return ONLY_SLOT not in request.values or self._are_used

    def check(self, request: RewardRequest) -> None:
        """Raise RequestError if the event is known and has other slots; this may read the log."""
        slots = self._slots.get(request.event)
        if slots is None:
            slots = self._read(request.event)
        if slots is None:
            return
        names = ", ".join(map(repr, slots))
        if not slots and ONLY_SLOT not in request.values:
            raise RequestError(
                ("slots",),
                f'event {request.event!r} has no slots; send one value, as in {{"value": 1}}',
            )
        if slots and ONLY_SLOT in request.values:
            raise RequestError(
                ("value",),
                f"event {request.event!r} has the slots {names}; send a value for each slot, in `slots`",
            )
        for slot in request.values:
            if slots and slot not in slots:
                raise RequestError(
                    ("slots", slot), f"event {request.event!r} has no slot {slot!r}; it has {names}"
                )

    def _read(self, event: str) -> tuple[str, ...] | None:
        """Return the slots of an event in the log; None if the log does not have the event."""
        for stored in self._log.of_event(event):
            if stored.row.kind == "decided":
                decided = msgspec.json.decode(stored.row.payload, type=Decided)
                return tuple(play.slot for play in decided.plays if play.slot != ONLY_SLOT)
        return None


_BASELINE = Assignment(share=1.0, unit="", is_held=True)


def _mix(proposal: Play, share: float, *, is_baseline: bool) -> Play:
    """Return a play in which the baseline has a share whatever the policy proposes; probabilities are exact."""
    place = proposal.eligible.index(proposal.baseline)
    probabilities = [(1 - share) * chance for chance in proposal.probabilities]
    probabilities[place] += share
    chosen = proposal.baseline if is_baseline else proposal.chosen
    return msgspec.structs.replace(proposal, probabilities=probabilities, chosen=chosen)


def assign_units(
    events: Sequence[str], requests: Sequence[RankRequest], configuration: ServiceConfiguration
) -> Sequence[Assignment | None]:
    """Return whether the unit of each request is held out; None if there is no holdout now."""
    if not configuration.holdout or configuration.learning_mode is not LearningMode.ONLINE:
        return [None] * len(requests)
    share, play = configuration.holdout, configuration.holdout_play.value
    return [
        Assignment.of(event if request.unit is None else request.unit, share, play)
        for event, request in zip(events, requests, strict=True)
    ]


def choose_plays(
    events: Sequence[str],
    requests: Sequence[RankRequest],
    published: Published,
    assignments: Sequence[Assignment | None] = (),
) -> list[list[Play]]:
    """Return the plays of each request, one for each slot; raise FeatureError.

    Requests without slots are decided together, with the same result as one by one. Those of units that are
    held out do not ask the model.
    """
    plays: list[list[Play]] = [[] for _ in requests]
    held = {
        place: assignment
        for place, assignment in enumerate(assignments)
        if assignment is not None and assignment.is_held
    }
    for place, assignment in held.items():
        plays[place] = _play_held(events[place], requests[place], assignment, published.bandit.seed)
    simple = [
        place for place, request in enumerate(requests) if not request.slots and place not in held
    ]
    eligible = [_find_eligible(requests[place]) for place in simple]
    offers = [
        _offer(requests[place], places) for place, places in zip(simple, eligible, strict=True)
    ]
    choices = _weigh([events[place] for place in simple], offers, published)
    for place, places, chosen in zip(simple, eligible, choices, strict=True):
        plays[place] = [_play(places, chosen, published.configuration)]
    for place, request in enumerate(requests):
        if request.slots and place not in held:
            plays[place] = _fill_slots(events[place], request, published)
    return plays


def _play_held(event: str, request: RankRequest, assignment: Assignment, seed: int) -> list[Play]:
    """Return what a unit that is held out is shown: the baseline, or each action equally often."""

    def play(eligible: list[int], baseline: int, slot: Slot | None) -> Play:
        probabilities = [1 / len(eligible)] * len(eligible)
        chosen = baseline
        if assignment.play == HoldoutPlay.UNIFORM:
            name = event if slot is None else f"{event}/{slot.id}"
            chosen = eligible[int(uniform(seed, Purpose.CHOOSE, name) * len(eligible))]
        else:
            probabilities = [float(place == baseline) for place in eligible]
        return Play(
            eligible=eligible,
            probabilities=probabilities,
            chosen=chosen,
            slot=ONLY_SLOT if slot is None else slot.id,
            features=NO_FEATURES if slot is None else slot.features,
            baseline=baseline,
        )

    if request.slots:
        return _plays_of_slots(request, play)
    eligible = _find_eligible(request)
    return [play(eligible, eligible[0], None)]


def _find_eligible(request: RankRequest) -> list[int]:
    excluded = set(request.excluded)
    return [place for place, action in enumerate(request.actions) if action.id not in excluded]


def _offer(request: RankRequest, eligible: Sequence[int], slot: Slot | None = None) -> Offered:
    actions = [request.actions[place] for place in eligible]
    return offer_of(request.context, NO_FEATURES if slot is None else slot.features, actions)


def _weigh(seeds: Sequence[str], offers: Sequence[Offered], published: Published) -> list[Chosen]:
    """Choose one action of each offer; a seed fixes the random numbers of its choice."""
    if not offers:
        return []
    bandit, floor = published.bandit, published.configuration.exploration
    contexts = published.model.contexts(offers, bandit)
    sharpness = published.model.sharpness_of(bandit) if floor > 0 else 0.0  # 0: do not explore
    return bandit.choose_many(contexts, [len(o.ids) for o in offers], seeds, floor, sharpness)


def _play(
    eligible: list[int],
    chosen: Chosen,
    configuration: ServiceConfiguration,
    baseline: int | None = None,
    slot: Slot | None = None,
) -> Play:
    """Return what is shown: the choice, or in the other learning modes the baseline."""
    place, indices, probabilities = chosen
    if probabilities is None:  # no exploration, and a policy without probabilities
        (probabilities,) = shares(indices[None])
    shown, preferred = eligible[place], None
    baseline = eligible[0] if baseline is None else baseline
    if configuration.learning_mode is not LearningMode.ONLINE:
        shown = baseline if baseline in eligible else eligible[0]
        preferred = eligible[int(np.argmax(probabilities))]
        probabilities = np.zeros(len(eligible))
        probabilities[eligible.index(shown)] = 1.0
    return Play(
        eligible=eligible,
        probabilities=probabilities.tolist(),
        chosen=shown,
        slot=ONLY_SLOT if slot is None else slot.id,
        features=NO_FEATURES if slot is None else slot.features,
        baseline=baseline,
        preferred=preferred,
    )


def _fill_slots(event: str, request: RankRequest, published: Published) -> list[Play]:
    """Return the plays of all slots, by the model."""

    def play(eligible: list[int], baseline: int, slot: Slot) -> Play:
        offers = [_offer(request, eligible, slot)]
        (chosen,) = _weigh([f"{event}/{slot.id}"], offers, published)
        return _play(eligible, chosen, published.configuration, baseline, slot)

    return _plays_of_slots(request, play)


def _plays_of_slots(
    request: RankRequest, play: Callable[[list[int], int, Slot], Play]
) -> list[Play]:
    """Return the play of each slot, where each action is shown once."""
    places = {action.id: place for place, action in enumerate(request.actions)}
    allowed = [
        [place for id, place in places.items() if id not in slot.excluded] for slot in request.slots
    ]
    baselines = [places[slot.baseline] for slot in request.slots]
    assignment = SlotAssignment(allowed, baselines)
    plays = []
    for at, slot in enumerate(request.slots):
        plays.append(play(assignment.eligible(at), baselines[at], slot))
        assignment.take(at, plays[-1].chosen)
    return plays


class SlotAssignment:
    """Fills slots in order, and keeps a plan with an action for each slot that is left.

    The plan is a bipartite matching of slots with actions. It starts with the baselines, which are distinct
    and allowed. When a choice takes an action of a later slot, an augmenting path repairs the plan.
    """

    def __init__(self, allowed: Sequence[Sequence[int]], baselines: Sequence[int]) -> None:
        self._allowed = allowed  # by slot, the baseline included
        self._plan = dict(enumerate(baselines))  # for the slots that are left
        self._taken: set[int] = set()

    def eligible(self, slot: int) -> list[int]:
        """Return the actions that a slot may show now, in their order."""
        return [
            action for action in self._allowed[slot] if self._plan_without(slot, action) is not None
        ]

    def take(self, slot: int, action: int) -> None:
        """Show an eligible action in a slot."""
        plan = self._plan_without(slot, action)
        assert plan is not None  # it is eligible
        self._plan = plan
        self._taken.add(action)

    def _plan_without(self, slot: int, action: int) -> dict[int, int] | None:
        """Return a plan for the other slots that does not use an action; None if there is no such plan."""
        if action in self._taken:
            return None
        plan = {other: planned for other, planned in self._plan.items() if other != slot}
        displaced = next((other for other, planned in plan.items() if planned == action), None)
        if displaced is not None and not self._place(displaced, plan, {*self._taken, action}):
            return None
        return plan

    def _place(self, slot: int, plan: dict[int, int], tried: set[int]) -> bool:
        """Find an action for a slot, and move other slots to other actions if that helps."""
        owner = {planned: other for other, planned in plan.items() if other != slot}
        for action in self._allowed[slot]:
            if action in tried:
                continue
            tried.add(action)
            other = owner.get(action)
            if other is None or self._place(other, plan, tried):
                plan[slot] = action
                return True
        return False


def rehearse(published: Published) -> None:
    """Decide a few made-up requests with a model, so that all code they need is loaded and compiled."""
    for exploration in {0.0, REHEARSED_EXPLORATION, published.configuration.exploration}:
        configuration = replace(published.configuration, exploration=exploration)
        for requests in (_REHEARSED, _REHEARSED[:1]):
            events = [str(place) for place in range(len(requests))]
            variant = replace(published, configuration=configuration)
            plays = choose_plays(events, requests, variant)
            for event, request, chosen in zip(events, requests, plays, strict=True):
                _draft(event, request, chosen, "", variant)


def _made_up_requests() -> list[RankRequest]:
    """Return requests with features of every kind, with slots and without."""
    context = pack_features(
        [{"user": {"age": 30, "place": "north"}, "is_new": True, "tags": ["a", "b"]}]
    )
    actions = [Action(id, pack_features([{"price": 0.5, "kind": id}])) for id in ("a", "b", "c")]
    slots = [Slot(id="first", baseline="a"), Slot(id="second", baseline="b", features=context)]
    return [
        RankRequest(context=context, actions=actions),
        RankRequest(context=context, actions=actions, excluded=["a"]),
        RankRequest(context=context, actions=actions, slots=slots),
    ]


REHEARSED_EXPLORATION = 0.1
_REHEARSED = _made_up_requests()


def digest_of(body: bytes) -> str:
    """Return the digest by which a repeated request is recognised."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def content_digest_of(request: RankRequest) -> str:
    """Return the digest that logs of earlier versions have: of the decoded request, encoded again."""
    slots = [
        {"id": s.id, "baseline": s.baseline, "features": s.features, "excluded": s.excluded}
        for s in request.slots
    ]
    content = {
        "event": request.event,
        "context": request.context,
        "actions": [{"id": a.id, "features": a.features} for a in request.actions],
        "excluded": request.excluded,
        "deferred": request.deferred,
        "slots": slots,
    }
    return digest_of(msgspec.json.encode(content))


def _draft(
    event: str,
    request: RankRequest,
    plays: list[Play],
    digest: str,
    published: Published,
    assignment: Assignment | None = None,
    guarded: Guarded | None = None,
) -> Draft:
    decided = Decided(
        context=request.context,
        actions=request.actions,
        plays=plays,
        digest=digest,
        learned=published.bandit.round,
        deferred=request.deferred,
        mode=published.configuration.learning_mode.value,
        assignment=assignment,
        guarded=guarded,
    )
    return Draft(answer_of(event, decided), _row(event, f"rank:{event}", decided))


def _row(event: str, request: str | None, record: Record) -> Row:
    return row_of(record, event, clock.now(), request)


def _id_source() -> Callable[[], str]:
    """Return a function that makes ids which no other source makes."""
    prefix, counter = uuid.uuid4().hex[:20], itertools.count()
    return lambda: f"{prefix}{next(counter):012x}"


def answer_of(event: str, decided: Decided) -> RankAnswer:
    """Return the answer to a rank request, according to its record."""
    answers = [
        SlotAnswer(
            id=play.slot,
            chosen=decided.actions[play.chosen].id,
            ranking=_ranking(decided.actions, play),
        )
        for play in decided.plays
    ]
    held = decided.is_held
    if answers[0].id != ONLY_SLOT:
        return RankAnswer(event=event, slots=answers, holdout=held)
    only = answers[0]
    return RankAnswer(event=event, chosen=only.chosen, ranking=only.ranking, holdout=held)


def _ranking(actions: Sequence[OfferedAction], play: Play) -> list[RankedAction]:
    """Return the chosen action, then the others by probability, which is 0 for those not eligible."""
    chances = play.probabilities
    if len(play.eligible) < len(actions):
        chances = [0.0] * len(actions)
        for place, chance in zip(play.eligible, play.probabilities, strict=True):
            chances[place] = chance
    order = sorted(range(len(actions)), key=chances.__getitem__, reverse=True)
    order.remove(play.chosen)
    return [RankedAction(actions[place].id, chances[place]) for place in [play.chosen, *order]]


def _reward_key(key: str | None) -> str | None:
    return None if key is None else f"reward:{key}"
