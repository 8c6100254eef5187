"""Which actions are chosen most, of any number of them, and what they earn, in bounded space."""

from itertools import islice

import msgspec

from rbmle.service.statistics.lift import RewardSums

COUNTERS = 256


class Counter(msgspec.Struct):
    """How often an action was chosen, and what it earned while it has this counter."""

    count: int = 0
    excess: int = 0  # the count may be too large by so much, and is never too small
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)


class Traffic(msgspec.Struct):
    """Counts of the most frequent actions.

    Space-saving (Metwally, Agrawal and El Abbadi 2005): with all counters in use, a new action takes
    over the smallest one with its count. Whatever is chosen in more than 1/256 of all plays is in it,
    and up to 256 actions are counted exactly.
    """

    total: int = 0
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)

    def add(self, id: str) -> None:
        """Count a choice; of equal counters the one that is in use longest is taken over."""
        self.total += 1
        counter = self.counters.get(id)
        if counter is None:
            counter = self.counters[id] = Counter() if self._has_space else self._taken_over()
        counter.count += 1

    def settle(self, id: str, reward: float) -> None:
        """Count a final reward, if the action is one of those that are counted."""
        counter = self.counters.get(id)
        if counter is not None:
            counter.rewards.add(reward)

    @property
    def _has_space(self) -> bool:
        return len(self.counters) < COUNTERS

    def _taken_over(self) -> Counter:
        counts = [counter.count for counter in self.counters.values()]
        count = min(counts)
        del self.counters[next(islice(self.counters, counts.index(count), None))]
        return Counter(count=count, excess=count)
