"""The conditions of Theorems 1 and 2 on the network and its training, with constants of 1."""

import math
from dataclasses import dataclass
from typing import Literal

from rbmle.core.errors import SettingError

Algorithm = Literal["ga", "pc"]
POWERS: dict[Algorithm, int] = {"ga": 16, "pc": 21}  # of T in the first bound of m
ITERATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What Theorem 1 (GA) or 2 (PC) asks for, where the paper's unknown constants are 1."""

    log10_width: float  # log₁₀ of the smallest m, which no float may hold
    log10_rate: float  # of the largest η, for that m
    steps: float  # the smallest J; 0 for PC, of which Theorem 2 asks nothing


def conditions(
    *,
    rounds: int,
    arms: int,
    ridge: float,
    depth: int = 2,
    delta: float = 0.05,
    algorithm: Algorithm = "ga",
) -> Conditions:
    """Return the smallest m, the largest η and the smallest J of a theorem.

    m ≥ max{T¹⁶ λ⁻⁷ L²⁴ (log m)³, (TKL)⁶ λ^{−½} log(TKL²/δ)^{3/2}}, with T²¹ for PC; η ≤ 1/(mλ + TmL); J ≥ TL/λ.

    >>> found = conditions(rounds=15_000, arms=2, ridge=0.001)
    >>> round(found.log10_width), found.steps
    (102, 30000000.0)
    """
    T, K, L = rounds, arms, depth
    if min(T, K) < 1 or L < 2 or not 0 < ridge < math.inf or not 0 < delta < 1:
        raise SettingError(
            "`rounds` and `arms` must be at least 1, `depth` at least 2, `ridge` positive and `delta` "
            f"between 0 and 1, got {T}, {K}, {L}, {ridge} and {delta}"
        )
    fixed = POWERS[algorithm] * math.log(T) - 7 * math.log(ridge) + 24 * math.log(L)
    other = 6 * math.log(T * K * L) - math.log(ridge) / 2
    other += 1.5 * math.log(max(math.log(T * K * L * L / delta), 1.0))
    log_m = max(fixed, other, 1.0)
    for _ in range(ITERATIONS):  # m stands on both sides; log log m hardly moves
        log_m = max(fixed + 3 * math.log(max(log_m, 1.0)), other, 1.0)
    log_rate = -log_m - math.log(ridge + T * L)
    steps = T * L / ridge if algorithm == "ga" else 0.0
    return Conditions(
        log10_width=log_m / math.log(10), log10_rate=log_rate / math.log(10), steps=steps
    )
