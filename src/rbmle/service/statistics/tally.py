"""Sums over the plays of some stretch of time."""

import math
from typing import Any

import msgspec

from rbmle.evaluation.weight_sums import WeightSums
from rbmle.service.log.records import Decided
from rbmle.service.statistics.estimates import Comparison, comparison_of
from rbmle.service.statistics.lift import LiftSums, Means, RewardSums
from rbmle.service.statistics.traffic import Traffic
from rbmle.service.statistics.weights import Weights, probability

NOTHING = comparison_of(WeightSums())
BINS = 20  # of the probabilities in (0, 1]
MOST_ACTIONS = 50  # that are named; the others are counted together
COUNTERS = 64  # of actions in a part of the time


class ActionCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often an action was chosen, and what it earned."""

    id: str
    count: int
    excess: int  # the count may be too large by so much
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """What some plays earned, and what others would have; it does not change any more."""

    decisions: int = 0  # events
    plays: int = 0  # slots of them
    settled: int = 0  # plays whose reward is final
    joined: int = 0  # of these, those that were sent one
    played: Comparison = NOTHING  # what was played: the plain average
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
    """Means so far of what is played, of the baseline and of uniform play, which lifts are measured from."""

    baseline: Means = msgspec.field(default_factory=Means)
    uniform: Means = msgspec.field(default_factory=Means)


class Propensities(msgspec.Struct, array_like=True):
    """Plays by the probability of what was chosen."""

    bins: list[int] = msgspec.field(default_factory=lambda: [0] * BINS)

    def add(self, probability: float) -> None:
        """Count a play in the bin (i/20, (i + 1)/20] that its probability is in."""
        self.bins[min(max(math.ceil(probability * BINS) - 1, 0), BINS - 1)] += 1

    def merged(self, later: "Propensities") -> "Propensities":
        """Return both together."""
        return Propensities([a + b for a, b in zip(self.bins, later.bins, strict=True)])


class Tally(msgspec.Struct, array_like=True):
    """Sums of decisions, and of rewards that are final."""

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
    propensities: Propensities = msgspec.field(default_factory=Propensities)
    traffic: Traffic = msgspec.field(default_factory=lambda: Traffic(limit=COUNTERS))

    def decide(self, decided: Decided) -> None:
        """Count a decision, and every play of it."""
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
        """Count the final reward of a play, and take it into the means that later ones are measured from."""
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

    def merged(self, later: "Tally") -> "Tally":
        """Return both together."""
        pairs = [(getattr(self, name), getattr(later, name)) for name in self.__struct_fields__]
        return Tally(*(a + b if isinstance(a, int) else a.merged(b) for a, b in pairs))

    def earned(self) -> Earned:
        """Return what it comes to."""
        return Earned(
            decisions=self.decisions,
            plays=self.plays,
            settled=self.played.plays,
            joined=self.joined,
            played=comparison_of(self.played),
            policy=comparison_of(self.policy),
            policy_baseline=comparison_of(self.policy_baseline),
            baseline=comparison_of(self.baseline),
            uniform=comparison_of(self.uniform),
            over_baseline=self.over_baseline.merged(LiftSums()),
            over_uniform=self.over_uniform.merged(LiftSums()),
            exploration_rate=self.explored / self.plays if self.plays else None,
            agreement=self.agreed / self.compared if self.compared else None,
            propensities=list(self.propensities.bins),
            **named(self.traffic),
        )


def named(traffic: Traffic) -> dict[str, Any]:
    """Return the fields of `Earned` that tell which actions were chosen."""
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
