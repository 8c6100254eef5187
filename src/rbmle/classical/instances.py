"""Problems without contexts: arms whose rewards have one distribution each."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import SettingError

Rewards = Float[np.ndarray, " runs"]


class Instance(Protocol):
    """Arms with known means, how they pay, and how well one mean can be told from another."""

    @property
    def means(self) -> tuple[float, ...]:
        """Return the mean reward of each arm."""
        ...

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return what the arms pay that are played in one round of many runs."""
        ...

    def divergence(self, p: float, q: float) -> float:
        """Return KL(p ‖ q) of the rewards of arms with these means."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliArms:
    """Arms that pay 1 with a probability of their own, else 0."""

    means: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise SettingError unless there are probabilities."""
        if not self.means or not all(0 <= mean <= 1 for mean in self.means):
            raise SettingError(
                f"`means` must be probabilities from 0 to 1, one for each arm, got {self.means}"
            )

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return what the arms pay that are played in one round of many runs."""
        return (rng.random(len(played)) < np.take(self.means, played)).astype(np.float64)

    def divergence(self, p: float, q: float) -> float:
        """Return p log(p/q) + (1 − p) log((1 − p)/(1 − q))."""
        return _weighed_log(p, q) + _weighed_log(1 - p, 1 - q)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianArms:
    """Arms that pay their mean and Gaussian noise."""

    means: tuple[float, ...]
    deviation: float = 1.0  # σ

    def __post_init__(self) -> None:
        """Raise SettingError unless means are finite, and the deviation is above 0."""
        if not self.means or not all(map(math.isfinite, self.means)):
            raise SettingError(
                f"`means` must be finite numbers, one for each arm, got {self.means}"
            )
        if not 0 < self.deviation < math.inf:
            raise SettingError(f"`deviation` must be a finite number above 0, got {self.deviation}")

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return what the arms pay that are played in one round of many runs."""
        return np.take(self.means, played) + self.deviation * rng.normal(size=len(played))

    def divergence(self, p: float, q: float) -> float:
        """Return (p − q)²/(2σ²)."""
        return (p - q) ** 2 / (2 * self.deviation**2)


def lai_robbins(instance: Instance) -> float:
    """Return c = Σ_a Δ_a/KL(μ_a ‖ μ*) over the arms that are not best.

    Lai and Robbins (1985): where regret is o(tⁿ) for every n > 0 in every instance, it is at least c log t in
    the limit.

    >>> lai_robbins(GaussianArms(means=(0.0, 0.5)))
    4.0
    """
    best = max(instance.means)
    worse = [mean for mean in instance.means if mean < best]
    return sum((best - mean) / instance.divergence(mean, best) for mean in worse)


def _weighed_log(p: float, q: float) -> float:
    """Return p log(p/q), which is 0 for p = 0 and infinite for q = 0."""
    if p == 0:
        return 0.0
    return p * math.log(p / q) if q > 0 else math.inf
