"""How often the model is fitted: so many times a second of the log's own clock."""

from collections.abc import Sequence

import msgspec


class Budget(msgspec.Struct):
    """A bucket of fits that fills evenly and holds those of a second; it starts full.

    >>> budget = Budget()
    >>> budget.take(7, time=60_000, per_second=5)
    5
    >>> budget.take(7, time=60_400, per_second=5)
    2
    """

    time: int = 0  # milliseconds, when it was looked into last
    spent: int = 0  # thousandths of a fit that it lacked then
    prefers_joined: bool = True  # as in logs from before there was `settle`: a bias towards rewards

    def take(self, wanted: int, time: int, per_second: int) -> int:
        """Return how many of the wanted fits there are at a time."""
        elapsed = max(0, time - self.time)  # below 0 where the log's clock was corrected
        spent = max(0, self.spent - elapsed * per_second)
        taken = min(wanted, max(0, per_second - -(-spent // 1_000)))
        self.time, self.spent = time, spent + 1_000 * taken
        return taken

    def fitted(self, is_joined: Sequence[bool], time: int, per_second: int) -> list[bool]:
        """Return which of some observations are fitted at a time: the first, whatever they paid.

        >>> Budget(prefers_joined=False).fitted([False, False, True], time=0, per_second=2)
        [True, True, False]
        >>> Budget(prefers_joined=True).fitted([False, False, True], time=0, per_second=2)
        [True, False, True]
        """
        count, places = self.take(len(is_joined), time, per_second), range(len(is_joined))
        if not self.prefers_joined:
            return [place < count for place in places]
        first = set(sorted(places, key=lambda place: not is_joined[place])[:count])
        return [place in first for place in places]
