"""Requests and answers of the service, the same for every dialect.

A rank request is decoded once, from the bytes of its body. Features stay the JSON that the client sent, from
here to the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct

from rbmle.core.errors import RBMLEError
from rbmle.service.log.records import NO_FEATURES, OfferedAction
from rbmle.service.model.limits import LIMITS, LimitError, check_id

MOST_ACTIONS = LIMITS.actions
MOST_SLOTS = LIMITS.slots
LONGEST_ID = LIMITS.id
ONLY_SLOT = ""  # the slot of an event without slots

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Reward = Annotated[float, Meta(ge=-1.0, le=1.0)]


class RequestError(RBMLEError):
    """An invalid request; `target` is the path to the invalid part.

    It is not a ValueError: msgspec would wrap a ValueError that is raised while it decodes.
    """

    def __init__(self, target: tuple[str | int, ...], message: str) -> None:
        self.target = target
        super().__init__(message)


class Action(OfferedAction, frozen=True, forbid_unknown_fields=True):
    """An action that may be chosen, with its features as a JSON array of objects."""

    id: Id
    features: Raw = NO_FEATURES


class Slot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place on a page that shows one action; the baseline is what it would show without the service."""

    id: Id
    baseline: Id
    features: Raw = NO_FEATURES
    excluded: list[Id] = []


class RankRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks which action is best, or which is best for each slot."""

    event: str | None = None  # None: the service makes up an id
    unit: str | None = (
        None  # what is in the holdout or not as a whole, such as a user; None: the event
    )
    context: Raw = NO_FEATURES
    actions: Sequence[Action]
    excluded: list[str] = []
    deferred: bool = False  # learned from only after it is activated
    slots: list[Slot] = []  # empty: choose one action

    def __post_init__(self) -> None:
        """Raise a RequestError that names the first invalid part."""
        if self.event is not None:
            check_event(self.event)
        if self.unit is not None:
            _check_id(self.unit, ("unit",), "the unit")
        if not 1 <= len(self.actions) <= MOST_ACTIONS:
            raise RequestError(
                ("actions",),
                f"there are {len(self.actions)} actions; send from 1 to {MOST_ACTIONS}",
            )
        ids = _distinct_ids([action.id for action in self.actions], "actions")
        if self.excluded and ids.issubset(self.excluded):
            raise RequestError(("excluded",), "all actions are excluded; leave at least one")
        if self.slots:
            _check_slots(self.slots, ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRequest:
    """The reward of an event, by slot."""

    event: str
    values: dict[str, float]  # under ONLY_SLOT for an event without slots

    def __post_init__(self) -> None:
        """Raise a RequestError for an invalid event id or reward."""
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
    """Says that a deferred event was shown."""

    event: str

    def __post_init__(self) -> None:
        check_event(self.event)


class RankedAction(Struct, frozen=True):
    """An action and the probability of choosing it."""

    id: str
    probability: float


class SlotAnswer(Struct, frozen=True, kw_only=True):
    """The choice for one slot."""

    id: str
    chosen: str
    ranking: Sequence[RankedAction]


class RankAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The chosen action and the probability of each; with slots, for each slot."""

    event: str
    chosen: str = ""  # empty if there are slots
    ranking: Sequence[RankedAction] = ()  # empty if there are slots
    slots: Sequence[SlotAnswer] = ()
    holdout: bool = False  # the unit belongs to the holdout


class EventAnswer(Struct, frozen=True, kw_only=True):
    """What the log knows of an event.

    Until the event is closed, `rewards` are those received so far; it is closed at its deadline at the latest.
    """

    answer: RankAnswer
    time: datetime  # of the decision
    is_active: bool  # not deferred, or activated since
    is_closed: bool  # settled or dropped: later rewards do not count
    rewards: dict[str, float]  # by slot; under ONLY_SLOT for an event without slots
    deadline: datetime | None = None  # None once it is closed


class StatusAnswer(Struct, frozen=True, kw_only=True):
    """The state of the service."""

    version: str
    records: int  # that were ever in the log
    learned: int  # records that the deciding model knows
    backlog: int  # records that are not learned yet
    observations: int  # that the model has learned from
    deleted: int = 0  # records up to this one are deleted, by retention
    erasures: int = 0  # how often records of events were erased
    oldest: datetime | None = None  # the time of the first record after those; None: unknown


def check_event(event: str) -> None:
    """Raise a RequestError unless this is a valid event id."""
    _check_id(event, ("event",), "the event id")


def _check_id(id: str, target: tuple[str | int, ...], what: str) -> None:
    try:
        check_id(id, what)
    except LimitError as error:
        raise RequestError(target, str(error)) from None


def _distinct_ids(ids: Sequence[str], field: str) -> set[str]:
    distinct = set(ids)
    if (  # nearly always: valid, without a look at each
        len(distinct) == len(ids)
        and 1 <= len(min(ids, key=len))
        and len(max(ids, key=len)) <= LONGEST_ID
        and "".join(ids).isprintable()
    ):
        return distinct
    distinct = set()
    for place, id in enumerate(ids):
        _check_id(id, (field, place, "id"), "the id")
        if id in distinct:
            raise RequestError(
                (field, place, "id"), f"{id!r} is given twice; ids must be different"
            )
        distinct.add(id)
    return distinct


def _check_slots(slots: Sequence[Slot], ids: set[str]) -> None:
    if len(slots) > min(MOST_SLOTS, len(ids)):
        raise RequestError(
            ("slots",),
            f"there are {len(slots)} slots for {len(ids)} actions; "
            f"send as many as there are actions at most, and no more than {MOST_SLOTS}",
        )
    _distinct_ids([slot.id for slot in slots], "slots")
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
            else "which is also the baseline of another slot"
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
