"""Classical bandit problems, and simulations of many runs on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from rbmle.classical.policies import KLUCB, RBMLE, ArmPolicy, Arms
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.policies.warming import play

Rewards = Float[np.ndarray, " runs"]


class Instance(Protocol):
    """Arms with known means, their rewards, and the divergence between rewards of two means."""

    @property
    def means(self) -> tuple[float, ...]:
        """Return the mean reward of each arm."""
        ...

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return the rewards of the arms that are played in one round of many runs."""
        ...

    def divergence(self, p: float, q: float) -> float:
        """Return KL(p ‖ q) of the rewards of arms with these means."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliArms:
    """Each arm pays 1 with its own probability, else 0."""

    means: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.means or not all(0 <= mean <= 1 for mean in self.means):
            raise SettingError(
                f"`means` must be probabilities from 0 to 1, one for each arm, got {self.means}"
            )

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return the rewards of the arms that are played in one round of many runs."""
        return (rng.random(len(played)) < np.take(self.means, played)).astype(np.float64)

    def divergence(self, p: float, q: float) -> float:
        """Return p log(p/q) + (1 − p) log((1 − p)/(1 − q))."""
        return _weighed_log(p, q) + _weighed_log(1 - p, 1 - q)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianArms:
    """Each arm pays its mean plus Gaussian noise."""

    means: tuple[float, ...]
    deviation: float = 1.0  # σ

    def __post_init__(self) -> None:
        if not self.means or not all(map(math.isfinite, self.means)):
            raise SettingError(
                f"`means` must be finite numbers, one for each arm, got {self.means}"
            )
        if not 0 < self.deviation < math.inf:
            raise SettingError(f"`deviation` must be a finite number above 0, got {self.deviation}")

    def rewards(self, played: Int[np.ndarray, " runs"], rng: np.random.Generator) -> Rewards:
        """Return the rewards of the arms that are played in one round of many runs."""
        return np.take(self.means, played) + self.deviation * rng.normal(size=len(played))

    def divergence(self, p: float, q: float) -> float:
        """Return (p − q)²/(2σ²)."""
        return (p - q) ** 2 / (2 * self.deviation**2)


def lai_robbins(instance: Instance) -> float:
    """Return c = Σ_a Δ_a/KL(μ_a ‖ μ*) over the arms that are not best.

    Lai and Robbins (1985): if the regret of a policy is o(tⁿ) for every n > 0 on every instance, it is at least
    c log t in the limit.

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


def simulate(
    instance: Instance, policy: ArmPolicy, times: Sequence[int], *, runs: int, seed: int = 0
) -> Float[np.ndarray, "runs times"]:
    """Return the regret Σ_t μ* − μ_{a(t)} of each run after each number of rounds in `times`, in order.

    >>> from rbmle.classical import UCB1, BernoulliArms
    >>> simulate(BernoulliArms(means=(0.2, 0.8)), UCB1(), [10, 100], runs=3).shape
    (3, 2)
    """
    if runs < 1:
        raise ValueError(f"`runs` must be 1 or more, got {runs}")
    if list(times) != sorted(times) or (len(times) and times[0] < 0):
        raise ValueError(f"`times` must be 0 or more and in order, got {list(times)}")
    means = np.array(instance.means)
    gaps, every_run = means.max() - means, np.arange(runs)
    plays, totals = np.zeros((runs, len(means))), np.zeros((runs, len(means)))
    regret, regrets_at, t = np.zeros(runs), [], 0
    for end in times:
        while t < end:
            t += 1
            indices = policy.of_arms(plays, totals, t, generator(seed, Purpose.INDEX, t))
            played = pick_largest(indices, generator(seed, Purpose.CHOOSE, t))
            reward = instance.rewards(played, generator(seed, Purpose.ENVIRONMENT, t))
            plays[every_run, played] += 1
            totals[every_run, played] += reward
            regret += gaps[played]
        regrets_at.append(regret.copy())
    return np.stack(regrets_at, axis=1) if regrets_at else np.empty((runs, 0))


def pick_largest(indices: Arms, rng: np.random.Generator) -> Int[np.ndarray, " runs"]:
    """Return the arm with the largest index in each run, at random where several have it."""
    best = indices == indices.max(axis=1, keepdims=True)
    return np.where(best, rng.random(indices.shape), -1.0).argmax(axis=1)


def warm_up() -> None:
    """Compile every kernel of this package: play a few rounds of each policy that has one."""
    play(RBMLE())
    play(KLUCB())
