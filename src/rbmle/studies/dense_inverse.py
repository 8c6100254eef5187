"""What Z⁻¹ costs as a p × p matrix: a rank-one update with the widths of all arms, or a new inverse."""

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import sger

from rbmle.core.randomness import Purpose, generator

NUMBER_BYTES = 4  # of float32
SHARE = 0.8  # of the free memory that a matrix may take
REPEATS = 3
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Seconds of a round with a p × p inverse."""

    p: int
    update: float  # Z⁻¹ ← Z⁻¹ − uuᵀ/(1 + gᵀu), u = Z⁻¹g
    widths: float  # gᵀZ⁻¹g for each arm

    @property
    def seconds(self) -> float:
        """Return the time of both."""
        return self.update + self.widths


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Seconds of `np.linalg.inv` of a p × p matrix."""

    p: int
    seconds: float


def time_update(p: int, arms: int) -> Update:
    """Measure Sherman and Morrison's update in place, and gᵀZ⁻¹g for each arm; the fastest of some."""
    rng = generator(SEED, Purpose.ENVIRONMENT, p)
    inverse = np.eye(p, dtype=np.float32)
    widths, updates = [], []
    for _ in range(REPEATS):
        G = (rng.normal(size=(arms, p)) / p**0.5).astype(np.float32)
        started = time.perf_counter()
        np.einsum("pi,ip->i", inverse @ G.T, G)
        decided = time.perf_counter()
        sherman_morrison(inverse, G[0])
        widths.append(decided - started)
        updates.append(time.perf_counter() - decided)
    return Update(p=p, update=min(updates), widths=min(widths))


def sherman_morrison(inverse: np.ndarray, g: np.ndarray) -> None:
    """Z⁻¹ ← Z⁻¹ − uuᵀ/(1 + gᵀu) with u = Z⁻¹g, without another matrix."""
    u = inverse @ g
    sger(-1 / (1 + g @ u), u, u, a=inverse.T, overwrite_a=1)  # Fortran's order, so in place


def time_inversion(p: int) -> Inversion:
    """Measure `np.linalg.inv`, the fastest of some."""
    Z = generator(SEED, Purpose.ENVIRONMENT, p).normal(size=(p, p)).astype(np.float32)
    np.fill_diagonal(Z, p)
    spent = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        np.linalg.inv(Z)
        spent.append(time.perf_counter() - started)
    return Inversion(p=p, seconds=min(spent))


def sizes_that_fit(sizes: tuple[int, ...], free: int) -> list[int]:
    """Return the sizes, those too large for the free bytes replaced by the largest that fits."""
    largest = int((SHARE * free / NUMBER_BYTES) ** 0.5)
    return sorted({min(p, max(largest, sizes[0])) for p in sizes})
