"""Which actions are chosen most, of any number of them, and what they earn, in bounded space."""

from itertools import islice

import msgspec

from rbmle.service.statistics.lift import RewardSums

COUNTERS = 256


class Counter(msgspec.Struct, array_like=True):
    """How often an action was chosen, and what it earned while it has this counter."""

    count: int = 0
    excess: int = 0  # the count may be too large by so much, and is never too small
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)

    def merged(self, later: "Counter") -> "Counter":
        """Return both together."""
        return Counter(
            self.count + later.count,
            self.excess + later.excess,
            self.rewards.merged(later.rewards),
        )


class Traffic(msgspec.Struct, array_like=True):
    """Counts of the most frequent actions.

    Space-saving (Metwally, Agrawal and El Abbadi 2005): with all counters in use, a new action takes
    over the smallest one with its count. Whatever is chosen in more than 1/256 of all plays is in it,
    and up to 256 actions are counted exactly. With another limit than 256, the same holds for that.
    """

    total: int = 0
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)
    limit: int = COUNTERS

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

    def merged(self, later: "Traffic") -> "Traffic":
        """Return both together, with the same promise (Agarwal et al., Mergeable summaries, 2012).

        An action that has no counter in one of them may have been chosen as often as the smallest counter.
        """
        if not later.total:
            return self
        unseen, unseen_later = self._most_unseen, later._most_unseen
        counters = {
            id: counter.merged(later.counters.get(id) or Counter(unseen_later, unseen_later))
            for id, counter in self.counters.items()
        }
        for id, counter in later.counters.items():
            if id not in counters:
                counters[id] = Counter(unseen, unseen).merged(counter)
        if len(counters) > self.limit:
            largest = sorted(counters.items(), key=lambda item: -item[1].count)
            counters = dict(largest[: self.limit])
        return Traffic(self.total + later.total, counters, self.limit)

    def most(self, n: int) -> list[tuple[str, Counter]]:
        """Return the n actions that were chosen most, the most frequent first."""
        return sorted(self.counters.items(), key=lambda item: (-item[1].count, item[0]))[:n]

    @property
    def _most_unseen(self) -> int:
        """Return how often an action without a counter may have been chosen."""
        return 0 if self._has_space else min(counter.count for counter in self.counters.values())

    @property
    def _has_space(self) -> bool:
        return len(self.counters) < self.limit

    def _taken_over(self) -> Counter:
        counts = [counter.count for counter in self.counters.values()]
        count = min(counts)
        del self.counters[next(islice(self.counters, counts.index(count), None))]
        return Counter(count=count, excess=count)
