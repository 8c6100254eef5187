"""What a policy would have earned, estimated from the plays of another policy: IPS and SNIPS.

An action a that was chosen with probability p(a) and paid r counts for a target policy π with the
weight w = π(a) / p(a). Over n such plays

    IPS    V = Σ w r / n        s² = Σ (w r − V)² / (n (n − 1))
    SNIPS  V = Σ w r / Σ w      s² = Σ w² (r − V)² / (Σ w)²

and the interval of 95 % is V ± 1.96 s. IPS is the mean of independent terms without a bias (Horvitz and
Thompson 1952), and s² is their sample variance. SNIPS (Swaminathan and Joachims 2015) stays between the
rewards that were observed, and s² is from the delta method (Owen, Monte Carlo theory, Eq. 9.8). Intervals are
normal: the floor under each probability bounds the weights, so means of some dozens of plays are close to
normal, where an empirical Bernstein interval would be several times as wide. There is no interval before the
plays are worth that many.
"""

from typing import NamedTuple

import msgspec

from rbmle.evaluation.sums import SMALLEST, Ratio, WeightSums
from rbmle.service.log.records import Play

NORMAL_95 = 1.959963984540054  # the normal distribution has 95 % within ± this
FEWEST = 30  # plays of weight 1 that the plays must be worth before there is an interval
ROUNDING = 1e-12  # a variance that is a smaller part of the mean square counts as zero


class MeanEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and its interval of 95 %."""

    value: float | None = None  # None: unknown
    low: float | None = None  # None: there is no interval
    high: float | None = None
    problem: str = ""  # why there is no value, or no interval

    @property
    def has_interval(self) -> bool:
        return self.low is not None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one target policy would have earned."""

    ips: MeanEstimate
    snips: MeanEstimate
    coverage: float  # the part of all plays that say something about it
    effective: float  # how many plays of weight 1 they are worth


def compare(sums: WeightSums) -> Comparison:
    all_plays = sums.plays + sums.unsupported
    return Comparison(
        ips=ips_estimate(sums),
        snips=snips_estimate(sums),
        coverage=sums.plays / all_plays if all_plays else 0.0,
        effective=sums.effective,
    )


def ips_estimate(sums: WeightSums) -> MeanEstimate:
    n = sums.plays
    return _estimate(sums, sums.ips, n / max(n - 1, 1))  # the factor makes a sample variance


def snips_estimate(sums: WeightSums) -> MeanEstimate:
    return _estimate(sums, sums.snips, 1.0)


def _estimate(sums: WeightSums, ratio: Ratio, factor: float) -> MeanEstimate:
    """Return a value with its interval, if it can have one."""
    if not sums.w or ratio.value is None:
        return MeanEstimate(problem=_explain_missing(sums))
    value = ratio.value
    if sums.effective < FEWEST:
        return MeanEstimate(value=value, problem="too few plays for an interval")
    squares = factor * ratio.squares(value)
    if squares <= ROUNDING * ratio.nn:
        return MeanEstimate(value=value, problem="no interval: all rewards were equal so far")
    deviation = NORMAL_95 * squares**0.5 / ratio.d
    return MeanEstimate(value=value, low=value - deviation, high=value + deviation)


def _explain_missing(sums: WeightSums) -> str:
    if sums.plays:
        return "it was not chosen yet"
    if sums.unsupported:
        return "not known: what it would play had no chance of being chosen"
    return "no reward yet"


class Weight(NamedTuple):
    """The weight of a play, and the largest that it could have had, whatever was chosen."""

    weight: float
    largest: float


class Weights(NamedTuple):
    """The weights of a play for the baseline action and for uniform play; None: it has no such weight."""

    baseline: Weight | None
    uniform: Weight | None


def weigh_play(play: Play) -> Weights:
    return Weights(_weigh_baseline(play), _weigh_uniform(play))


def _weigh_baseline(play: Play) -> Weight | None:
    """Return the weight for always showing the baseline action; None if that one had no chance."""
    chance = probability(play, play.baseline)
    if chance < SMALLEST:
        return None
    return Weight(1 / chance if play.chosen == play.baseline else 0.0, 1 / chance)


def _weigh_uniform(play: Play) -> Weight | None:
    """Return the weight for uniform play; None if one of the actions had no chance."""
    smallest, share = min(play.probabilities), 1 / len(play.eligible)
    if smallest < SMALLEST:
        return None
    return Weight(share / probability(play, play.chosen), share / smallest)


def probability(play: Play, action: int) -> float:
    """Return the probability of an action in a play; 0 if it was not eligible."""
    if action not in play.eligible:
        return 0.0
    return play.probabilities[play.eligible.index(action)]
