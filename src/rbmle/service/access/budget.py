"""How much work each key may ask for: a bucket for each, which fills at a steady rate."""

import math
from dataclasses import dataclass, field

WORK_PER_SECOND = 2_500_000  # products of features, of some 100 ns each: a quarter of a core
_MOST_KEYS = 1_000  # that are remembered; more is all that were ever rotated


@dataclass(slots=True)
class WorkBudget:
    """Allow each key some work in a second, and as much at once; 0 allows all.

    A call may begin while anything is left, and what it takes beyond that is owed. So the largest call
    is possible with any budget. Not for several threads.
    """

    per_second: float = WORK_PER_SECOND
    _left: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not 0 <= self.per_second < math.inf:
            raise ValueError(f"`work_per_second` must be 0 or more, got {self.per_second}")

    def charge(self, key: str, work: float, now: float) -> int:
        """Take work from what a key has left, and return 0; or return after how many seconds to try again."""
        if self.per_second == 0:
            return 0
        left, then = self._left.get(key, (self.per_second, now))
        left = min(self.per_second, left + (now - then) * self.per_second)
        if left <= 0:
            return max(1, math.ceil(-left / self.per_second))
        if len(self._left) >= _MOST_KEYS:
            self._left.clear()
        self._left[key] = (left - work, now)
        return 0
