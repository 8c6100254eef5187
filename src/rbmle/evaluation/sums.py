"""All that an estimate Σ N / Σ D and its intervals need of any number of rounds, in constant memory."""

import numpy as np
from jaxtyping import Float

MOST = (
    1_024  # blocks: at least as many, and fewer than twice as many, once there are that many rounds
)


class RatioSums:
    """Sums of N, D and their products, and of N and D over blocks of rounds that follow each other.

    A block is one round at first. When there are twice MOST blocks, neighbours are joined.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self.n = self.d = self.nn = self.nd = self.dd = 0.0
        self._blocks = np.empty((0, 2))
        self._rest = np.empty((0, 2))  # rounds that do not fill a block yet
        self._width = 1  # rounds of a block

    def add(self, n: Float[np.ndarray, " rounds"], d: Float[np.ndarray, " rounds"]) -> None:
        """Count some rounds."""
        self.rounds += len(n)
        self.n += float(n.sum())
        self.d += float(d.sum())
        self.nn += float((n * n).sum())  # n @ n would wake the threads of a linear algebra library
        self.nd += float((n * d).sum())
        self.dd += float((d * d).sum())
        rest = np.concatenate([self._rest, np.stack([n, d], axis=1)])
        while len(rest) >= self._width:
            room = 2 * MOST - len(self._blocks)
            new = min(room, len(rest) // self._width)
            cut = new * self._width
            filled = rest[:cut].reshape(new, self._width, 2).sum(axis=1)
            self._blocks, rest = np.concatenate([self._blocks, filled]), rest[cut:]
            if len(self._blocks) == 2 * MOST:
                self._blocks = self._blocks.reshape(MOST, 2, 2).sum(axis=1)
                self._width *= 2
        self._rest = rest

    @property
    def value(self) -> float | None:
        """Return Σ N / Σ D; None if no round counts."""
        return self.n / self.d if self.d else None

    @property
    def blocks(self) -> Float[np.ndarray, "blocks 2"]:
        """Return the sums of N and D over blocks, the last of which may have fewer rounds."""
        if not len(self._rest):
            return self._blocks
        return np.concatenate([self._blocks, self._rest.sum(axis=0, keepdims=True)])

    def squares(self, value: float) -> float:
        """Return Σ (N − V D)²."""
        return max(0.0, self.nn - 2 * value * self.nd + value * value * self.dd)
