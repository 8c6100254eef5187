"""α(t) and ζ(t), as values."""

import math
from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """A positive function of the paper's round t = 1, 2, …"""

    def __call__(self, t: int) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """t^n; a policy's α(t) is its bias ν times this, with n = ½ in the paper.

    >>> Power(exponent=0.5)(9)
    3.0
    """

    exponent: float = 0.5  # n

    def __call__(self, t: int) -> float:
        return float(t**self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logarithm:
    """1 + log t, the paper's example of ζ(t).

    >>> Logarithm()(1)
    1.0
    """

    def __call__(self, t: int) -> float:
        return 1.0 + math.log(t)
