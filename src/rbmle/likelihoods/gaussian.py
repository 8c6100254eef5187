"""The Gaussian likelihood, variant (i) of the paper's section 6."""

from dataclasses import dataclass


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
