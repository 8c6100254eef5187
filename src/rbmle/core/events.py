"""Events that the user of a bandit should know about: drift alarms."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

logger = logging.getLogger("rbmle.events")

KEPT = 1_000  # events
_is_logged = ContextVar("is_logged", default=True)

DRIFT = "drift"  # rewards stayed below what was expected; see docs/how-to/drift.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The model has forgotten what it knew.

    >>> print(Event(round=625, forgotten=625))
    drift alarm in round 625: 625 rounds were forgotten
    """

    kind: str = DRIFT
    round: int  # rewards learned by then, including the one that set off the alarm
    forgotten: int  # how many of them the model no longer knows
    time: int | None = None  # of that reward, as the caller of `learn_all` gave it

    def __str__(self) -> str:
        rounds = "1 round was" if self.forgotten == 1 else f"{self.forgotten:,} rounds were"
        return f"{self.kind} alarm in round {self.round:,}: {rounds} forgotten"

    def as_dict(self) -> dict[str, Any]:
        """Return the event as JSON can hold it."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Event":
        """Return the event that `as_dict` was called on."""
        return Event(**values)


@dataclass(frozen=True, slots=True)
class Events:
    """The newest events, and how many there were in all: a bandit may run indefinitely.

    >>> events = Events()
    >>> for round in (30, 55):
    ...     events = events.with_event(Event(round=round, forgotten=25))
    >>> len(events.newest), events.count, events.newest[-1].round
    (2, 2, 55)
    """

    newest: tuple[Event, ...] = ()
    count: int = 0

    def with_event(self, event: Event) -> "Events":
        """Return these events and one more, which is logged."""
        if _is_logged.get():
            logger.warning("%s", event)
        return Events((*self.newest, event)[-KEPT:], self.count + 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the events as JSON can hold them."""
        return {"newest": [event.as_dict() for event in self.newest], "count": self.count}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Events":
        """Return the events that `as_dict` was called on."""
        return Events(tuple(map(Event.from_dict, values["newest"])), values["count"])


def is_logged() -> bool:
    """Return whether events are logged here."""
    return _is_logged.get()


@contextmanager
def without_logging() -> Iterator[None]:
    """Suppress the logging of events for callers that report them otherwise, or do not need them."""
    before = _is_logged.set(False)
    try:
        yield
    finally:
        _is_logged.reset(before)
