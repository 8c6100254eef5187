"""The reward functions h of the NeuralUCB paper (Zhou, Li, Gu 2020, section 7.1), on the unit sphere."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float


class RewardFunction(Protocol):
    """A known h; what a policy does not know of it is drawn."""

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "RewardFunction":
        """Return h with its hidden parameters."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """Return two numbers that h lies between wherever ‖x‖ = 1."""
        ...

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> Float[np.ndarray, " arms"]:
        """Return h of each context."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadratic:
    """h(x) = 10 (xᵀa)².

    a is uniform on the unit sphere.
    """

    a: Float[np.ndarray, " features"]

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "Quadratic":
        """Draw a."""
        return Quadratic(a=on_sphere(1, features, rng)[0])

    @property
    def bounds(self) -> tuple[float, float]:
        """Return 0 and 10."""
        return 0.0, 10.0

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> Float[np.ndarray, " arms"]:
        """Return h of each context."""
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
        """Draw A."""
        A = rng.normal(size=(features, features))
        return InnerProduct(A=A, largest=float(np.linalg.norm(A, 2)) ** 2)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return 0 and the largest eigenvalue of AᵀA."""
        return 0.0, self.largest

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> Float[np.ndarray, " arms"]:
        """Return h of each context."""
        return ((contexts @ self.A.T) ** 2).sum(axis=1)  # ‖Ax‖²


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cosine:
    """h(x) = cos(3 xᵀa).

    a is uniform on the unit sphere.
    """

    a: Float[np.ndarray, " features"]

    @staticmethod
    def draw(features: int, rng: np.random.Generator) -> "Cosine":
        """Draw a."""
        return Cosine(a=on_sphere(1, features, rng)[0])

    @property
    def bounds(self) -> tuple[float, float]:
        """Return −1 and 1."""
        return -1.0, 1.0

    def values(self, contexts: Float[np.ndarray, "arms features"]) -> Float[np.ndarray, " arms"]:
        """Return h of each context."""
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
