"""Confidence sequences: intervals that hold at every time at once, while policies and logging policies learn.

Rewards are brought to [0, 1]. For a policy π whose arm a was played with the probability p(a), let w =
π(a)/p(a) and

    ξ_t = Σ_b π(b) q(b) + w (r − q(a)),

with any q in [0, 1] that is known before the arm is drawn. Its mean given all that was before is V_t, the
value of the policy in round t; it is lower, and never higher, if π plays arms that had no chance and whose q
is 0. Let κ > 0 be such that 1 + κ ξ_t > 0 in every round, whatever is played. Then

    Π (1 + κ ξ_t)/(1 + κ V_t)

is a supermartingale that begins with 1: the wealth of one who bets a part of it on each ξ_t (Waudby-Smith and
Ramdas 2024, Estimating means of bounded random variables by betting, sections 4 and 5; for importance weights
Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024, Anytime-valid off-policy inference for contextual
bandits, section 3). So is a mixture Σ_κ g(κ) Π (1 + κ ξ_t)/(1 + κ V_t) with Σ g = 1, which by Ville's
inequality is below 1/α at all times at once with a probability of at least 1 − α. The logarithm is concave,
so Σ log(1 + κ V_t) ≤ n log(1 + κ V̄) for the mean V̄ of V_1, …, V_n, and therefore, with this probability,

    Σ_κ g(κ) Π (1 + κ ξ_t) / (1 + κ V̄)ⁿ < 1/α   for all n at once.

The left side falls with V̄, so V̄ is above the point where it is 1/α. There we differ from both papers: their
bets depend on all rounds before, which is a proof for a V that stays the same; ours are a fixed mixture,
which covers the mean of values that change, as those of a policy that learns. The upper end is 1 minus the
lower end for 1 − r.

With q = 0, ξ is not negative and any κ will do: nothing has to be known of the weights. This is `ips`. With q
≠ 0, ξ may be as low as −q(a) (w(a) − π(a)). Each κ therefore has its own q, which is lowered until κ ξ ≥
−1/2. That needs the weight that each arm would have had, were it played: of the weights that are seen none
may be large, and yet the mean be made by those that are not.

`boundary` serves the lifts of the service, which keeps only sums and sums of squares.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import gammainc, gammaln

from rbmle.engine.betting import bet, bet_with_control
from rbmle.evaluation.estimators import Judged, OfferedArms

BETS = 2.0 ** np.arange(-20, 7)  # κ; 2⁻²⁰ is about the best one for 10¹² rounds
# The best κ for about 2,000 rounds, and how soon g falls around it.
_MIDDLE, _OCTAVES = 2.0**-4, 1.5
_SHARE = 0.5  # of the wealth that a bet may lose in a round
_GUESS = 0.5  # q before any data

OPTIMAL = 1_000.0  # Σ (ξ − ξ̂)² for which the boundary is as low as it can be


def _log_prior() -> Float[np.ndarray, " bets"]:
    g = 1 / (1 + (np.log2(BETS / _MIDDLE) / _OCTAVES) ** 2)
    return np.log(g / g.sum())


_LOG_PRIOR = _log_prior()


class Bettors:
    """The wealth of all bets κ, for up to two controls q."""

    def __init__(self) -> None:
        self.rounds = 0
        self._log_wealth = np.zeros((2, len(BETS)))

    def add(self, xi: Float[np.ndarray, " rounds"]) -> None:
        """Bet on the next rounds with q = 0: ξ = w r."""
        self.rounds += len(xi)
        bet(xi, BETS, self._log_wealth[0])

    def add_with_control(
        self,
        rewards: Float[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
        offered: OfferedArms,
        controls: Float[np.ndarray, " arms"],
        place: int = 0,
    ) -> None:
        """Bet on the next rounds with a q for each arm; the first q counts the rounds."""
        self.rounds += len(rewards) if not place else 0
        bet_with_control(
            rewards,
            weights,
            offered.sizes,
            offered.at,
            offered.chances,
            offered.falls,
            controls,
            _SHARE,
            BETS,
            self._log_wealth[place],
        )

    def lower_bound(self, alpha: float, controls: int = 1) -> float:
        """Return a lower bound of the mean that holds at all times at once with probability 1 − α.

        Two controls have half of the wealth each.
        """
        if not self.rounds:
            return 0.0
        logs = self._log_wealth[:controls] + _LOG_PRIOR - math.log(controls)

        def excess(mean: float) -> float:
            terms = logs - self.rounds * np.log1p(BETS * mean)
            most = float(terms.max())
            return most + math.log(float(np.exp(terms - most).sum())) + math.log(alpha)

        if excess(0.0) <= 0:
            return 0.0
        if excess(1.0) >= 0:
            return 1.0
        return float(brentq(excess, 0.0, 1.0, xtol=1e-12))


class ValueSequence:
    """A confidence sequence for the value of a policy, by one of the unbiased estimators.

    `ips` needs only the weights of played arms. If the weights of all arms are known, it also bets with q = 1,
    which is narrow where rewards are rare. `snips` and `dr` need the weights of all arms: q is the mean reward
    so far for `snips`, and the prediction of a model for `dr`. For `replay`, the sequence is that of the mean
    reward of accepted rounds.
    """

    def __init__(self, estimator: str, low: float, high: float) -> None:
        self._estimator, self._low, self._range = estimator, low, high - low
        self._below, self._above = Bettors(), Bettors()
        self._is_bounded = True  # the weights of all arms are known
        self._weighted, self._weights = _GUESS, 1.0  # Σ w r and Σ w so far

    def add(self, judged: Judged) -> None:
        rewards, weights, offered = judged.rewards, judged.weights, judged.offered
        r = (rewards - self._low) / self._range
        self._is_bounded &= offered is not None
        if self._estimator == "replay":
            self._below.add(r[judged.accepted])
            self._above.add(1 - r[judged.accepted])
            return
        if self._estimator == "ips":
            self._below.add(weights * r)
            self._above.add(weights * (1 - r))
            if offered is not None:
                every = np.ones(len(offered.chances))
                self._below.add_with_control(r, weights, offered, every, 1)
                self._above.add_with_control(1 - r, weights, offered, every, 1)
            return
        if offered is None:
            return
        if self._estimator == "snips":
            q = np.repeat(self._means(weights, r), offered.sizes)
        else:
            q = np.clip((offered.predictions - self._low) / self._range, 0.0, 1.0)
        self._below.add_with_control(r, weights, offered, q)
        self._above.add_with_control(1 - r, weights, offered, 1 - q)

    def _means(
        self, weights: Float[np.ndarray, " rounds"], r: Float[np.ndarray, " rounds"]
    ) -> Float[np.ndarray, " rounds"]:
        weighted = self._weighted + np.cumsum(weights * r)
        total = self._weights + np.cumsum(weights)
        q = np.concatenate([[self._weighted / self._weights], (weighted / total)[:-1]])
        self._weighted, self._weights = float(weighted[-1]), float(total[-1])
        return q

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Return the interval after the rounds so far; the intervals of all times hold at once.

        None: it needs weights that are not known.
        """
        if not self._is_bounded and self._estimator in ("snips", "dr"):
            return None
        alpha, controls = (1 - confidence) / 2, 1 + (self._is_bounded and self._estimator == "ips")
        low = self._below.lower_bound(alpha, controls)
        high = 1 - self._above.lower_bound(alpha, controls)
        return self._low + self._range * low, self._low + self._range * max(low, high)


SEQUENCES = ("replay", "ips", "snips", "dr")  # estimators that have one; others are biased


def log_mixture(s: float, v: float, rho: float, c: float) -> float:
    """Return the logarithm of the gamma-exponential mixture, a supermartingale in (S_t, V_t).

    With a = (v + ρ)/c², x = (c s + v + ρ)/c², r = ρ/c² and P the regularised incomplete gamma function,
    r^r / (Γ(r) P(r, r)) · Γ(a) P(a, x) / x^a · exp(x − r)  (Howard et al. 2021, Proposition 9).
    """
    r, a, x = rho / c**2, (v + rho) / c**2, (c * s + v + rho) / c**2
    start = r * math.log(r) - gammaln(r) - math.log(gammainc(r, r))
    return float(start + gammaln(a) + math.log(gammainc(a, x)) - a * math.log(x) + x - r)


def boundary(v: float, alpha: float, c: float, optimal: float = OPTIMAL) -> float:
    """Return u(v), which Σ (ξ − V) ever crosses with a probability of at most α."""
    logarithm = math.log(1 / (2 * alpha))
    rho = optimal / (2 * logarithm + math.log(1 + 2 * logarithm))
    least = math.log(1 / alpha)
    most = 1.0
    while log_mixture(most, v, rho, c) < least:
        most *= 2
    return float(brentq(lambda s: log_mixture(s, v, rho, c) - least, 0.0, most, rtol=1e-12))
