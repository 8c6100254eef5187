"""Synthetic problems: the reward functions of the NeuralUCB paper with noise, and coins without a context.

Zhou, Li, Gu (2020), section 7.1.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import no_such
from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import Round

PerArm = Float[np.ndarray, " arms"]


class RewardFunction(Protocol):
    """A function h on the unit sphere, whose hidden parameters are drawn."""

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "RewardFunction":
        """Return h with its hidden parameters."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound of h for ‖x‖ = 1."""
        ...

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> PerArm:
        """Return h of each context."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadratic:
    """h(x) = 10 (xᵀa)².

    a is uniform on the unit sphere.
    """

    a: Float[np.ndarray, " features"]
    bounds: ClassVar = (0.0, 10.0)

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "Quadratic":
        return Quadratic(a=on_sphere(1, features, rng)[0])

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> PerArm:
        return 10 * (contexts @ self.a) ** 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InnerProduct:
    """h(x) = xᵀAᵀAx.

    The entries of A are from N(0, 1).
    """

    A: Float[np.ndarray, "features features"]
    largest: float  # eigenvalue of AᵀA

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "InnerProduct":
        A = rng.normal(size=(features, features))
        return InnerProduct(A=A, largest=float(np.linalg.norm(A, 2)) ** 2)

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, self.largest

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> PerArm:
        return ((contexts @ self.A.T) ** 2).sum(axis=1)  # ‖Ax‖²


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cosine:
    """h(x) = cos(3 xᵀa).

    a is uniform on the unit sphere.
    """

    a: Float[np.ndarray, " features"]
    bounds: ClassVar = (-1.0, 1.0)

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "Cosine":
        return Cosine(a=on_sphere(1, features, rng)[0])

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> PerArm:
        return np.cos(3 * (contexts @ self.a))


FUNCTIONS: dict[str, type[RewardFunction]] = {
    "quadratic": Quadratic,
    "inner-product": InnerProduct,
    "cosine": Cosine,
}


def on_sphere(n: int, features: int, rng: np.random.Generator) -> Float[np.ndarray, "n features"]:
    """Return points drawn uniformly from the unit sphere."""
    X = rng.normal(size=(n, features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Noise(Protocol):
    """Makes rewards random; `means` is a fixed, increasing, affine map of h."""

    suffix: ClassVar[str]  # of a problem's name

    @property
    def settings(self) -> dict[str, Any]:
        """Return everything that determines the noise, as JSON."""
        ...

    def means(self, h: PerArm, bounds: tuple[float, float]) -> PerArm:
        """Return the expected rewards for an h within the bounds."""
        ...

    def rewards(self, means: PerArm, rng: np.random.Generator) -> PerArm:
        """Return a reward for each arm."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """r = h(x) + ξ, ξ from N(0, σ²)."""

    deviation: float = 1.0  # σ
    suffix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < float("inf"):
            raise SettingError(
                f"`deviation` (σ) must be a finite number of at least 0, got {self.deviation}"
            )

    @property
    def settings(self) -> dict[str, Any]:
        return {"noise": "gaussian", "deviation": float(self.deviation)}

    def means(self, h: PerArm, bounds: tuple[float, float]) -> PerArm:
        return h

    def rewards(self, means: PerArm, rng: np.random.Generator) -> PerArm:
        return rng.normal(means, self.deviation)


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliNoise:
    """r = 1 with probability (h(x) − low) / (high − low), else 0; low and high bound h."""

    suffix: ClassVar[str] = "-bernoulli"
    settings: ClassVar = {"noise": "bernoulli"}

    def means(self, h: PerArm, bounds: tuple[float, float]) -> PerArm:
        low, high = bounds
        return (h - low) / (high - low)

    def rewards(self, means: PerArm, rng: np.random.Generator) -> PerArm:
        return (rng.random(len(means)) < means).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """A context for each arm, drawn from the unit sphere, and rewards h(x) with noise.

    The seed determines everything: contexts, noise, and the hidden parameters of h. So a mean over seeds is one
    over problems too, and problems that differ only in h or noise have equal contexts.
    """

    function: str  # h, a name of FUNCTIONS
    noise: Noise = field(default_factory=GaussianNoise)
    arms: int = 4  # K, as in the paper
    features: int = 20  # d, as in the paper
    encoding: ClassVar = Encoding.PER_ARM
    rows: ClassVar = None  # no round comes again

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise SettingError(no_such("reward function", self.function, FUNCTIONS))
        for name, number in (("arms", self.arms), ("features", self.features)):
            if number < 1 or number != int(number):
                raise SettingError(f"`{name}` must be an integer of at least 1, got {number}")

    @property
    def name(self) -> str:
        return self.function + self.noise.suffix

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "function": self.function,
            "arms": int(self.arms),
            "features": int(self.features),
            **self.noise.settings,
        }

    def round(self, t: int, seed: int) -> Round:
        rng = generator(seed, Purpose.ENVIRONMENT, t)
        h = _draw_function(self.function, self.features, seed)
        contexts = on_sphere(self.arms, self.features, rng)
        means = self.noise.means(h.values(contexts), h.bounds)
        return Round(x=contexts, rewards=self.noise.rewards(means, rng), means=means)


@lru_cache(maxsize=8)
def _draw_function(function: str, features: int, seed: int) -> RewardFunction:
    return FUNCTIONS[function].draw(features, generator(seed, Purpose.ENVIRONMENT, "hidden"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins:
    """r = 1 with the arm's chance, else 0. A context is a constant, and features without information."""

    chances: tuple[float, ...] = (0.45, 0.55)
    irrelevant: int = 0  # features from N(0, 1), beside the constant
    name: str = "coins"
    encoding: ClassVar = Encoding.DISJOINT
    rows: ClassVar = None  # no round comes again

    def __post_init__(self) -> None:
        if not self.chances or not all(0 <= chance <= 1 for chance in self.chances):
            raise SettingError(
                f"`chances` must be probabilities, one for each arm, got {self.chances}"
            )
        if self.irrelevant < 0:
            raise SettingError(f"`irrelevant` must be 0 or more, got {self.irrelevant}")

    @property
    def arms(self) -> int:
        return len(self.chances)

    @property
    def features(self) -> int:
        return 1 + self.irrelevant

    @property
    def settings(self) -> dict[str, Any]:
        chances = [float(chance) for chance in self.chances]
        return {"name": self.name, "chances": chances, "irrelevant": self.irrelevant}

    def round(self, t: int, seed: int) -> Round:
        rng = generator(seed, Purpose.ENVIRONMENT, t)
        means = np.array(self.chances)
        rewards = (rng.random(len(means)) < means).astype(np.float64)
        return Round(x=np.r_[1.0, rng.normal(size=self.irrelevant)], rewards=rewards, means=means)
