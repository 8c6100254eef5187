"""Random numbers as a function of (key, counter): no state, any order, the same on a retry.

The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.core.types import Rows
from rbmle.engine.compiled import inlined, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32, _S11 = (np.uint64(s) for s in (30, 27, 31, 32, 11))
_TO_UNIT = 2.0**-53


@inlined
def mix(key: int, counter: int) -> int:
    """Return 64 bits that depend on every bit of key and counter."""
    z = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@inlined
def below(bits: int, n: int) -> int:
    """Return an integer in [0, n), n < 2³², from 64 random bits."""
    return np.int64(((bits >> _S32) * np.uint64(n)) >> _S32)


@inlined
def unit(bits: int) -> float:
    """Return a number in (0, 1) from 64 random bits."""
    return (np.float64(bits >> _S11) + 0.5) * _TO_UNIT


@inlined
def normal(key: int, counter: int) -> float:
    """Return a standard normal number, by Box and Muller's formula."""
    first = mix(key, counter)
    second = mix(first, counter)
    return math.sqrt(-2.0 * math.log(unit(first))) * math.cos(2.0 * math.pi * unit(second))


@kernel
def context_noise(rows: Rows, key: np.uint64, noise: Float[np.ndarray, "draws n"]) -> None:
    """Write standard normal numbers that depend on key, draw and context, not on the arm's place."""
    bits = rows.values.view(np.uint64)
    for i in range(rows.blocks.shape[0]):
        digest = mix(key, rows.blocks[i])
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            digest = mix(digest ^ bits[k], rows.indices[k])
        for draw in range(noise.shape[0]):
            noise[draw, i] = normal(digest, draw)
