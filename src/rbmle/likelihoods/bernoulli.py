"""The Bernoulli likelihood, variant (ii) of the paper's section 6."""

import math
from dataclasses import dataclass
from typing import ClassVar


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
