"""Actions for slots: each is shown once, and no choice may leave a later slot without any."""

from collections.abc import Sequence


class SlotAssignment:
    """Slots that are filled in their order, with a plan that could fill the rest.

    The plan is a matching of the slots that are left with actions. It begins with the baselines,
    which are distinct and allowed, and is mended along an augmenting path where a choice takes an action
    of a later slot.
    """

    def __init__(self, allowed: Sequence[Sequence[int]], baselines: Sequence[int]) -> None:
        """Begin with the actions each slot may show, its baseline among them."""
        self._allowed = allowed
        self._plan = dict(enumerate(baselines))  # of each slot that is left
        self._taken: set[int] = set()

    def eligible(self, slot: int) -> list[int]:
        """Return the actions that a slot may show now, in their order."""
        return [action for action in self._allowed[slot] if self._mended(slot, action) is not None]

    def take(self, slot: int, action: int) -> None:
        """Show an eligible action in a slot."""
        plan = self._mended(slot, action)
        assert plan is not None  # it is eligible
        self._plan = plan
        self._taken.add(action)

    def _mended(self, slot: int, action: int) -> dict[int, int] | None:
        """Return a plan for all other slots that are left, if there is one without an action."""
        if action in self._taken:
            return None
        plan = {other: planned for other, planned in self._plan.items() if other != slot}
        homeless = next((other for other, planned in plan.items() if planned == action), None)
        if homeless is not None and not self._placed(homeless, plan, {*self._taken, action}):
            return None
        return plan

    def _placed(self, slot: int, plan: dict[int, int], tried: set[int]) -> bool:
        """Find an action for a slot, moving other slots where that helps."""
        owner = {planned: other for other, planned in plan.items() if other != slot}
        for action in self._allowed[slot]:
            if action in tried:
                continue
            tried.add(action)
            other = owner.get(action)
            if other is None or self._placed(other, plan, tried):
                plan[slot] = action
                return True
        return False
