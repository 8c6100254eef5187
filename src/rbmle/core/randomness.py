"""Randomness without state: a stream is a function of (seed, purpose, t)."""

from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence


class Purpose(IntEnum):
    """What random numbers are for; streams of different purposes are independent."""

    START = 0
    GROW = 1
    INDEX = 2
    CHOOSE = 3
    UPDATE = 4
    ENVIRONMENT = 5
    EVALUATE = 6


class _Digest(ISeedSequence):
    """A seed for a stream; numpy's own seeds ask the operating system for entropy, which takes longer."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return the first words of the digest."""
        return np.frombuffer(self.digest, dtype)[:n_words]


def generator(seed: int, purpose: Purpose, t: int | str) -> np.random.Generator:
    """Return the stream of (seed, purpose, t); t is a round, or the id of a decision.

    >>> a, b = generator(0, Purpose.INDEX, 7), generator(0, Purpose.INDEX, 7)
    >>> bool(a.integers(100) == b.integers(100))
    True
    """
    digest = _digest(seed, purpose, t, 32)
    return np.random.Generator(np.random.PCG64(_Digest(digest)))  # type: ignore[arg-type]  # numpy takes any ISeedSequence


def uniform(seed: int, purpose: Purpose, t: int | str) -> float:
    """Return a number in [0, 1) that depends on (seed, purpose, t) alone; starting a stream would cost more.

    >>> 0 <= uniform(0, Purpose.CHOOSE, "a") < 1
    True
    """
    return (int.from_bytes(_digest(seed, purpose, t, 8)) >> 11) * 2.0**-53


def key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a kernel's own random numbers."""
    return np.uint64(rng.bit_generator.random_raw())


def _digest(seed: int, purpose: Purpose, t: int | str, size: int) -> bytes:
    """Return random bytes that are a function of all of these."""
    text = f"{seed}/{purpose:d}/{type(t).__name__}/{t}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()
