"""Confidence sequences: intervals that hold at every time at once, while policies and logging policies learn.

For ξ_t ≥ −k with the conditional mean V_t, and any ξ̂_t in [0, 1] that is known before ξ_t, with c = 1 + k,

    Σ (ξ_i − V_i) < u(Σ (ξ_i − ξ̂_i)²)  for all t at once, with probability 1 − α,

where u is a uniform boundary for sub-exponential processes of scale c: Howard, Ramdas, McAuliffe, Sekhon,
Time-uniform, nonparametric, nonasymptotic confidence sequences, 2021 (Theorem 4 and Proposition 9). That
ξ need not be bounded from above, so importance weights need not either, and that V_t may differ from
round to round, is from Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro, Anytime-valid off-policy
inference for contextual bandits, 2022. What is covered is the mean of V_1, …, V_t, the values of the
policies that were judged in each round: for a policy that does not change, its value.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from rbmle.evaluation.estimators import Judged

OPTIMAL = 1_000.0  # Σ (ξ − ξ̂)² for which the boundary is as low as it can be
_PRIOR = 0.5  # ξ̂ before any data


def log_mixture(s: float, v: float, rho: float, c: float) -> float:
    """Return the logarithm of the gamma-exponential mixture, a supermartingale in (S_t, V_t).

    With a = (v + ρ)/c², x = (c s + v + ρ)/c², r = ρ/c² and P the regularised incomplete gamma function,
    r^r / (Γ(r) P(r, r)) · Γ(a) P(a, x) / x^a · exp(x − r)  (Howard et al. 2021, Proposition 9).
    """
    r, a, x = rho / c**2, (v + rho) / c**2, (c * s + v + rho) / c**2
    start = r * math.log(r) - gammaln(r) - math.log(gammainc(r, r))
    return float(start + gammaln(a) + math.log(gammainc(a, x)) - a * math.log(x) + x - r)


def boundary(v: float, alpha: float, c: float, optimal: float = OPTIMAL) -> float:
    """Return u(v), which Σ (ξ − V) crosses at any time with a probability of at most α."""
    logarithm = math.log(1 / (2 * alpha))
    rho = optimal / (2 * logarithm + math.log(1 + 2 * logarithm))
    least = math.log(1 / alpha)
    most = 1.0
    while log_mixture(most, v, rho, c) < least:
        most *= 2
    return float(brentq(lambda s: log_mixture(s, v, rho, c) - least, 0.0, most, rtol=1e-12))


@dataclass(slots=True, kw_only=True)
class LowerSequence:
    """A lower confidence sequence for the running mean of V_t, from ξ_1, ξ_2, …"""

    scale: float = 1.0  # c
    rounds: int = 0
    total: float = 0.0  # Σ ξ
    variance: float = 0.0  # Σ (ξ − ξ̂)²

    def add(self, xi: Float[np.ndarray, " rounds"]) -> None:
        """Take the next ξ; ξ̂ is the mean of those before, within [0, 1]."""
        before = self.total + np.cumsum(xi) - xi
        counts = self.rounds + np.arange(len(xi))
        centres = np.where(counts > 0, np.clip(before / np.maximum(counts, 1), 0, 1), _PRIOR)
        self.variance += float(((xi - centres) ** 2).sum())
        self.total += float(xi.sum())
        self.rounds += len(xi)

    def bound(self, alpha: float) -> float:
        """Return what the mean is above, at all times at once with a probability of at least 1 − α."""
        if not self.rounds:
            return 0.0
        return max(0.0, (self.total - boundary(self.variance, alpha, self.scale)) / self.rounds)


class ValueSequence:
    """A confidence sequence for the value of a policy, by one of the estimators that have no bias.

    Rewards are brought to [0, 1]. From below it is that of w r, or of q + w (r − q) with Σ π q in the
    place of q: for `snips` q is the mean so far, for `dr` a model's. From above it is that of 1 − r.
    For `replay` it is that of r in the rounds that are accepted.
    """

    def __init__(self, estimator: str, low: float, high: float, weight: float) -> None:
        self._estimator, self._low, self._range = estimator, low, high - low
        scale = 1.0 if estimator in ("ips", "replay") else 1.0 + weight
        self._below, self._above = LowerSequence(scale=scale), LowerSequence(scale=scale)
        self._weighted, self._weights = _PRIOR, 1.0  # Σ w r and Σ w so far

    def add(self, judged: Judged) -> None:
        """Take some rounds."""
        rewards, weights, predicted, expected, accepted = judged
        r = (rewards - self._low) / self._range
        if self._estimator == "replay":
            self._below.add(r[accepted])
            self._above.add(1 - r[accepted])
            return
        if self._estimator == "ips":
            self._below.add(weights * r)
            self._above.add(weights * (1 - r))
            return
        if self._estimator == "snips":
            weighted = self._weighted + np.cumsum(weights * r)
            total = self._weights + np.cumsum(weights)
            q = np.concatenate([[self._weighted / self._weights], (weighted / total)[:-1]])
            v = q
            self._weighted, self._weights = float(weighted[-1]), float(total[-1])
        else:
            q, v = (predicted - self._low) / self._range, (expected - self._low) / self._range
        xi = v + weights * (r - q)
        self._below.add(xi)
        self._above.add(1 - xi)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval now; those of all times hold together with this confidence."""
        alpha = (1 - confidence) / 2
        low, high = self._below.bound(alpha), 1 - self._above.bound(alpha)
        return self._low + self._range * low, self._low + self._range * high


SEQUENCES = ("replay", "ips", "snips", "dr")  # estimators that have one; others are biased
