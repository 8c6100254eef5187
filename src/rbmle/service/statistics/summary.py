"""What the service has earned, and what others would have: a fold over decisions and rewards.

Equal calls in equal order give equal statistics, to the bit. Their size is bounded, and they go into a
checkpoint as JSON and come back equal.
"""

import math

import msgspec

from rbmle.service.log.records import Decided, Play
from rbmle.service.statistics.estimates import SMALLEST, Comparison, Sums
from rbmle.service.statistics.timeline import Point, Timeline
from rbmle.service.statistics.traffic import Traffic

BINS = 20  # of the probabilities in (0, 1]
MOST_ACTIONS = 50  # that are named; the others are counted together


class ActionCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often an action was chosen."""

    id: str
    count: int
    excess: int  # the count may be too large by so much


class StatisticsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the statistics say at one time; it does not change any more."""

    decisions: int = 0  # events
    plays: int = 0  # slots of them
    settled: int = 0  # plays whose reward is final
    joined: int = 0  # of these, those that were sent one
    played: Comparison = Sums().compared()  # what was played: the plain average
    policy: Comparison = Sums().compared()  # the same, of plays that the policy decided
    policy_baseline: Comparison = Sums().compared()  # the baseline action, in the same plays
    baseline: Comparison = Sums().compared()  # the baseline action, in all plays
    uniform: Comparison = Sums().compared()
    exploration_rate: float | None = None  # None: no play yet
    agreement: float | None = None  # of model and baseline; None: no play was compared
    propensities: list[int] = []  # plays by the probability of what was chosen
    actions: list[ActionCount] = []  # the most frequent first
    others: int = 0  # plays of actions that are not named
    bucket_minutes: int = 1
    points: list[Point] = []


class Statistics(msgspec.Struct, kw_only=True):
    """Sums of all decisions and of all rewards that are final."""

    decisions: int = 0
    plays: int = 0
    joined: int = 0
    explored: int = 0  # plays of another action than the most probable one
    compared: int = 0  # plays of the baseline, where it is known what the model preferred
    agreed: int = 0  # of these, those where it preferred the baseline
    propensities: list[int] = msgspec.field(default_factory=lambda: [0] * BINS)
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    played: Sums = msgspec.field(default_factory=Sums)
    policy: Sums = msgspec.field(default_factory=Sums)
    policy_baseline: Sums = msgspec.field(default_factory=Sums)
    baseline: Sums = msgspec.field(default_factory=Sums)
    uniform: Sums = msgspec.field(default_factory=Sums)

    def decide(self, time_ms: int, decided: Decided) -> None:
        """Count a decision, and every play of it."""
        self.decisions += 1
        self.plays += len(decided.plays)
        self.timeline.at(time_ms).decided += len(decided.plays)
        for play in decided.plays:
            probability = _probability(play, play.chosen)
            self.traffic.add(decided.actions[play.chosen].id)
            self.propensities[_bin(probability)] += 1
            self.explored += probability < max(play.probabilities)
            if play.preferred is not None:
                self.compared += 1
                self.agreed += play.preferred == play.baseline

    def settle(
        self, time_ms: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Count the final reward of a play, be it sent or the default."""
        self.joined += is_joined
        baseline, uniform = weight_of(play, play.baseline), weight_of_uniform(play)
        # An apprentice's plays are none of the policy's, also where it agreed: those are a choice of it.
        is_of_policy = play.preferred is None
        self.played.add(1.0, reward)
        self.policy.add(1.0 if is_of_policy else None, reward)
        self.policy_baseline.add(baseline if is_of_policy else None, reward)
        self.baseline.add(baseline, reward)
        self.uniform.add(uniform, reward)
        bucket = self.timeline.at(time_ms)
        bucket.settled += 1
        bucket.reward += reward
        if baseline is not None:
            bucket.baseline_w += baseline
            bucket.baseline_wr += baseline * reward
        if uniform is not None:
            bucket.uniform_w += uniform
            bucket.uniform_wr += uniform * reward

    def summary(self) -> StatisticsSummary:
        """Return what is shown, for other threads too; call it in the thread that counts."""
        counters = sorted(self.traffic.counters.items(), key=lambda item: (-item[1].count, item[0]))
        named = [
            ActionCount(id=id, count=counter.count, excess=counter.excess)
            for id, counter in counters[:MOST_ACTIONS]
        ]
        return StatisticsSummary(
            decisions=self.decisions,
            plays=self.plays,
            settled=self.played.plays,
            joined=self.joined,
            played=self.played.compared(),
            policy=self.policy.compared(),
            policy_baseline=self.policy_baseline.compared(),
            baseline=self.baseline.compared(),
            uniform=self.uniform.compared(),
            exploration_rate=self.explored / self.plays if self.plays else None,
            agreement=self.agreed / self.compared if self.compared else None,
            propensities=list(self.propensities),
            actions=named,
            others=self.traffic.total - sum(action.count for action in named),
            bucket_minutes=self.timeline.minutes,
            points=self.timeline.points(),
        )


def weight_of(play: Play, target: int) -> float | None:
    """Return the weight of a play for always showing one action; None if that one had no chance."""
    if _probability(play, target) < SMALLEST:
        return None
    return 1 / _probability(play, play.chosen) if play.chosen == target else 0.0


def weight_of_uniform(play: Play) -> float | None:
    """Return the weight of a play for showing any action alike; None if one of them had no chance."""
    if min(play.probabilities) < SMALLEST:
        return None
    return 1 / len(play.eligible) / _probability(play, play.chosen)


def _probability(play: Play, action: int) -> float:
    """Return with which probability an action was to be chosen; 0 if it was not eligible."""
    if action not in play.eligible:
        return 0.0
    return play.probabilities[play.eligible.index(action)]


def _bin(probability: float) -> int:
    """Return the number of the bin ((i, i + 1] / 20) that a probability is in."""
    return min(max(math.ceil(probability * BINS) - 1, 0), BINS - 1)
