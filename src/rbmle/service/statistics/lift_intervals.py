"""Confidence sequences for lifts and rewards: intervals that hold at all times at once.

With the sums of `lift`, for numbers x and y, and with a probability of 1 − α for all n at once,

    n (x V + y V_π) > Σ (x r + y b) − u(Σ (x (r − m) + y w (r − q))²),

where V and V_π are means over the n plays, and u is the boundary of `rbmle.evaluation.sequences`, whose
scale c bounds what is squared from below. The lift V − V_π is x = 1, y = −1. The relative lift V/V_π − 1
is at least ρ where V − (1 + ρ) V_π is at least 0, as in Fieller's intervals for ratios.

The bound is proven for x and y that are fixed. So the ends of a difference hold at all times, and so does
whether a relative lift is above or below 0, which is ρ = 0. The ends of a relative lift hold at all times
where the ratio V/V_π stays the same; where it moves, each look is at another ρ, and they are approximate.

The scale has to be known beforehand, but is found in the log: there are twelve, each of which is allowed
α/12, and the smallest is used that bounds all plays so far.
"""

import math
from functools import lru_cache

import msgspec
from scipy.optimize import brentq

from rbmle.evaluation.sequences import boundary
from rbmle.service.statistics.lift import LEAST, MOST, LiftSums, RewardSums

CONFIDENCE = 0.95
SCALES = tuple(2.0**power for power in range(2, 14))  # of w (r − q), which is up to 2 MOST_WEIGHT
LARGEST = 10.0  # relative lift; where it may be larger, it is told as a difference
STEP = (
    1.01  # sums of squares are rounded up by less than this, so that boundaries are seldom computed
)


class Lift(msgspec.Struct, frozen=True, kw_only=True):
    """How much more is earned than by another policy: a difference of rewards, or a part of the other's."""

    value: float
    low: float
    high: float
    is_relative: bool


def lift_of(sums: LiftSums, confidence: float = CONFIDENCE) -> Lift | None:
    """Return the lift, relative if the other policy surely earns something; None if nothing is known."""
    if not sums.plays or sums.beyond:
        return None
    tail = (1 - confidence) / 2
    if sums.other > 0 and bound(sums, 0.0, 1.0, tail) > 0:
        value = sums.reward / sums.other - 1
        low, high = _ratio(sums, 1.0, value, tail), _ratio(sums, -1.0, value, tail)
        if max(abs(low), abs(high)) <= LARGEST:
            return Lift(value=value, low=low, high=high, is_relative=True)
    value = (sums.reward - sums.other) / sums.plays
    low, high, most = bound(sums, 1.0, -1.0, tail), -bound(sums, -1.0, 1.0, tail), MOST - LEAST
    return Lift(value=value, low=max(low, -most), high=min(high, most), is_relative=False)


def bound(sums: LiftSums, x: float, y: float, alpha: float) -> float:
    """Return what x V + y V_π is above, at all times at once with a probability of at least 1 − α."""
    largest = sums.below if y > 0 else sums.above
    scale = next(scale for scale in SCALES if scale >= largest)
    size = abs(x) * (MOST - LEAST) / scale + abs(y)  # in these units the scale is that of w (r − q)
    squares = (x * x * sums.rr + 2 * x * y * sums.rb + y * y * sums.bb) / size**2
    u = size * _boundary(squares, alpha / len(SCALES), scale)
    return (x * sums.reward + y * sums.other - u) / sums.plays


def _ratio(sums: LiftSums, sign: float, value: float, alpha: float) -> float:
    """Return an end of the interval of V/V_π − 1: the lower one for 1, the upper one for −1."""

    def excess(ratio: float) -> float:
        return bound(sums, sign, -sign * (1 + ratio), alpha)

    end, step = value, 1.0
    while excess(end) < 0:
        if abs(end) > LARGEST:
            return -sign * math.inf
        end -= sign * step
        step *= 2
    return float(brentq(excess, end, value, xtol=1e-4))


def reward_interval(sums: RewardSums, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return between what a mean reward is; None if that is not known."""
    if not sums.plays or sums.beyond:
        return None
    mean = sums.reward / sums.plays
    width = _boundary(sums.squares, (1 - confidence) / 2, MOST - LEAST) / sums.plays
    return max(LEAST, mean - width), min(MOST, mean + width)


def _boundary(squares: float, alpha: float, scale: float) -> float:
    """Return u, or a little more; it grows with the squares."""
    step = math.ceil(math.log(squares) / math.log(STEP)) if squares > 1 else 0
    return _boundary_at(step, alpha, scale)


@lru_cache(maxsize=2**14)
def _boundary_at(step: int, alpha: float, scale: float) -> float:
    return boundary(STEP**step, alpha, scale)
