"""Sums over the plays of some time."""

import math
from itertools import islice
from typing import Any

import msgspec

from rbmle.evaluation.sums import WeightSums
from rbmle.service.log.records import Decided
from rbmle.service.statistics.estimates import Comparison, Weights, compare, probability
from rbmle.service.statistics.lift import LiftSums, Means, RewardSums, Sums

COUNTERS = 256

NOTHING = compare(WeightSums())
BINS = 20  # of the probabilities in (0, 1]
MOST_ACTIONS = 50  # that are named; the others are counted together
WINDOW_COUNTERS = 64  # of actions in a bucket


class Counter(Sums, array_like=True):
    """How often an action was chosen, and what it has earned since it got this counter."""

    count: int = 0
    excess: int = 0  # the count may be too large by so much, and is never too small
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)


class Traffic(msgspec.Struct, array_like=True):
    """Counts of the most frequent actions.

    Space-saving (Metwally, Agrawal and El Abbadi 2005): if all counters are in use, a new action takes over the
    smallest one with its count. With a limit of n counters, every action in more than 1/n of all plays has one,
    and up to n actions are counted exactly.
    """

    total: int = 0
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)
    limit: int = COUNTERS

    def add(self, id: str) -> None:
        self.total += 1
        counter = self.counters.get(id)
        if counter is None:
            counter = self.counters[id] = Counter() if self._has_space else self._take_over()
        counter.count += 1

    def settle(self, id: str, reward: float) -> None:
        """Count a final reward, if the action has a counter."""
        counter = self.counters.get(id)
        if counter is not None:
            counter.rewards.add(reward)

    def merged(self, later: "Traffic") -> "Traffic":
        """Return both together, with the same guarantee (Agarwal et al., Mergeable summaries, 2012).

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
        return sorted(self.counters.items(), key=lambda item: (-item[1].count, item[0]))[:n]

    @property
    def _most_unseen(self) -> int:
        """Return how often an action without a counter may have been chosen."""
        return 0 if self._has_space else min(counter.count for counter in self.counters.values())

    @property
    def _has_space(self) -> bool:
        return len(self.counters) < self.limit

    def _take_over(self) -> Counter:
        """Remove the smallest counter, of equal ones the oldest, and return one that begins with its count."""
        counts = [counter.count for counter in self.counters.values()]
        count = min(counts)
        del self.counters[next(islice(self.counters, counts.index(count), None))]
        return Counter(count=count, excess=count)


class ActionCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often an action was chosen, and what it earned."""

    id: str
    count: int
    excess: int  # the count may be too large by so much
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """What some plays earned, and what other policies would have; a copy that does not change."""

    decisions: int = 0  # events
    plays: int = 0  # slots of them
    settled: int = 0  # plays whose reward is final
    joined: int = 0  # of these, plays with a reward of their own, not the default
    played: Comparison = NOTHING  # the plays themselves: the plain average
    policy: Comparison = NOTHING  # the same, of plays that the policy decided
    policy_baseline: Comparison = NOTHING  # the baseline action, in the same plays
    baseline: Comparison = NOTHING  # the baseline action, in all plays
    uniform: Comparison = NOTHING
    over_baseline: LiftSums = msgspec.field(default_factory=LiftSums)  # of plays of the policy
    over_uniform: LiftSums = msgspec.field(default_factory=LiftSums)
    exploration_rate: float | None = None  # None: no play yet
    agreement: float | None = None  # of model and baseline; None: no play was compared
    # plays by the probability of what was chosen
    propensities: list[int] = msgspec.field(default_factory=lambda: [0] * BINS)
    actions: list[ActionCount] = []  # the most frequent first
    others: int = 0  # plays of actions that are not named


class References(msgspec.Struct):
    """The means so far that lifts over the baseline and over uniform play are measured from."""

    baseline: Means = msgspec.field(default_factory=Means)
    uniform: Means = msgspec.field(default_factory=Means)


class PropensityHistogram(msgspec.Struct, array_like=True):
    """Counts of plays by the probability of the chosen action."""

    bins: list[int] = msgspec.field(default_factory=lambda: [0] * BINS)

    def add(self, probability: float) -> None:
        """Count a play in the bin (i/20, (i + 1)/20] of its probability."""
        self.bins[min(max(math.ceil(probability * BINS) - 1, 0), BINS - 1)] += 1

    def merged(self, later: "PropensityHistogram") -> "PropensityHistogram":
        return PropensityHistogram([a + b for a, b in zip(self.bins, later.bins, strict=True)])


class Tally(Sums, array_like=True):
    """Sums over decisions and final rewards."""

    decisions: int = 0
    plays: int = 0
    joined: int = 0
    explored: int = 0  # plays of another action than the most probable one
    compared: int = 0  # plays of the baseline, where it is known what the model preferred
    agreed: int = 0  # of these, those where it preferred the baseline
    played: WeightSums = msgspec.field(default_factory=WeightSums)
    policy: WeightSums = msgspec.field(default_factory=WeightSums)
    policy_baseline: WeightSums = msgspec.field(default_factory=WeightSums)
    baseline: WeightSums = msgspec.field(default_factory=WeightSums)
    uniform: WeightSums = msgspec.field(default_factory=WeightSums)
    over_baseline: LiftSums = msgspec.field(default_factory=LiftSums)
    over_uniform: LiftSums = msgspec.field(default_factory=LiftSums)
    propensities: PropensityHistogram = msgspec.field(default_factory=PropensityHistogram)
    traffic: Traffic = msgspec.field(default_factory=lambda: Traffic(limit=WINDOW_COUNTERS))

    def decide(self, decided: Decided) -> None:
        self.decisions += 1
        self.plays += len(decided.plays)
        for play in decided.plays:
            chance = probability(play, play.chosen)
            self.explored += chance < max(play.probabilities)
            self.propensities.add(chance)
            self.traffic.add(decided.actions[play.chosen].id)
            if play.preferred is not None:
                self.compared += 1
                self.agreed += play.preferred == play.baseline

    def settle(
        self, action: str, weights: Weights, reward: float, is_of_policy: bool, means: References
    ) -> None:
        """Count the final reward of a play, and add it to the means that later plays are measured from."""
        baseline, uniform = weights
        self.traffic.settle(action, reward)
        self.played.add(1.0, reward)
        self.policy.add(1.0 if is_of_policy else None, reward)
        self.policy_baseline.add(
            None if baseline is None or not is_of_policy else baseline.weight, reward
        )
        self.baseline.add(None if baseline is None else baseline.weight, reward)
        self.uniform.add(None if uniform is None else uniform.weight, reward)
        if not is_of_policy:
            return
        self.over_baseline.add(baseline, reward, means.baseline)
        self.over_uniform.add(uniform, reward, means.uniform)

    def summarise(self) -> Earned:
        return Earned(
            decisions=self.decisions,
            plays=self.plays,
            settled=self.played.plays,
            joined=self.joined,
            played=compare(self.played),
            policy=compare(self.policy),
            policy_baseline=compare(self.policy_baseline),
            baseline=compare(self.baseline),
            uniform=compare(self.uniform),
            over_baseline=self.over_baseline.merged(LiftSums()),
            over_uniform=self.over_uniform.merged(LiftSums()),
            exploration_rate=self.explored / self.plays if self.plays else None,
            agreement=self.agreed / self.compared if self.compared else None,
            propensities=list(self.propensities.bins),
            **name_actions(self.traffic),
        )


def name_actions(traffic: Traffic) -> dict[str, Any]:
    """Return the fields of `Earned` about the actions that were chosen."""
    actions = [
        ActionCount(
            id=id,
            count=counter.count,
            excess=counter.excess,
            rewards=msgspec.structs.replace(counter.rewards),
        )
        for id, counter in traffic.most(MOST_ACTIONS)
    ]
    return {"actions": actions, "others": max(traffic.total - sum(a.count for a in actions), 0)}
