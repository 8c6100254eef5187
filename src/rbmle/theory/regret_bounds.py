"""The regret bounds of Theorems 1 and 2, with the constants that their proofs give them."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.numbers import check_positive


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
    """A bound as the sum of its terms, for networks so wide that all else vanishes."""

    rounds: int
    estimation: float  # of θ*: what a confidence interval costs
    bias: float  # what a bias that is too large costs
    lack: float  # what a bias that is too small costs
    chance: float  # of the event that the rest does not hold

    @property
    def total(self) -> float:
        """Return the bound."""
        return self.estimation + self.bias + self.lack + self.chance

    @property
    def is_vacuous(self) -> bool:
        """Return whether it says nothing: rewards are from 0 to 1, so T bounds any regret."""
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
) -> RegretBound:
    """Return the bound of Theorem 1 for α(t) = bias · √t.

    2 γ̄_T √(2T D) + (4 α(T)/U_b) D + (L_b/4) γ̄_T² Σ 1/α(t) + log T, with D = log det(I + H/λ) + 1. The last line
    of the appendix has other constants in three of these, which do not follow from its others: docs/theory.md.
    """
    D = _log_determinant(H, rounds, ridge) + 1
    L_b, U_b = curvature
    if not 0 < L_b <= U_b or not 0 < bias < math.inf:
        raise SettingError(
            f"`curvature` must be 0 < L_b ≤ U_b, and `bias` positive, got {curvature} and {bias}; a "
            "Bernoulli likelihood has L_b > 0 only where f is bounded, see `curvature_bounds`"
        )
    gamma = confidence_radius(D - 1, norm=norm, ridge=ridge, noise=noise, delta=delta)
    alphas = bias * np.sqrt(np.arange(1, rounds + 1))
    return RegretBound(
        rounds=rounds,
        estimation=2 * gamma * math.sqrt(2 * rounds * D),
        bias=4 * float(alphas[-1]) / U_b * D,
        lack=L_b / 4 * gamma**2 * float((1 / alphas).sum()),
        chance=math.log(rounds),
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
    """Return log det(I + H/λ), which is d̃ log(1 + TK/λ), for the contexts of all arms in all rounds."""
    n = len(H)
    check_positive("ridge", ridge)
    if rounds < 1 or n % rounds:
        raise SettingError(
            f"{n} contexts cannot be those of {rounds} rounds; give the kernel of the contexts of all "
            "arms in all rounds"
        )
    return float(np.linalg.slogdet(np.eye(n) + np.asarray(H) / ridge)[1])
