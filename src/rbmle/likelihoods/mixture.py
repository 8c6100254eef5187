"""The mixture of Gaussian and Bernoulli likelihood, variant (iii) of the paper's section 6."""

import math
from dataclasses import dataclass


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
