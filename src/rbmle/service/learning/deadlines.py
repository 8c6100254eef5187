"""Which events wait until when: lists by deadline, for millions of events and few deadlines."""

import heapq
from collections.abc import Mapping

from rbmle.service.learning.events import Pending

STALE = 1_000  # events that wait no more, and may stay in the lists


class Deadlines:
    """The deadlines of what is pending, which its owner changes.

    An event that is settled stays listed until its deadline, or until there are many such.
    """

    def __init__(self, pending: Mapping[str, Pending]) -> None:
        """List what is pending."""
        self._pending = pending
        self._list_all()

    @property
    def first(self) -> int | None:
        """Return the next deadline; None if nothing waits."""
        return self._heap[0] if self._heap else None

    def add(self, event: str) -> None:
        """List an event that has become pending."""
        found = self._pending[event]
        known = self._lists.get(found.deadline)
        if known is None:
            known = self._lists[found.deadline] = (found.deadline, [])
            heapq.heappush(self._heap, found.deadline)
        found.deadline, events = known
        events.append(event)
        self.listed += 1

    def forget_stale(self) -> None:
        """List anew what is pending, if most of what is listed is not."""
        if self.listed > 2 * len(self._pending) + STALE:
            self._list_all()

    def over(self, time: int) -> list[str]:
        """Take off the events of the first deadline, if it is not after a time, in their order."""
        if not self._heap or self._heap[0] > time:
            return []
        deadline = heapq.heappop(self._heap)
        _, events = self._lists.pop(deadline)
        self.listed -= len(events)
        found = [(event, self._pending.get(event)) for event in dict.fromkeys(events)]
        waiting = [(p.seq, event) for event, p in found if p is not None and p.deadline == deadline]
        return [event for _, event in sorted(waiting)]

    def _list_all(self) -> None:
        # All events of a deadline have the very number that is beside them: millions need no own.
        self._lists: dict[int, tuple[int, list[str]]] = {}
        self._heap: list[int] = []
        self.listed = 0  # events
        for event in self._pending:
            self.add(event)
