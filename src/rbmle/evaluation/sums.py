"""All that an estimate Σ N / Σ D and its intervals need of any number of rounds, in constant memory."""

import numpy as np
from jaxtyping import Float

from rbmle.evaluation.ratio import Ratio

MOST = (
    1_024  # blocks: at least as many, and fewer than twice as many, once there are that many rounds
)


class RatioSums:
    """Sums of N, D and their products, and of N and D over blocks of rounds that follow each other.

    A block is one round at first. When there are twice MOST blocks, neighbours are joined.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self.ratio = Ratio()
        self._blocks = np.empty((0, 2))
        self._rest = np.empty((0, 2))  # rounds that do not fill a block yet
        self._width = 1  # rounds of a block

    def add(self, n: Float[np.ndarray, " rounds"], d: Float[np.ndarray, " rounds"]) -> None:
        """Count some rounds."""
        self.rounds += len(n)
        # n @ n would wake the threads of a linear algebra library
        new = (float(terms.sum()) for terms in (n, d, n * n, n * d, d * d))
        self.ratio = Ratio(*(a + b for a, b in zip(self.ratio, new, strict=True)))
        rest = np.concatenate([self._rest, np.stack([n, d], axis=1)])
        while len(rest) >= self._width:
            room = 2 * MOST - len(self._blocks)
            more = min(room, len(rest) // self._width)
            cut = more * self._width
            filled = rest[:cut].reshape(more, self._width, 2).sum(axis=1)
            self._blocks, rest = np.concatenate([self._blocks, filled]), rest[cut:]
            if len(self._blocks) == 2 * MOST:
                self._blocks = self._blocks.reshape(MOST, 2, 2).sum(axis=1)
                self._width *= 2
        self._rest = rest

    @property
    def value(self) -> float | None:
        """Return Σ N / Σ D; None if no round counts."""
        return self.ratio.value

    @property
    def blocks(self) -> Float[np.ndarray, "blocks 2"]:
        """Return the sums of N and D over blocks, the last of which may have fewer rounds."""
        if not len(self._rest):
            return self._blocks
        return np.concatenate([self._blocks, self._rest.sum(axis=0, keepdims=True)])
