"""From h(x) to rewards: Gaussian noise around it, or a coin that it weighs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError


class Noise(Protocol):
    """What makes rewards random; `means` is a fixed, increasing, affine map of h."""

    suffix: ClassVar[str]  # of a problem's name

    @property
    def settings(self) -> dict[str, Any]:
        """Return all that determines the noise, as JSON."""
        ...

    def means(
        self, h: Float[np.ndarray, " arms"], bounds: tuple[float, float]
    ) -> Float[np.ndarray, " arms"]:
        """Return the expected rewards, of an h that lies between the bounds."""
        ...

    def rewards(
        self, means: Float[np.ndarray, " arms"], rng: np.random.Generator
    ) -> Float[np.ndarray, " arms"]:
        """Return a reward for each arm."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """r = h(x) + ξ, ξ from N(0, σ²)."""

    deviation: float = 1.0  # σ

    suffix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Raise SettingError for a deviation that is negative or no number."""
        if not 0 <= self.deviation < float("inf"):
            raise SettingError(
                f"`deviation` (σ) must be a finite number of at least 0, got {self.deviation}"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """Return the name and σ."""
        return {"noise": "gaussian", "deviation": float(self.deviation)}

    def means(
        self, h: Float[np.ndarray, " arms"], bounds: tuple[float, float]
    ) -> Float[np.ndarray, " arms"]:
        """Return h as it is."""
        return h

    def rewards(
        self, means: Float[np.ndarray, " arms"], rng: np.random.Generator
    ) -> Float[np.ndarray, " arms"]:
        """Return the means with noise of their own."""
        return rng.normal(means, self.deviation)


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliNoise:
    """r = 1 with probability (h(x) − low) / (high − low), else 0; low and high bound h."""

    suffix: ClassVar[str] = "-bernoulli"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the name."""
        return {"noise": "bernoulli"}

    def means(
        self, h: Float[np.ndarray, " arms"], bounds: tuple[float, float]
    ) -> Float[np.ndarray, " arms"]:
        """Return the probabilities of a reward of 1."""
        low, high = bounds
        return (h - low) / (high - low)

    def rewards(
        self, means: Float[np.ndarray, " arms"], rng: np.random.Generator
    ) -> Float[np.ndarray, " arms"]:
        """Return ones and zeros."""
        return (rng.random(len(means)) < means).astype(np.float64)
