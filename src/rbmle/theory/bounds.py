"""The conditions and the regret bounds of Theorems 1 and 2."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import check_positive
from rbmle.core.errors import SettingError
from rbmle.likelihoods import Likelihood

LATE = 2.0  # times κ²: from this ζ(t) on the completed square costs at most a factor of 2
Algorithm = Literal["ga", "pc"]
POWERS: dict[Algorithm, int] = {"ga": 16, "pc": 21}  # of T in the first bound of m
ITERATIONS = 100
POINTS = 10_001


def one_plus_log(t: int) -> float:
    """Return ζ(t) = 1 + log t, the paper's example."""
    return 1 + math.log(t)


def reward_norm(h: Float[np.ndarray, " n"], H: Float[np.ndarray, "n n"]) -> float:
    """Return S = √(2 hᵀH⁻¹h) for the mean rewards h of contexts with the kernel H, Lemma A.1.

    >>> round(reward_norm(np.array([1.0, 0.0]), 2 * np.eye(2)), 4)
    1.0
    """
    return float(math.sqrt(2 * np.asarray(h) @ np.linalg.solve(H, h)))


def confidence_radius(
    log_determinant: float, *, norm: float, ridge: float, noise: float, delta: float
) -> float:
    """Return γ̄_T = ν √(d̃ log(1 + TK/λ) + 1 − 2 log δ) + √λ S.

    `log_determinant` is d̃ log(1 + TK/λ), or log det(I + H/λ), `noise` the ν of sub-Gaussian rewards, `norm` S.

    >>> round(confidence_radius(3.0, norm=2.0, ridge=0.25, noise=0.5, delta=math.exp(-2.5)), 4)
    2.5
    """
    return noise * math.sqrt(log_determinant + 1 - 2 * math.log(delta)) + math.sqrt(ridge) * norm


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretBound:
    """A bound as the sum of its terms, for networks so wide that all other terms vanish."""

    rounds: int
    estimation: float  # of θ*: what a confidence interval costs
    bias: float  # what a bias that is too large costs
    lack: float  # what a bias that is too small costs
    chance: float  # of the event that the rest does not hold
    early: float = 0.0  # rounds in which ζ(t) is still too small, each of which costs 1

    @property
    def total(self) -> float:
        """Return the bound."""
        return self.estimation + self.bias + self.lack + self.chance + self.early

    @property
    def is_vacuous(self) -> bool:
        """Return whether the bound is at least T, which bounds any regret as rewards are from 0 to 1."""
        return self.total >= self.rounds


def ga_bound(
    H: Float[np.ndarray, "n n"],
    *,
    rounds: int,
    norm: float,
    ridge: float = 0.001,
    bias: float = 1.0,
    noise: float = 0.5,
    delta: float = 0.05,
    curvature: tuple[float, float] = (1.0, 1.0),
    zeta: Callable[[int], float] = one_plus_log,
) -> RegretBound:
    """Return the bound of Theorem 1 for α(t) = bias · √t, by a corrected form of its proof.

    With κ = U_b/L_b, c(t) = ζ(t)/(ζ(t) − κ²) and D = log det(I + H/λ) + 1, a round with ζ(t) > 2κ² costs
    at most

        (1 + κ c) γ̄ y + (1 + κ c) (α/L_b) y² + (U_b c/(4α)) γ̄²,    y = ‖g(x_t)/√m‖_{Z̄⁻¹},    Σ min{y², 1} ≤ 2D,

    any other round 1, and the event that this does not hold π²/6 in all. With U_b = L_b and c = 1 the first
    three are 2 γ̄ √(2T D), (4 α(T)/L_b) D and (L_b/4) γ̄² Σ 1/α(t). docs/explanation/theory.md says where
    the printed proof differs.

    The proof needs L_b ≤ 1 ≤ U_b, as the ridge has the curvature λ whatever b″ is. A likelihood for which this
    does not hold is multiplied by a number, and λ and α with it, which leaves every choice as it is.
    """
    L_b, U_b = curvature
    if not 0 < L_b <= U_b or not 0 < bias < math.inf:
        raise SettingError(
            f"`curvature` must be 0 < L_b ≤ U_b, and `bias` positive, got {curvature} and {bias}; a "
            "Bernoulli likelihood has L_b > 0 only where f is bounded, see `curvature_bounds`"
        )
    factor = 1 / min(max(1.0, L_b), U_b)  # of the likelihood, so that L_b ≤ 1 ≤ U_b
    L_b, U_b, ridge, bias = (factor * constant for constant in (L_b, U_b, ridge, bias))
    kappa = U_b / L_b
    D = _log_determinant(H, rounds, ridge) + 1
    gamma = confidence_radius(D - 1, norm=norm, ridge=ridge, noise=noise, delta=delta)
    times = np.arange(1, rounds + 1)
    zetas = np.array([zeta(int(t)) for t in times])
    is_late = zetas > LATE * kappa**2
    alphas, zetas = bias * np.sqrt(times[is_late]), zetas[is_late]
    c = zetas / (zetas - kappa**2)
    # A term a·y or a·y² above 1 counts as 1, so that a below 1 counts as 1 too.
    linear = np.maximum((1 + kappa * c) * gamma, 1)
    square = np.maximum((1 + kappa * c) * alphas / L_b, 1)
    return RegretBound(
        rounds=rounds,
        estimation=math.sqrt(float((linear**2).sum()) * 2 * D),
        bias=float(square.max(initial=0.0)) * 2 * D,
        lack=U_b / 4 * gamma**2 * float((c / alphas).sum()),
        chance=math.pi**2 / 6,
        early=float(rounds - is_late.sum()),
    )


def pc_bound(
    H: Float[np.ndarray, "n n"],
    *,
    rounds: int,
    norm: float,
    ridge: float = 0.001,
    noise: float = 0.5,
    delta: float = 0.05,
) -> RegretBound:
    """Return the bound of Theorem 2 for α(t) = √t and Gaussian likelihood.

    2 γ(T) √(T (2D + 2)) + √T (2D + 2) + √T γ(T)², with D = log det(I + H/λ) and γ(T) = ν√(D − 2 log δ) + √λ S.
    """
    D = _log_determinant(H, rounds, ridge)
    gamma = confidence_radius(D - 1, norm=norm, ridge=ridge, noise=noise, delta=delta)
    root = math.sqrt(rounds)
    return RegretBound(
        rounds=rounds,
        estimation=2 * gamma * root * math.sqrt(2 * D + 2),
        bias=root * (2 * D + 2),
        lack=root * gamma**2,
        chance=0.0,
    )


def _log_determinant(H: Float[np.ndarray, "n n"], rounds: int, ridge: float) -> float:
    n = len(H)
    check_positive("ridge", ridge)
    if rounds < 1 or n % rounds:
        raise SettingError(
            f"{n} contexts cannot be those of {rounds} rounds; give the kernel of the contexts of all "
            "arms in all rounds"
        )
    return float(np.linalg.slogdet(np.eye(n) + np.asarray(H) / ridge)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The requirements of Theorem 1 (GA) or 2 (PC), if the paper's unknown constants are 1."""

    log10_width: float  # log₁₀ of the smallest m, which may be too large for a float
    log10_rate: float  # of the largest η, for that m
    steps: float  # the smallest J; 0 for PC, since Theorem 2 has no such condition


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

    >>> needed = conditions(rounds=15_000, arms=2, ridge=0.001)
    >>> round(needed.log10_width), needed.steps
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


def curvature_bounds(likelihood: Likelihood, *, reach: float = 10.0) -> tuple[float, float]:
    """Return L_b ≤ b″(z) ≤ U_b for |z| ≤ reach, by differences of b′.

    The paper requires L_b > 0 on the whole line, which the Bernoulli likelihood does not satisfy: b″ tends to
    0.

    >>> from rbmle import Mixture
    >>> [round(bound, 3) for bound in curvature_bounds(Mixture(), reach=20.0)]
    [0.5, 0.625]
    """
    check_positive("reach", reach)
    z = np.linspace(-reach, reach, POINTS)
    slopes = np.diff([likelihood.mean(float(at)) for at in z]) / np.diff(z)
    return float(slopes.min()), float(slopes.max())
