"""L_b and U_b: the smallest and the largest curvature b″ of a likelihood."""

import numpy as np

from rbmle.core.numbers import check_positive
from rbmle.likelihoods.base import Likelihood

POINTS = 10_001


def curvature_bounds(likelihood: Likelihood, *, reach: float = 10.0) -> tuple[float, float]:
    """Return L_b ≤ b″(z) ≤ U_b for |z| ≤ reach, by differences of b′.

    The paper asks for L_b > 0 on the whole line, which the Bernoulli likelihood has not: b″ tends to 0.

    >>> from rbmle import Mixture
    >>> [round(bound, 3) for bound in curvature_bounds(Mixture(), reach=20.0)]
    [0.5, 0.625]
    """
    check_positive("reach", reach)
    z = np.linspace(-reach, reach, POINTS)
    slopes = np.diff([likelihood.mean(float(at)) for at in z]) / np.diff(z)
    return float(slopes.min()), float(slopes.max())
