"""Everyday problems: noisy clicks, purchases in euros, ratings, costs, and rewards far from zero.

The datasets of the bake-off have labels without noise. Most rewards that users log are different: few
choices are paid for, amounts have heavy tails, and what a context explains is a small part of the variance.
A family draws a problem for each seed. Expected rewards are known exactly, so that a policy can be scored
by the share of the gap between uniform play and the oracle that it closes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import Round

LATE = 50  # rounds after which a reward is known

Vector = Float[np.ndarray, " n"]
Play = Callable[[int, np.random.Generator], tuple[np.ndarray, Vector, Vector]]  # x, rewards, means


class Family(NamedTuple):
    """A kind of problem: its size, and how to draw one of it."""

    arms: int
    features: int
    draw: Callable[[int, int, np.random.Generator], Play]  # of arms, features and a generator
    encoding: Encoding = Encoding.DISJOINT
    delay: int = LATE
    is_held_out: bool = False  # no default was chosen on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyday:
    """A problem of a family; the seed draws its hidden parameters, contexts and rewards.

    >>> world = Everyday(family="clicks")
    >>> world.arms, world.features, world.delay
    (12, 16, 50)
    >>> 0 < world.round(0, seed=0).means.min() < 0.3
    True
    """

    family: str  # a name of FAMILIES

    def __post_init__(self) -> None:
        """Raise SettingError for an unknown family."""
        if self.family not in FAMILIES:
            raise SettingError(
                f"there is no everyday family {self.family!r}; there are {', '.join(FAMILIES)}"
            )

    @property
    def name(self) -> str:
        """Return the name on the command line and in tables."""
        return f"everyday-{self.family}"

    @property
    def arms(self) -> int:
        """Return K."""
        return FAMILIES[self.family].arms

    @property
    def features(self) -> int:
        """Return d."""
        return FAMILIES[self.family].features

    @property
    def encoding(self) -> Encoding:
        """Return how arms see features."""
        return FAMILIES[self.family].encoding

    @property
    def delay(self) -> int:
        """Return how many rounds are decided before a reward is known."""
        return FAMILIES[self.family].delay

    @property
    def is_held_out(self) -> bool:
        """Return whether no default was chosen on this family."""
        return FAMILIES[self.family].is_held_out

    @property
    def rows(self) -> None:
        """Return None: no round comes again."""
        return

    @property
    def settings(self) -> dict[str, Any]:
        """Return all but the seed."""
        return {
            "name": self.name,
            "family": self.family,
            "arms": self.arms,
            "features": self.features,
            "delay": self.delay,
        }

    def round(self, t: int, seed: int) -> Round:
        """Return the context of round t, and a reward for each arm."""
        play = _problem(self.family, seed)
        x, rewards, means = play(t, generator(seed, Purpose.ENVIRONMENT, t))
        return Round(x=x, rewards=rewards, means=means)


def gap_closed(regret: float, uniform: float) -> float:
    """Return the share of the gap between uniform play and the oracle that a policy closes.

    Both regrets are of the same rounds: that of the policy, and the expected one of uniform play.

    >>> gap_closed(regret=30.0, uniform=120.0)
    0.75
    """
    return 1.0 - regret / uniform


def _clicks(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Clicks of 3 to 15 % in most contexts; the log-odds are linear in the features."""
    W = rng.normal(size=(arms, features)) * 0.6 / features**0.5
    level = rng.normal(-2.6, 0.25, arms)

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        means = _logistic(level + W @ x)
        return x, _coins(means, rng), means

    return play


def _segments(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Clicks of visitors who come in eight segments, each with a rate for each arm."""
    segments = 8
    centres = rng.normal(size=(segments, features)) * 1.2
    rates = _logistic(rng.normal(-2.6, 0.8, (segments, arms)))

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        segment = rng.integers(segments)
        x = centres[segment] + rng.normal(size=features) * 0.7
        means = rates[segment].copy()
        return x, _coins(means, rng), means

    return play


def _euros(arms: int, features: int, rng: np.random.Generator) -> Play:
    """The value of a purchase, which most visitors do not make: a coin times a lognormal amount."""
    W = rng.normal(size=(arms, features)) * 0.6 / features**0.5
    V = rng.normal(size=(arms, features)) * 0.3 / features**0.5
    level, size, spread = rng.normal(-2.2, 0.3, arms), rng.normal(3.3, 0.3, arms), 0.8

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        chances, amounts = _logistic(level + W @ x), size + V @ x
        means = chances * np.exp(amounts + spread**2 / 2)
        return x, _coins(chances, rng) * rng.lognormal(amounts, spread), means

    return play


def _offset_linear(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Amounts around 250 that are linear in the features, with as much noise as signal."""
    W = rng.normal(size=(arms, features)) * 10.0 / features**0.5

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        means = 250.0 + W @ x
        return x, rng.normal(means, 15.0), means

    return play


def _offset_nonlinear(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Amounts around 250 by a random network of the features."""
    units = 6
    A = rng.normal(size=(units, features)) * 1.5 / features**0.5
    shift = rng.normal(size=units) * 0.5
    W = rng.normal(size=(arms, units)) * 12.0 / units**0.5

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        means = 250.0 + W @ np.tanh(2 * (A @ x + shift))
        return x, rng.normal(means, 15.0), means

    return play


def _ratings(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Stars from 1 to 5: a latent liking by taste and quality, rounded."""
    tastes = 4
    A = rng.normal(size=(tastes, features)) / features**0.5
    W, quality, spread = rng.normal(size=(arms, tastes)) * 0.6, rng.normal(3.2, 0.3, arms), 1.0
    edges = np.array([1.5, 2.5, 3.5, 4.5])

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = np.r_[1.0, rng.normal(size=features - 1)]
        liking = quality + W @ (A @ x)
        above = (liking[:, None] - edges) / spread
        means = 1.0 + _normal_cdf(above).sum(axis=1)
        stars = np.clip(np.round(rng.normal(liking, spread)), 1, 5)
        return x, stars, means

    return play


def _costs(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Costs as negative rewards: lognormal, so that the few large ones count most."""
    W = rng.normal(size=(arms, features)) * 0.35 / features**0.5
    level, spread = rng.normal(2.0, 0.15, arms), 0.6

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        logs = level + W @ x
        return x, -rng.lognormal(logs, spread), -np.exp(logs + spread**2 / 2)

    return play


def _many_arms(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Clicks on one of fifty offers, for visitors of whom a few numbers are known."""
    W = rng.normal(size=(arms, features)) * 0.7 / features**0.5
    level = rng.normal(-1.8, 0.6, arms)

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = np.r_[1.0, rng.normal(size=features - 1)]
        means = _logistic(level + W @ x)
        return x, _coins(means, rng), means

    return play


def _sparse(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Clicks by ten of two hundred words, of which some are common and most are rare."""
    W = rng.normal(size=(arms, features)) * 0.35
    level = rng.normal(-1.6, 0.3, arms)
    chances = 1.0 / np.arange(1, features + 1)
    chances /= chances.sum()

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = np.zeros(features)
        x[rng.choice(features, 10, p=chances)] = 1.0
        means = _logistic(level + W @ x)
        return x, _coins(means, rng), means

    return play


def _weak(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Three versions of a page, one a little better for all, with a small effect of the context."""
    W = rng.normal(size=(arms, features)) * 0.3 / features**0.5
    level = rng.permutation(np.linspace(-2.2, -1.7, arms))

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = np.r_[1.0, rng.normal(size=features - 1)]
        means = _logistic(level + W @ x)
        return x, _coins(means, rng), means

    return play


def _prices(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Prices: a low one is taken often, a high one pays more; who takes which depends on the visitor."""
    prices = np.linspace(5.0, 40.0, arms)
    w, v = rng.normal(size=features) * 0.8 / features**0.5, rng.normal(size=features)
    v *= 0.4 / np.linalg.norm(v)
    steep = rng.uniform(0.06, 0.1)

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        chances = _logistic(0.3 + w @ x - steep * np.exp(v @ x) * prices)
        return x, _coins(chances, rng) * prices, chances * prices

    return play


def _heavy_tails(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Gains and losses with Student noise of three degrees of freedom around a linear mean."""
    W = rng.normal(size=(arms, features)) / features**0.5
    level = rng.normal(0, 0.3, arms)

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        means = level + W @ x
        return x, means + 1.5 * rng.standard_t(3, arms), means

    return play


def _drift(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Clicks whose tastes turn, slowly and for good, over some thousand rounds."""
    W, U = rng.normal(size=(2, arms, features)) * 0.7 / features**0.5
    level = rng.normal(-1.6, 0.3, arms)

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = np.r_[1.0, rng.normal(size=features - 1)]
        angle = t / 4000 * math.pi / 2
        means = _logistic(level + (math.cos(angle) * W + math.sin(angle) * U) @ x)
        return x, _coins(means, rng), means

    return play


def _catalogue(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Minutes of reading for forty articles a round, each with features of its own and of the visitor."""
    users, half = 5, features - 5
    items = rng.normal(size=(200, half))
    B, quality = rng.normal(size=(users, half)) * 0.6 / half**0.5, rng.normal(size=half) * 0.3

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        user, offered = rng.normal(size=users), items[rng.choice(200, arms, replace=False)]
        logs = 0.5 + offered @ quality / 2 + np.tanh(offered @ (user @ B))
        X = np.concatenate([np.tile(user, (arms, 1)), offered], axis=1)
        return X, rng.lognormal(logs, 0.8), np.exp(logs + 0.32)

    return play


def _late(arms: int, features: int, rng: np.random.Generator) -> Play:
    """Renewals that are known five hundred rounds later; regions of the context have their own arm."""
    A, rates = rng.normal(size=(3, features)) / features**0.5, rng.uniform(0.1, 0.6, (8, arms))

    def play(t: int, rng: np.random.Generator) -> tuple[np.ndarray, Vector, Vector]:
        x = rng.normal(size=features)
        means = rates[int((A @ x > 0) @ np.array([1, 2, 4]))].copy()
        return x, _coins(means, rng), means

    return play


FAMILIES: dict[str, Family] = {
    "clicks": Family(12, 16, _clicks),
    "segments": Family(12, 16, _segments),
    "euros": Family(5, 10, _euros),
    "offset-linear": Family(12, 16, _offset_linear),
    "offset-nonlinear": Family(12, 16, _offset_nonlinear),
    "ratings": Family(12, 16, _ratings),
    "costs": Family(12, 16, _costs),
    "many-arms": Family(50, 8, _many_arms),
    "sparse": Family(8, 200, _sparse),
    "weak": Family(3, 8, _weak),
    "prices": Family(8, 10, _prices, is_held_out=True),
    "heavy-tails": Family(8, 12, _heavy_tails, is_held_out=True),
    "drift": Family(8, 12, _drift, is_held_out=True),
    "catalogue": Family(40, 15, _catalogue, encoding=Encoding.PER_ARM, is_held_out=True),
    "late": Family(6, 12, _late, delay=500, is_held_out=True),
}
EVERYDAY: dict[str, Everyday] = {
    world.name: world for world in (Everyday(family=family) for family in FAMILIES)
}


@lru_cache(maxsize=16)
def _problem(family: str, seed: int) -> Play:
    """Return the problem that a seed draws."""
    arms, features, draw, *_ = FAMILIES[family]
    return draw(arms, features, generator(seed, Purpose.ENVIRONMENT, "hidden"))


def _logistic(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


def _coins(chances: Vector, rng: np.random.Generator) -> Vector:
    return (rng.random(len(chances)) < chances).astype(np.float64)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _normal_cdf(z: np.ndarray) -> np.ndarray:
    return (1.0 + _erf(z / math.sqrt(2.0))) / 2.0
