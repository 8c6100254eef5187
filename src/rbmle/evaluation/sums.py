"""Sums in constant memory, from which estimates Σ N / Σ D and their intervals are computed."""

from typing import NamedTuple

import msgspec
import numpy as np
from jaxtyping import Float


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


MOST = 1_024  # blocks; once there are as many rounds, from MOST to 2 · MOST − 1


class RatioSums:
    """Sums of N, D and their products, and of N and D over blocks of consecutive rounds.

    A block is one round at first. When there are twice MOST blocks, neighbours are joined.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self.ratio = Ratio()
        self._blocks = np.empty((0, 2))
        self._rest = np.empty((0, 2))  # rounds that do not fill a block yet
        self._width = 1  # rounds of a block

    def add(self, n: Float[np.ndarray, " rounds"], d: Float[np.ndarray, " rounds"]) -> None:
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
        return self.ratio.value

    @property
    def blocks(self) -> Float[np.ndarray, "blocks 2"]:
        """Return the sums of N and D over blocks, the last of which may have fewer rounds."""
        if not len(self._rest):
            return self._blocks
        return np.concatenate([self._blocks, self._rest.sum(axis=0, keepdims=True)])


SMALLEST = 1e-6  # a smaller probability counts as 0: a single weight would dominate the sum


class WeightSums(msgspec.Struct, array_like=True):
    """Sums of weights, of weighted rewards and of their products."""

    plays: int = 0  # n
    unsupported: int = 0  # plays that say nothing: the policy's action could not have been played
    w: float = 0.0  # Σ w
    wr: float = 0.0
    ww: float = 0.0
    wwr: float = 0.0
    wwrr: float = 0.0

    def add(self, weight: float | None, reward: float) -> None:
        """Count a play; a weight of None means that it says nothing about the policy."""
        if weight is None:
            self.unsupported += 1
            return
        self.plays += 1
        self.w += weight
        self.wr += weight * reward
        self.ww += weight * weight
        self.wwr += weight * weight * reward
        self.wwrr += weight * weight * reward * reward

    def add_all(
        self, weights: Float[np.ndarray, " rounds"], rewards: Float[np.ndarray, " rounds"]
    ) -> None:
        weighted = weights * rewards
        self.plays += len(weights)
        self.w += float(weights.sum())
        self.wr += float(weighted.sum())
        self.ww += float((weights * weights).sum())
        self.wwr += float((weights * weighted).sum())
        self.wwrr += float((weighted * weighted).sum())

    def merged(self, later: "WeightSums") -> "WeightSums":
        return WeightSums(*(getattr(self, f) + getattr(later, f) for f in self.__struct_fields__))

    @property
    def effective(self) -> float:
        """Return (Σ w)² / Σ w², how many plays of weight 1 these are worth (Kish 1965)."""
        return self.w * self.w / self.ww if self.ww else 0.0

    @property
    def ips(self) -> Ratio:
        """Return the estimate by inverse propensity, N = w r and D = 1.

        >>> sums = WeightSums()
        >>> sums.add_all(np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))
        >>> sums.ips.value, sums.snips.value
        (0.5, 0.5)
        """
        return Ratio(self.wr, self.plays, self.wwrr, self.wr, self.plays)

    @property
    def snips(self) -> Ratio:
        """Return the self-normalised estimate, N = w r and D = w."""
        return Ratio(self.wr, self.w, self.wwrr, self.wwr, self.ww)
