"""Σ N / Σ D over rounds: what every estimate is, and of what its intervals are made."""

from typing import NamedTuple


class Ratio(NamedTuple):
    """Sums of N, D and their products."""

    n: float = 0.0
    d: float = 0.0
    nn: float = 0.0
    nd: float = 0.0
    dd: float = 0.0

    @property
    def value(self) -> float | None:
        """Return Σ N / Σ D; None if no round counts."""
        return self.n / self.d if self.d else None

    def squares(self, value: float) -> float:
        """Return Σ (N − V D)²."""
        return max(0.0, self.nn - 2 * value * self.nd + value * value * self.dd)
