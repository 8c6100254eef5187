"""Reward distributions of the exponential family, each as its pair b, b′."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable


@runtime_checkable
class Likelihood(Protocol):
    """log p(r | x; θ) = r f(x; θ) − b(f(x; θ)), up to a term without θ.

    `b` is convex and `mean` is its derivative b′, the mean reward at f. Both are static methods
    from float to float, written with `math` or plain arithmetic, so that the engine can compile
    them. A likelihood is a frozen dataclass: two that are equal are the same likelihood. It may have
    `rewards`, the smallest and the largest reward it can explain; others are refused.
    """

    @staticmethod
    def b(z: float) -> float:
        """Return b(z)."""
        ...

    @staticmethod
    def mean(z: float) -> float:
        """Return b′(z)."""
        ...


def rewards_of(likelihood: Likelihood) -> tuple[float, float]:
    """Return the smallest and the largest reward of a likelihood.

    >>> from rbmle import Bernoulli, Gaussian
    >>> rewards_of(Bernoulli()), rewards_of(Gaussian())
    ((0.0, 1.0), (-inf, inf))
    """
    low, high = getattr(likelihood, "rewards", (-math.inf, math.inf))  # optional in a likelihood
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """b(z) = z²/2, so log p = −½ (f − r)² up to a term without θ."""

    @staticmethod
    def b(z: float) -> float:
        """Return z²/2."""
        return z * z / 2.0

    @staticmethod
    def mean(z: float) -> float:
        """Return z."""
        return z


@dataclass(frozen=True, slots=True, kw_only=True)
class Bernoulli:
    """b(z) = log(1 + eᶻ), so the mean reward is the logistic function of f."""

    rewards: ClassVar[tuple[float, float]] = (0.0, 1.0)  # 1 or 0, or a share of ones

    @staticmethod
    def b(z: float) -> float:
        """Return log(1 + eᶻ)."""
        return max(z, 0.0) + math.log1p(math.exp(-abs(z)))  # eᶻ would overflow for large z

    @staticmethod
    def mean(z: float) -> float:
        """Return 1/(1 + e⁻ᶻ)."""
        small = math.exp(-abs(z))  # eᶻ would overflow for large z
        return (1.0 if z >= 0.0 else small) / (1.0 + small)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """b(z) = (z²/2 + log(1 + eᶻ))/2, the mean of the two.

    The paper adds the two log-likelihoods, −½(f − r)² + r f − log(1 + eᶠ) = 2 (r f − b(f)) + const:
    half of it is canonical in r. With half the λ, half the α and twice the η, all else is as with the sum.
    """

    @staticmethod
    def b(z: float) -> float:
        """Return (z²/2 + log(1 + eᶻ))/2."""
        logistic = max(z, 0.0) + math.log1p(math.exp(-abs(z)))  # eᶻ would overflow for large z
        return (z * z / 2.0 + logistic) / 2.0

    @staticmethod
    def mean(z: float) -> float:
        """Return (z + 1/(1 + e⁻ᶻ))/2."""
        small = math.exp(-abs(z))
        return (z + (1.0 if z >= 0.0 else small) / (1.0 + small)) / 2.0


LIKELIHOODS = (Gaussian, Bernoulli, Mixture)
