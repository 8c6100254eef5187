"""What the service has earned, and what others would have: a fold over decisions and rewards.

Equal calls in equal order give equal statistics, to the bit. Their size is bounded, and they go into a
checkpoint as JSON and come back equal.
"""

import msgspec

from rbmle.service.log.records import Decided, Play
from rbmle.service.statistics.ranges import RANGES, Ranges
from rbmle.service.statistics.tally import Earned, References, named
from rbmle.service.statistics.timeline import Series, Timeline
from rbmle.service.statistics.traffic import Traffic
from rbmle.service.statistics.weights import weights_of


class StatisticsSummary(Earned, frozen=True, kw_only=True):
    """What the statistics say at one time, of all time and of each range; it does not change any more."""

    ranges: dict[str, Earned] = msgspec.field(
        default_factory=lambda: {name: Earned() for name in RANGES}
    )
    # what is drawn, by range and of all time
    series: dict[str, Series] = msgspec.field(default_factory=dict)
    decided_in_minute: int = 0  # decisions in the last 60 seconds

    def of(self, earned: Earned) -> "StatisticsSummary":
        """Return the same with what was earned in some time."""
        known = {name: getattr(earned, name) for name in Earned.__struct_fields__}
        return msgspec.structs.replace(self, **known, ranges={}, series={})


class Statistics(msgspec.Struct, kw_only=True):
    """Sums of all decisions and of all rewards that are final."""

    time: int = 0  # of the last that was counted, in milliseconds
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    ranges: Ranges = msgspec.field(default_factory=Ranges)
    references: References = msgspec.field(default_factory=References)

    def decide(self, time_ms: int, decided: Decided) -> None:
        """Count a decision, and every play of it."""
        self.time = time_ms
        self.timeline.decide(time_ms, len(decided.plays))
        self.ranges.at(time_ms).decide(decided)
        for play in decided.plays:
            self.traffic.add(decided.actions[play.chosen].id)

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
        action = decided.actions[play.chosen].id
        tally.settle(action, weights, reward, is_of_policy, self.references)
        self.traffic.settle(action, reward)
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
        earned = msgspec.structs.asdict(self.ranges.total().earned())
        return StatisticsSummary(
            **earned | named(self.traffic),
            ranges={name: self.ranges.within(name, end).earned() for name in RANGES},
            series=self.timeline.series(),
            decided_in_minute=self.timeline.per_minute(end),
        )
