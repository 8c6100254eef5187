"""Confidence sequences for lifts and rewards: intervals that are valid at all times at once.

With the sums of `lift`, for numbers x and y, and with a probability of 1 − α for all n at once,

    n (x V + y V_π) > Σ (x r + y b) − u(Σ (x (r − m) + y w (r − q))²),

where V and V_π are means over the n plays, and u is the boundary of `rbmle.evaluation.sequences`, whose
scale c bounds what is squared from below. The lift V − V_π is x = 1, y = −1. The relative lift V/V_π − 1
is at least ρ where V − (1 + ρ) V_π is at least 0, as in Fieller's intervals for ratios.

The bound is proven for fixed x and y. So the ends of a difference are valid at all times, and so is the sign
of a relative lift, which is ρ = 0. The ends of a relative lift are valid at all times if the ratio V/V_π stays
the same; if it moves, each look is at another ρ, and they are approximate.

The scale has to be chosen before the data, but depends on them: there are twelve scales, each with α/12, and
the smallest one that bounds all plays so far is used.

A moving window is another one at each look. Each window begins at the start of a bucket, and its confidence
sequence is valid from there on at all times at once. The windows begin 2,198 times in a week altogether, so
with α/2198 for each of them all intervals of a week are valid together with probability 1 − α: there is a
false alarm in at most one week of twenty, however often anyone looks.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module

import msgspec

from rbmle.service.statistics.estimates import FEWEST, NORMAL_95
from rbmle.service.statistics.lift import LEAST, MOST, ArmSums, HoldoutSums, LiftSums, RewardSums
from rbmle.service.statistics.ranges import DAY, RANGES
from rbmle.service.statistics.tally import Earned

CONFIDENCE = 0.95
LARGEST = 10.0  # relative lift; where it may be larger, the lift is a difference
STEP = 1.01  # sums of squares are rounded up by at most this factor, so boundaries can be cached

FALSE_ALARMS = 0.05  # share of weeks with a false alarm, at most
LAST = {"hour": "the last hour", "day": "the last 24 hours", "week": "the last 7 days"}
WINDOWS = tuple(LAST)  # the shortest first
ALL = "all"
ALL_TIME_ALPHA = 0.025  # on each side


SCALES = tuple(2.0**power for power in range(2, 14))  # of w (r − q), which is up to 2 MOST_WEIGHT


def import_scipy() -> None:
    """Import SciPy, which takes about a second, before the first interval needs it."""
    import_module("scipy.optimize")
    import_module("rbmle.evaluation.sequences")


class Lift(msgspec.Struct, frozen=True, kw_only=True):
    """How much more is earned than by another policy: a difference, or a share of the other's reward."""

    value: float
    low: float
    high: float
    is_relative: bool


class HoldoutLift(msgspec.Struct, frozen=True, kw_only=True):
    """How much more the policy earns than the holdout, since the holdout got its share and its play."""

    share: float
    play: str  # what the holdout is shown
    difference: Lift  # of the mean rewards
    relative: Lift | None  # None: the holdout's mean may be zero
    policy_plays: int
    held_plays: int
    policy_mean: float
    held_mean: float

    @property
    def lift(self) -> Lift:
        return self.relative or self.difference


def lift_of(sums: LiftSums, confidence: float = CONFIDENCE) -> Lift | None:
    """Return the lift, relative if the other policy's mean reward is significantly above zero.

    None if there is no play, or a reward beyond −1 to 1.
    """
    if not sums.plays or sums.beyond:
        return None
    bound = partial(lower_bound, sums, alpha=(1 - confidence) / 2)
    return _relative(sums.reward, sums.other, bound) or _difference(
        (sums.reward - sums.other) / sums.plays, bound
    )


def holdout_lift(sums: HoldoutSums, confidence: float = CONFIDENCE) -> HoldoutLift | None:
    """Return the lift over the holdout; None if there is none, or too little is settled.

    Units are assigned by chance, so the difference of the two means m and m₀ needs no weights. Over n₀ plays of
    the holdout and n of the policy,

        n₀ (x V + y V₀) > n₀ (x m + y m₀) − u(x² (n₀/n)² S² + y² S₀²),

    where S² is the variance of Σ r between units (`ArmSums.variance`). If each unit comes once this is the
    sequence of the means above; if units come again, it holds in the limit of many units, whose sums are then
    as good as Gaussian: the more a unit's own plays depend on each other, the fewer new chances each look has.
    """
    policy, held = sums.policy, sums.held
    if min(policy.cells, held.cells) < FEWEST or policy.beyond or held.beyond:
        return None
    bound = partial(_holdout_bound, policy, held, alpha=(1 - confidence) / 2)
    return HoldoutLift(
        share=sums.share,
        play=sums.play,
        difference=_difference(policy.mean - held.mean, bound),
        relative=_relative(policy.mean, held.mean, bound),
        policy_plays=policy.plays,
        held_plays=held.plays,
        policy_mean=policy.mean,
        held_mean=held.mean,
    )


def _holdout_bound(policy: ArmSums, held: ArmSums, x: float, y: float, alpha: float) -> float:
    """Return a lower bound of x V + y V₀."""
    ratio = held.plays / policy.plays
    size = max(abs(x) * ratio, abs(y))
    squares = (x * x * ratio**2 * policy.variance + y * y * held.variance) / size**2
    u = size * _boundary(squares, alpha, MOST - LEAST)
    return x * policy.mean + y * held.mean - u / held.plays


Bound = Callable[[float, float], float]  # a lower bound of x V + y V_π, by x and y


def _relative(reward: float, other: float, bound: Bound) -> Lift | None:
    """Return the lift as a share of the other mean; None if that may be zero, or the lift is too large."""
    if other <= 0 or bound(0.0, 1.0) <= 0:
        return None
    value = reward / other - 1
    low, high = _ratio(bound, 1.0, value), _ratio(bound, -1.0, value)
    if max(abs(low), abs(high)) > LARGEST:
        return None
    return Lift(value=value, low=low, high=high, is_relative=True)


def _difference(value: float, bound: Bound) -> Lift:
    most = MOST - LEAST
    low, high = max(bound(1.0, -1.0), -most), min(-bound(-1.0, 1.0), most)
    return Lift(value=value, low=low, high=high, is_relative=False)


def lower_bound(sums: LiftSums, x: float, y: float, alpha: float) -> float:
    """Return a lower bound of x V + y V_π, valid at all times at once with probability 1 − α."""
    largest = sums.below if y > 0 else sums.above
    scale = next(scale for scale in SCALES if scale >= largest)
    size = abs(x) * (MOST - LEAST) / scale + abs(y)  # in these units the scale is that of w (r − q)
    squares = (x * x * sums.rr + 2 * x * y * sums.rb + y * y * sums.bb) / size**2
    u = size * _boundary(squares, alpha / len(SCALES), scale)
    return (x * sums.reward + y * sums.other - u) / sums.plays


def _ratio(bound: Bound, sign: float, value: float) -> float:
    """Return the lower (1) or the upper (−1) end of the interval of V/V_π − 1, by the sign."""
    from scipy.optimize import brentq

    def excess(ratio: float) -> float:
        return bound(sign, -sign * (1 + ratio))

    end, step = value, 1.0
    while excess(end) < 0:
        if abs(end) > LARGEST:
            return -sign * math.inf
        end -= sign * step
        step *= 2
    return float(brentq(excess, end, value, xtol=1e-4))


def reward_interval(sums: RewardSums, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return the interval of a mean reward; None if there is no play, or a reward beyond −1 to 1."""
    if not sums.plays or sums.beyond:
        return None
    mean = sums.reward / sums.plays
    width = _boundary(sums.squares, (1 - confidence) / 2, MOST - LEAST) / sums.plays
    return max(LEAST, mean - width), min(MOST, mean + width)


def _boundary(squares: float, alpha: float, scale: float) -> float:
    """Return u, rounded up by a little."""
    step = math.ceil(math.log(squares) / math.log(STEP)) if squares > 1 else 0
    return _boundary_at(step, alpha, scale)


@lru_cache(maxsize=2**14)
def _boundary_at(step: int, alpha: float, scale: float) -> float:
    from rbmle.evaluation.sequences import boundary

    return boundary(STEP**step, alpha, scale)


STARTS = sum(7 * DAY // RANGES[name].length for name in WINDOWS)  # of windows in a week


class WindowLift(msgspec.Struct, frozen=True, kw_only=True):
    """How much more a decision earned than the baseline action would have, in a window of time."""

    window: str  # one of WINDOWS, or ALL
    plays: int
    played: float  # mean reward of what was shown
    baseline: float  # of the baseline action, estimated from the same plays
    low: float  # of the difference; for moving windows, all of a week are valid together
    high: float
    error: float  # standard error of the difference

    @property
    def value(self) -> float:
        return self.played - self.baseline

    @property
    def is_below(self) -> bool:
        return self.high < 0


def window_lifts(all_time: Earned, ranges: dict[str, Earned]) -> list[WindowLift]:
    """Return the lift of each window and of all time, where there are enough plays for it."""
    parts = [(name, ranges[name], FALSE_ALARMS / STARTS) for name in WINDOWS]
    return [
        _lift(name, earned.over_baseline, alpha)
        for name, earned, alpha in [*parts, (ALL, all_time, ALL_TIME_ALPHA)]
        if _is_known(earned)
    ]


def find_loss(lifts: list[WindowLift]) -> WindowLift | None:
    """Return the shortest window with a significant loss; None if there is none.

    A window does not count if a shorter one shows that the loss is over.
    """
    windows = [lift for lift in lifts if lift.window != ALL]
    for at, lift in enumerate(windows):
        if lift.is_below and not any(_has_recovered(shorter, lift) for shorter in windows[:at]):
            return lift
    return None


def _is_known(earned: Earned) -> bool:
    sums = earned.over_baseline
    return sums.plays >= FEWEST <= earned.policy_baseline.effective and not sums.beyond


def _lift(window: str, sums: LiftSums, alpha: float) -> WindowLift:
    most = MOST - LEAST
    return WindowLift(
        window=window,
        plays=sums.plays,
        played=sums.reward / sums.plays,
        baseline=sums.other / sums.plays,
        low=max(lower_bound(sums, 1.0, -1.0, alpha), -most),
        high=min(-lower_bound(sums, -1.0, 1.0, alpha), most),
        error=math.sqrt(max(sums.rr - 2 * sums.rb + sums.bb, 0.0)) / sums.plays,
    )


def _has_recovered(shorter: WindowLift, lift: WindowLift) -> bool:
    """Return whether a shorter window shows no loss, and is significantly better."""
    return shorter.value >= 0 and shorter.value - NORMAL_95 * shorter.error > lift.value
