"""What the service has earned, and what others would have: a fold over decisions and rewards.

Equal calls in equal order give equal statistics, to the bit. Their size is bounded, and they go into a
checkpoint as JSON and come back equal.
"""

import math

import msgspec

from rbmle.service.log.records import Decided, Play
from rbmle.service.statistics.lift import RewardSums
from rbmle.service.statistics.ranges import RANGES, Ranges
from rbmle.service.statistics.tally import Earned, References
from rbmle.service.statistics.timeline import Point, Timeline
from rbmle.service.statistics.traffic import Traffic
from rbmle.service.statistics.weights import probability, weights_of

BINS = 20  # of the probabilities in (0, 1]
MOST_ACTIONS = 50  # that are named; the others are counted together


class ActionCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often an action was chosen, and what it earned."""

    id: str
    count: int
    excess: int  # the count may be too large by so much
    rewards: RewardSums = msgspec.field(default_factory=RewardSums)


class StatisticsSummary(Earned, frozen=True, kw_only=True):
    """What the statistics say at one time, of all time and of each range; it does not change any more."""

    ranges: dict[str, Earned] = msgspec.field(
        default_factory=lambda: {name: Earned() for name in RANGES}
    )
    # plays by the probability of what was chosen
    propensities: list[int] = msgspec.field(default_factory=list)
    # the most frequent first
    actions: list[ActionCount] = msgspec.field(default_factory=list)
    others: int = 0  # plays of actions that are not named
    bucket_minutes: int = 1
    points: list[Point] = msgspec.field(default_factory=list)

    def of(self, earned: Earned) -> "StatisticsSummary":
        """Return the same with what was earned in some time; actions and propensities stay of all time."""
        known = {name: getattr(earned, name) for name in Earned.__struct_fields__}
        return msgspec.structs.replace(self, **known, ranges={})


class Statistics(msgspec.Struct, kw_only=True):
    """Sums of all decisions and of all rewards that are final."""

    time: int = 0  # of the last that was counted, in milliseconds
    propensities: list[int] = msgspec.field(default_factory=lambda: [0] * BINS)
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    ranges: Ranges = msgspec.field(default_factory=Ranges)
    references: References = msgspec.field(default_factory=References)

    def decide(self, time_ms: int, decided: Decided) -> None:
        """Count a decision, and every play of it."""
        self.time = time_ms
        self.timeline.at(time_ms).decided += len(decided.plays)
        self.ranges.at(time_ms).decide(decided)
        for play in decided.plays:
            self.traffic.add(decided.actions[play.chosen].id)
            self.propensities[_bin(probability(play, play.chosen))] += 1

    def settle(
        self, time_ms: int, decided: Decided, play: Play, reward: float, is_joined: bool
    ) -> None:
        """Count the final reward of a play, be it sent or the default."""
        self.time = time_ms
        weights = weights_of(play)
        # An apprentice's plays are none of the policy's, also where it agreed: those are a choice of it.
        is_of_policy = play.preferred is None
        tally = self.ranges.at(time_ms)
        tally.joined += is_joined
        tally.settle(weights, reward, is_of_policy, self.references)
        self.traffic.settle(decided.actions[play.chosen].id, reward)
        bucket = self.timeline.at(time_ms)
        bucket.settled += 1
        bucket.reward += reward
        if weights.baseline is not None:
            bucket.baseline_w += weights.baseline.weight
            bucket.baseline_wr += weights.baseline.weight * reward
        if weights.uniform is not None:
            bucket.uniform_w += weights.uniform.weight
            bucket.uniform_wr += weights.uniform.weight * reward

    def correct_clock(self, time: int) -> None:
        """Go back to a time, to which all that was counted after it is moved."""
        self.time = min(self.time, time)
        self.timeline.correct_clock(time)
        self.ranges.correct_clock(time)

    def summary(self, now: int | None = None) -> StatisticsSummary:
        """Return what is shown, for other threads too; call it in the thread that counts.

        Ranges end now, in milliseconds; None: when something was counted last.
        """
        end = self.time if now is None else now
        counters = sorted(self.traffic.counters.items(), key=lambda item: (-item[1].count, item[0]))
        named = [
            ActionCount(
                id=id,
                count=counter.count,
                excess=counter.excess,
                rewards=msgspec.structs.replace(counter.rewards),
            )
            for id, counter in counters[:MOST_ACTIONS]
        ]
        return StatisticsSummary(
            **msgspec.structs.asdict(self.ranges.total().earned()),
            ranges={name: self.ranges.within(name, end).earned() for name in RANGES},
            propensities=list(self.propensities),
            actions=named,
            others=self.traffic.total - sum(action.count for action in named),
            bucket_minutes=self.timeline.minutes,
            points=self.timeline.points(),
        )


def _bin(probability: float) -> int:
    """Return the number of the bin ((i, i + 1] / 20) that a probability is in."""
    return min(max(math.ceil(probability * BINS) - 1, 0), BINS - 1)
