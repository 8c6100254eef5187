"""Estimators of what a policy π would have earned, from the rewards of another policy.

An arm a that was played with probability p and paid r has the weight w = π(a)/p. Every estimate here is
a ratio of two sums over the rounds, Σ N / Σ D:

    replay   N = A r                      D = A   A = 1 with probability w/M, M the largest possible weight
    dm       N = Σ_a π(a) q̂(a)            D = 1   the direct method; as biased as q̂ is
    ips      N = w r                      D = 1   unbiased (Horvitz and Thompson 1952)
    clipped  N = min(w, c) r              D = 1   less variance, but too low for rewards above 0
    snips    N = w r                      D = w   stays between the rewards (Swaminathan, Joachims 2015)
    dr       N = Σ_a π(a) q̂(a) + w (r − q̂)    D = 1   unbiased (Dudík, Langford, Li 2011)
    switch   as dr, but w = 0 where w > c   D = 1   (Wang, Agarwal, Dudík 2017)

`z` is N − V D, whose mean is 0 at the true value V; its range bounds the error of the estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError

Terms = tuple[Float[np.ndarray, " rounds"], Float[np.ndarray, " rounds"]]  # N and D


class OfferedArms(NamedTuple):
    """All arms of some rounds, round after round."""

    sizes: Int[np.ndarray, " rounds"]  # arms of each round
    at: Int[np.ndarray, " rounds"]  # where the arms that were played are
    chances: Float[np.ndarray, " arms"]  # π(a)
    falls: Float[np.ndarray, " arms"]  # π(a)/p(a) − π(a), or more; infinite where p(a) is 0
    predictions: Float[np.ndarray, " arms"]  # q̂(a); 0 without a model


class Judged(NamedTuple):
    """What estimators need to know of some rounds."""

    rewards: Float[np.ndarray, " rounds"]  # r
    weights: Float[np.ndarray, " rounds"]  # w
    predicted: Float[np.ndarray, " rounds"]  # q̂ of the played arm; 0 without a model
    expected: Float[np.ndarray, " rounds"]  # Σ_a π(a) q̂(a)
    accepted: Bool[np.ndarray, " rounds"]  # A; all False unless replay is asked for
    offered: OfferedArms | None = None  # None: the weights of the other arms are not known


class Bounds(NamedTuple):
    """What is known before a log is judged."""

    low: float  # the smallest possible reward
    high: float
    weight: float  # the largest possible weight, M
    clip: float  # c


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """The terms of an estimate, and the range of z for rewards within their bounds."""

    name: str
    terms: Callable[[Judged, Bounds], Terms]
    spread: Callable[[Bounds], float]
    has_model: bool = False  # it needs q̂


def _replay(judged: Judged, bounds: Bounds) -> Terms:
    accepted = judged.accepted.astype(float)
    return accepted * judged.rewards, accepted


def _dm(judged: Judged, bounds: Bounds) -> Terms:
    return judged.expected, np.ones_like(judged.expected)


def _ips(judged: Judged, bounds: Bounds) -> Terms:
    return judged.weights * judged.rewards, np.ones_like(judged.rewards)


def _clipped(judged: Judged, bounds: Bounds) -> Terms:
    return np.minimum(judged.weights, bounds.clip) * judged.rewards, np.ones_like(judged.rewards)


def _snips(judged: Judged, bounds: Bounds) -> Terms:
    return judged.weights * judged.rewards, judged.weights


def _dr(judged: Judged, bounds: Bounds) -> Terms:
    rewards, weights, predicted, expected, *_ = judged
    return expected + weights * (rewards - predicted), np.ones_like(rewards)


def _switch(judged: Judged, bounds: Bounds) -> Terms:
    kept = np.where(judged.weights <= bounds.clip, judged.weights, 0.0)
    return _dr(judged._replace(weights=kept), bounds)


def _with_zero(bounds: Bounds) -> float:
    return max(bounds.high, 0.0) - min(bounds.low, 0.0)


ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator(name="replay", terms=_replay, spread=lambda b: b.high - b.low),
        Estimator(
            name="dm",
            terms=_dm,
            spread=lambda b: b.high - b.low,
            has_model=True,
        ),
        Estimator(name="ips", terms=_ips, spread=lambda b: b.weight * _with_zero(b)),
        Estimator(
            name="clipped", terms=_clipped, spread=lambda b: min(b.weight, b.clip) * _with_zero(b)
        ),
        Estimator(name="snips", terms=_snips, spread=lambda b: b.weight * (b.high - b.low)),
        Estimator(
            name="dr",
            terms=_dr,
            spread=lambda b: (1 + 2 * b.weight) * (b.high - b.low),
            has_model=True,
        ),
        Estimator(
            name="switch",
            terms=_switch,
            spread=lambda b: (1 + 2 * min(b.weight, b.clip)) * (b.high - b.low),
            has_model=True,
        ),
    )
}


def estimators_of(names: str) -> list[Estimator]:
    """Return the estimators of a comma-separated list, or "all"."""
    wanted = (
        list(ESTIMATORS) if names == "all" else [n.strip() for n in names.split(",") if n.strip()]
    )
    unknown = [name for name in wanted if name not in ESTIMATORS]
    if unknown or not wanted:
        raise SettingError(no_such("estimator", (unknown or [names])[0], ESTIMATORS))
    return [ESTIMATORS[name] for name in dict.fromkeys(wanted)]
