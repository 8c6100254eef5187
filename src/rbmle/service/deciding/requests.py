"""What the service is asked and what it answers, whichever dialect is spoken."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct

from rbmle.core.errors import RBMLEError
from rbmle.service.features.limits import LIMITS, LimitError, check_id
from rbmle.service.log.records import NO_FEATURES, OfferedAction

MOST_ACTIONS = LIMITS.actions
MOST_SLOTS = LIMITS.slots
LONGEST_ID = LIMITS.id
ONLY_SLOT = ""  # the slot of an event that has one only

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Reward = Annotated[float, Meta(ge=-1.0, le=1.0)]


class RequestError(RBMLEError, ValueError):
    """A request that cannot be meant; `target` is the way to the part that is wrong."""

    def __init__(self, target: tuple[str | int, ...], message: str) -> None:
        self.target = target
        super().__init__(message)


class Action(OfferedAction, frozen=True):
    """What may be chosen."""

    id: Id
    features: Raw  # JSON: an array of Features, as it was sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place for one action."""

    id: str
    baseline: str  # the action that would be shown without us
    features: Raw = field(default_factory=lambda: NO_FEATURES)
    excluded: list[str] = field(default_factory=list)


class RankRequest(Struct, frozen=True, kw_only=True):
    """Which action is best? Where there are slots, which for each of them?"""

    event: str | None = None  # None: the service gives it an id
    context: Raw = NO_FEATURES
    actions: list[Action]
    excluded: list[str] = []
    deferred: bool = False  # not to be learned from before it is activated
    slots: list[Slot] = []  # none: one action is chosen

    def __post_init__(self) -> None:
        """Raise a RequestError that names the first part that cannot be meant."""
        if self.event is not None:
            check_event(self.event)
        if not 1 <= len(self.actions) <= MOST_ACTIONS:
            raise RequestError(
                ("actions",),
                f"there are {len(self.actions)} actions; send from 1 to {MOST_ACTIONS}",
            )
        ids = _distinct([action.id for action in self.actions], "actions")
        if self.excluded and ids.issubset(self.excluded):
            raise RequestError(("excluded",), "all actions are excluded; leave at least one")
        if self.slots:
            _check_slots(self.slots, ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRequest:
    """What an event was worth, by slot."""

    event: str
    values: dict[str, float]  # an event without slots has ONLY_SLOT

    def __post_init__(self) -> None:
        """Raise a RequestError if no event can have these rewards."""
        check_event(self.event)
        if not self.values:
            raise RequestError(("values",), "there is no reward; send at least one")
        for slot, value in self.values.items():
            if not -1.0 <= value <= 1.0:
                raise RequestError(
                    ("values", slot), f"the reward is {value}; it must be from -1 to 1"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivateRequest:
    """A deferred event was shown."""

    event: str

    def __post_init__(self) -> None:
        """Raise a RequestError if no event can have this id."""
        check_event(self.event)


class RankedAction(Struct, frozen=True):
    """An action and the probability with which it was to be chosen."""

    id: str
    probability: float


class SlotAnswer(Struct, frozen=True, kw_only=True):
    """What was chosen for one slot."""

    id: str
    chosen: str
    ranking: Sequence[RankedAction]


class RankAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was chosen, with the probability of each action; with slots, for each slot."""

    event: str
    chosen: str = ""  # empty where there are slots
    ranking: Sequence[RankedAction] = ()  # empty where there are slots
    slots: Sequence[SlotAnswer] = ()


class EventAnswer(Struct, frozen=True, kw_only=True):
    """What is known of an event; rewards by slot, under the empty name if it has none.

    Until it is closed these are the rewards so far, and at the deadline it is settled at the latest.
    """

    answer: RankAnswer
    time: datetime  # of the decision
    is_active: bool  # not deferred, or activated since
    is_closed: bool  # settled, or let go: no reward counts any more
    rewards: dict[str, float]  # that were joined
    deadline: datetime | None = None  # None: it is closed


class StatusAnswer(Struct, frozen=True, kw_only=True):
    """How the service is; the backlog is what waits to be learned."""

    version: str
    records: int  # in the log
    learned: int  # records that the deciding model knows
    backlog: int  # records that wait to be learned
    observations: int  # that it has learned from


def check_event(event: str) -> None:
    """Raise a RequestError if no event can have this id."""
    _check_id(event, ("event",), "the event id")


def _check_id(id: str, target: tuple[str | int, ...], what: str) -> None:
    try:
        check_id(id, what)
    except LimitError as error:
        raise RequestError(target, str(error)) from None


def _distinct(ids: Sequence[str], where: str) -> set[str]:
    seen = set(ids)
    if (
        len(seen) == len(ids)
        and 1 <= len(min(ids, key=len))
        and len(max(ids, key=len)) <= LONGEST_ID
        and "".join(ids).isprintable()
    ):
        return seen
    seen = set()
    for place, id in enumerate(ids):
        _check_id(id, (where, place, "id"), "the id")
        if id in seen:
            raise RequestError(
                (where, place, "id"), f"{id!r} is given twice; ids must be different"
            )
        seen.add(id)
    return seen


def _check_slots(slots: Sequence[Slot], ids: set[str]) -> None:
    if len(slots) > min(MOST_SLOTS, len(ids)):
        raise RequestError(
            ("slots",),
            f"there are {len(slots)} slots for {len(ids)} actions; "
            f"send as many as there are actions at most, and no more than {MOST_SLOTS}",
        )
    _distinct([slot.id for slot in slots], "slots")
    baselines: set[str] = set()
    for place, slot in enumerate(slots):
        for at, id in enumerate(slot.excluded):
            if id not in ids:
                raise RequestError(
                    ("slots", place, "excluded", at),
                    f"{id!r} is excluded, but there is no such action",
                )
        problem = (
            "but there is no such action"
            if slot.baseline not in ids
            else "which is also the one of another slot"
            if slot.baseline in baselines
            else "which it excludes"
            if slot.baseline in slot.excluded
            else None
        )
        if problem is not None:
            raise RequestError(
                ("slots", place, "baseline"),
                f"the baseline of slot {slot.id!r} is {slot.baseline!r}, {problem}",
            )
        baselines.add(slot.baseline)
