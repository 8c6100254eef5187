"""Randomness without state: a stream is a function of (seed, purpose, t)."""

from enum import IntEnum
from hashlib import blake2b

import numpy as np


class Purpose(IntEnum):
    """What random numbers are for; streams of two purposes are independent."""

    START = 0
    GROW = 1
    INDEX = 2
    CHOOSE = 3
    UPDATE = 4
    ENVIRONMENT = 5


def generator(seed: int, purpose: Purpose, t: int | str) -> np.random.Generator:
    """Return the stream of (seed, purpose, t); t is a round, or the id of a decision.

    >>> generator(0, Purpose.INDEX, 7).integers(100) == generator(0, Purpose.INDEX, 7).integers(100)
    np.True_
    """
    text = f"{seed}/{purpose:d}/{type(t).__name__}/{t}"
    key = int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=key))


def key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a kernel's own random numbers."""
    return np.uint64(rng.bit_generator.random_raw())
