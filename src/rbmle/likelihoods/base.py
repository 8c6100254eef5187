"""What a likelihood promises: the exponential family in canonical form."""

import math
from typing import Protocol, runtime_checkable


@runtime_checkable
class Likelihood(Protocol):
    """log p(r | x; θ) = r f(x; θ) − b(f(x; θ)), up to a term without θ.

    `b` is convex and `mean` is its derivative b′, the mean reward at f. Both are static methods
    from float to float, written with `math` or plain arithmetic, so that the engine can compile
    them. A likelihood is a frozen dataclass: two that are equal are the same likelihood. It may have
    `rewards`, the smallest and the largest reward it can explain; others are refused.
    """

    @staticmethod
    def b(z: float) -> float:
        """Return b(z)."""
        ...

    @staticmethod
    def mean(z: float) -> float:
        """Return b′(z)."""
        ...


def rewards_of(likelihood: Likelihood) -> tuple[float, float]:
    """Return the smallest and the largest reward of a likelihood.

    >>> from rbmle import Bernoulli, Gaussian
    >>> rewards_of(Bernoulli()), rewards_of(Gaussian())
    ((0.0, 1.0), (-inf, inf))
    """
    low, high = getattr(likelihood, "rewards", (-math.inf, math.inf))  # a user's own need not say
    return low, high
