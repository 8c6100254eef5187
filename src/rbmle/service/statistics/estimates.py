"""What a policy would have earned, told from what another one was paid: IPS and SNIPS.

An action a that was chosen with probability p(a) and paid r counts for a target policy π with the
weight w = π(a) / p(a). Over n such plays

    IPS    V = Σ w r / n        s² = Σ (w r − V)² / (n (n − 1))
    SNIPS  V = Σ w r / Σ w      s² = Σ w² (r − V)² / (Σ w)²

and the interval of 95 % is V ± 1.96 s. IPS is the mean of independent terms without a bias (Horvitz and
Thompson 1952), and s² is their sample variance. SNIPS (Swaminathan and Joachims 2015) stays between the
rewards that were seen, and s² is the delta method's (Owen, Monte Carlo theory, Eq. 9.8). Intervals are
the normal ones: the floor under each probability bounds the weights, so means of some dozens of plays
are near to normal, where an empirical Bernstein interval would be several times as wide. They are not
given before the plays are worth that many.
"""

import msgspec

from rbmle.evaluation.ratio import Ratio
from rbmle.evaluation.weight_sums import WeightSums

NORMAL_95 = 1.959963984540054  # the normal distribution has 95 % within ± this
FEWEST = 30  # plays of weight 1 that the sum must be worth, before an interval is given
ROUNDING = 1e-12  # a variance that is a smaller part of the mean square is none


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and its interval of 95 %."""

    value: float | None = None  # None: it is not known
    low: float | None = None  # None: there is no interval
    high: float | None = None
    problem: str = ""  # why there is no value, or no interval

    @property
    def has_interval(self) -> bool:
        """Return whether it is known how far off the value may be."""
        return self.low is not None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one target policy would have earned."""

    ips: Estimate
    snips: Estimate
    coverage: float  # the part of all plays that tell of it
    effective: float  # how many plays of weight 1 they are worth


def comparison_of(sums: WeightSums) -> Comparison:
    """Return both estimates."""
    told = sums.plays + sums.unsupported
    coverage = sums.plays / told if told else 0.0
    return Comparison(ips=ips(sums), snips=snips(sums), coverage=coverage, effective=sums.effective)


def ips(sums: WeightSums) -> Estimate:
    """Return the estimate by inverse propensity."""
    n = sums.plays
    return _estimate(sums, sums.ips, n / max(n - 1, 1))  # the factor makes a sample variance


def snips(sums: WeightSums) -> Estimate:
    """Return the self-normalised estimate."""
    return _estimate(sums, sums.snips, 1.0)


def _estimate(sums: WeightSums, ratio: Ratio, factor: float) -> Estimate:
    """Return a value with its interval, if it can have one."""
    if not sums.w or ratio.value is None:
        return Estimate(problem=_nothing(sums))
    value = ratio.value
    if sums.effective < FEWEST:
        return Estimate(value=value, problem="too few plays for an interval")
    squares = factor * ratio.squares(value)
    if squares <= ROUNDING * ratio.nn:
        return Estimate(value=value, problem="no interval: all rewards were equal so far")
    deviation = NORMAL_95 * squares**0.5 / ratio.d
    return Estimate(value=value, low=value - deviation, high=value + deviation)


def _nothing(sums: WeightSums) -> str:
    """Return why nothing tells of the target."""
    if sums.plays:
        return "it was not chosen yet"
    if sums.unsupported:
        return "not known: what it would play had no chance of being chosen"
    return "no reward yet"
