"""Policies without contexts: RBMLE for exponential families, UCB1, KL-UCB and Thompson sampling.

They know an arm by how often it was played and by its mean reward.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import check_not_negative
from rbmle.core.choosing import shares
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Observation, Probabilities
from rbmle.engine.compiled import scalar
from rbmle.engine.exponential_family import biased_maxima, divergence_bounds
from rbmle.likelihoods import Bernoulli, Likelihood, rewards_of
from rbmle.policies.schedules import Logarithm, Schedule

UNPLAYED = 1e100  # the index of an arm that was never played: all are played once
# One number for each arm, in one run or in many at once.
Arms = Float[np.ndarray, "*runs arms"]


@dataclass(slots=True, kw_only=True)
class ArmState:
    """How often each arm was played, and the sum of its rewards."""

    plays: Float[np.ndarray, " arms"]  # N
    totals: Float[np.ndarray, " arms"]  # S
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPolicy(ABC):
    """Base class for policies without contexts, which a `Bandit` can use like any other policy."""

    ignores_contexts: ClassVar[bool] = True

    @abstractmethod
    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm in round t = 1, 2, …, where all `plays` are at least 1."""

    def of_arms(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm, including those that were never played."""
        return np.where(plays > 0, self.of_played(np.maximum(plays, 1.0), totals, t, rng), UNPLAYED)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (-math.inf, math.inf)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> ArmState:
        """Return the state before any data."""
        return ArmState(plays=np.zeros(blocks), totals=np.zeros(blocks), round=0)

    def index(self, state: ArmState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the index of each arm that is offered."""
        indices = self.of_arms(state.plays, state.totals, state.round + 1, rng)
        return indices[contexts.rows.blocks]

    def predict(self, state: ArmState, contexts: Contexts) -> Indices:
        """Return the mean reward of each arm that is offered; 0 if it was never played."""
        return (state.totals / np.maximum(state.plays, 1.0))[contexts.rows.blocks]

    def update(self, state: ArmState, seen: Observation, rng: np.random.Generator) -> None:
        """Count the play, and add its reward."""
        (block,) = seen.context.rows.blocks
        state.plays[block] += 1
        state.totals[block] += seen.reward
        state.round += 1

    def grow(self, state: ArmState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more arms."""
        more = blocks - len(state.plays)
        state.plays, state.totals = np.pad(state.plays, (0, more)), np.pad(state.totals, (0, more))


def weigh_draws(
    policy: ArmPolicy, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
) -> tuple[Indices, Probabilities | None]:
    """Return one draw of a random index, and the share of `draws` in which each arm comes first."""
    indices = np.stack([policy.index(state, contexts, rng) for _ in range(max(draws, 1))])
    return indices[0], shares(indices).mean(axis=0) if draws else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RBMLE(ArmPolicy):
    """Index [max_z { N (p z − b(z)) + α z } − max_z { N (p z − b(z)) }] / α, with α(t) = ν · growth(t).

    p is the mean of N rewards, whose log-likelihood for an arm with the mean b′(z) is N (p z − b(z)). The first
    maximum is where b′(z) = p + α/N: with b* the convex conjugate of b, the index is N [b*(p + α/N) − b*(p)]/α.
    That is p + α/(2N) for Gaussian rewards; b*(q) = q log q + (1 − q) log(1 − q) for Bernoulli ones, and
    docs/explanation/classical.md explains q ≥ 1. With a bias below 0, arms that were never played come last.

    Liu, Hsieh, Hung, Bhattacharya, Kumar 2020, "Exploration through reward biasing".
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    bias: float = 1.0  # ν
    growth: Schedule = field(default_factory=Logarithm)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < abs(self.bias) < float("inf"):
            raise SettingError(
                f"`bias` must be a finite number other than 0, got {self.bias}; a tiny one is greedy"
            )

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    def of_arms(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm, including those that were never played."""
        played = self.of_played(np.maximum(plays, 1.0), totals, t, rng)
        return np.where(plays > 0, played, np.copysign(UNPLAYED, self.bias))

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the index of each arm that was played."""
        alpha = self.bias * self.growth(t)
        b, mean = scalar(self.likelihood.b), scalar(self.likelihood.mean)
        maxima = np.empty(plays.size)
        biased_maxima(b, mean, plays.ravel(), totals.ravel(), alpha, maxima)
        return maxima.reshape(plays.shape) / alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class UCB1(ArmPolicy):
    """Index p + γ √(2 log t / N); γ is 1 for rewards from 0 to 1, and σ for those with Gaussian noise.

    Auer, Cesa-Bianchi, Fischer 2002, "Finite-time analysis of the multiarmed bandit problem".
    """

    exploration: float = 1.0  # γ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the mean and its confidence width."""
        return totals / plays + self.exploration * np.sqrt(2 * math.log(t) / plays)


@dataclass(frozen=True, slots=True, kw_only=True)
class KLUCB(ArmPolicy):
    """Index max { q : N KL(p ‖ q) ≤ γ log t }, with the divergence of the likelihood's family.

    The level is log t, as the authors advise in practice; their proof has log t + 3 log log t.

    Garivier, Cappé 2011, "The KL-UCB algorithm for bounded stochastic bandits and beyond".
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    exploration: float = 1.0  # γ: σ² for Gaussian rewards with the deviation σ

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return the upper bound of each arm's mean."""
        b, mean = scalar(self.likelihood.b), scalar(self.likelihood.mean)
        level, bounds = self.exploration * math.log(t), np.empty(plays.size)
        divergence_bounds(b, mean, plays.ravel(), totals.ravel(), level, bounds)
        return bounds.reshape(plays.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaTS(ArmPolicy):
    """Thompson sampling: an index from Beta(c + S, c + N − S), the posterior after S ones in N plays.

    Agrawal, Goyal 2012, "Analysis of Thompson sampling for the multi-armed bandit problem".
    """

    prior: float = 1.0  # c: uniform

    def __post_init__(self) -> None:
        if not 0 < self.prior < float("inf"):
            raise SettingError(f"`prior` must be a finite number above 0, got {self.prior}")

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (0.0, 1.0)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return a draw of each arm's mean."""
        return rng.beta(self.prior + totals, self.prior + plays - totals)

    def weigh(
        self, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and the share of `draws` in which each arm comes first."""
        return weigh_draws(self, state, contexts, draws, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianTS(ArmPolicy):
    """Thompson sampling: an index from N(p, σ²/N), the posterior under a flat prior for noise of deviation σ.

    Agrawal, Goyal 2013, "Further optimal regret bounds for Thompson sampling".
    """

    exploration: float = 1.0  # σ

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def of_played(self, plays: Arms, totals: Arms, t: int, rng: np.random.Generator) -> Arms:
        """Return a draw of each arm's mean."""
        return totals / plays + self.exploration / np.sqrt(plays) * rng.normal(size=plays.shape)

    def weigh(
        self, state: ArmState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and the share of `draws` in which each arm comes first."""
        return weigh_draws(self, state, contexts, draws, rng)
