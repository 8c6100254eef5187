"""Which slots an event has, as far as that is known: for rewards that cannot count."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence

from rbmle.service.deciding.requests import ONLY_SLOT, RequestError, RewardRequest
from rbmle.service.log.base import Log
from rbmle.service.log.records import Decided, decoded

REMEMBERED = 10_000  # events with slots


class SlotsKnown:
    """The slots of events: the last that were decided here are remembered, others are in the log."""

    def __init__(self, log: Log, are_used: Callable[[], bool]) -> None:
        """Begin to remember; `are_used` says whether some front end has decided an event with slots."""
        self._log = log
        self._told = are_used
        self._are_used = False
        self._slots: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def remember(self, event: str, slots: Sequence[str]) -> None:
        """Remember the slots of an event; one without slots need not be."""
        self._are_used = True
        self._slots[event] = tuple(slots)
        while len(self._slots) > REMEMBERED:
            self._slots.popitem(last=False)

    def may_mismatch(self, request: RewardRequest) -> bool:
        """Return whether to check a reward: not one value where no event has slots.

        Nearly all rewards are such, and a look at the log takes 30 µs, or a trip to the server.
        """
        self._are_used = self._are_used or self._told()
        return ONLY_SLOT not in request.values or self._are_used

    def check(self, request: RewardRequest) -> None:
        """Raise RequestError if the event is known, and cannot have these rewards; this may read the log."""
        slots = self._slots.get(request.event)
        if slots is None:
            slots = self._stored(request.event)
        if slots is not None:
            _check(request, slots)

    def _stored(self, event: str) -> tuple[str, ...] | None:
        """Return the slots that the log knows, none for an event without any; None if it has no such event."""
        for stored in self._log.of_event(event):
            if stored.row.kind == "decided":
                decided = decoded("decided", stored.row.payload)
                assert isinstance(decided, Decided)
                return tuple(play.slot for play in decided.plays if play.slot != ONLY_SLOT)
        return None


def _check(request: RewardRequest, slots: Collection[str]) -> None:
    if not slots and ONLY_SLOT not in request.values:
        raise RequestError(
            ("slots",),
            f'event {request.event!r} has no slots; send one value, as in {{"value": 1}}',
        )
    names = ", ".join(map(repr, slots))
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
