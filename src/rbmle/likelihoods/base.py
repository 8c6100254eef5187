"""What a likelihood promises: the exponential family in canonical form."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Likelihood(Protocol):
    """log p(r | x; θ) = r f(x; θ) − b(f(x; θ)), up to a term without θ.

    `b` is convex and `mean` is its derivative b′, the mean reward at f. Both are static methods
    from float to float, written with `math` or plain arithmetic, so that the engine can compile
    them. A likelihood is a frozen dataclass: two that are equal are the same likelihood.
    """

    @staticmethod
    def b(z: float) -> float:
        """Return b(z)."""
        ...

    @staticmethod
    def mean(z: float) -> float:
        """Return b′(z)."""
        ...
