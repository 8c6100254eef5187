"""Numbers read from the bytes of JSON, rounded as IEEE has it."""

import math

import numpy as np
from jaxtyping import UInt8

from rbmle.engine.compiled import in_order, inlined

LARGEST = 1e15  # a number that is read here, in size

_ONE, _TOP = np.uint64(1), np.uint64(63)
_EXACT = np.uint64(2**53)
_MINUS, _PLUS, _POINT, _ZERO, _E, _CAPITAL_E = 45, 43, 46, 48, 101, 69
_TENS = 10.0 ** np.arange(23)
_FIVES = np.array([5**k for k in range(28)], np.uint64)  # below 2⁶³

Text = UInt8[np.ndarray, " bytes"]


@in_order
def number(text: Text, p: int) -> tuple[float, int]:
    """Return a number, rounded as IEEE has it, and where it ends; -1 if it is none, or too long or large."""
    sign = 1.0
    if text[p] == _MINUS:
        sign, p = -1.0, p + 1
    if not _is_digit(text[p]):
        return 0.0, -1
    m, digits, power = np.uint64(0), 0, 0
    while _is_digit(text[p]):
        m = m * np.uint64(10) + np.uint64(text[p] - _ZERO)
        digits += m > 0
        p += 1
    if text[p] == _POINT:
        p += 1
        while _is_digit(text[p]):
            m = m * np.uint64(10) + np.uint64(text[p] - _ZERO)
            digits += m > 0
            power -= 1
            p += 1
    if text[p] in (_E, _CAPITAL_E):
        p += 1
        way = 1
        if text[p] in (_MINUS, _PLUS):
            way = -1 if text[p] == _MINUS else 1
            p += 1
        shift = 0
        while _is_digit(text[p]):
            shift = min(1000, 10 * shift + np.int64(text[p]) - _ZERO)
            p += 1
        power += way * shift
    if digits > 19:
        return 0.0, -1
    if m == 0:
        return sign * 0.0, p
    if m <= _EXACT and -22 <= power <= 22:
        x = np.float64(m) / _TENS[-power] if power < 0 else np.float64(m) * _TENS[power]
    elif -27 <= power < 0:
        x = _divided(m, -power)
    else:
        return 0.0, -1
    return (sign * x, p) if x <= LARGEST else (0.0, -1)


@in_order
def _divided(m: int, power: int) -> float:
    """Return m / 10^power, correctly rounded, by long division to 56 bits and one that stands for the rest."""
    d, two = _FIVES[power], -power
    while m >> _TOP == 0:
        m, two = m << _ONE, two - 1
    while d >> _TOP == 0:
        d, two = d << _ONE, two + 1
    q = np.int64(0)
    for bit in range(56):
        carry = np.uint64(0)
        if bit > 0:
            carry = m >> _TOP
            m = m << _ONE
        q = q << 1
        if carry or m >= d:
            m = m - d
            q = q | 1
    return math.ldexp(np.float64((q << 1) | np.int64(m != 0)), two - 56)


@inlined
def _is_digit(c: int) -> bool:
    return 48 <= c <= 57
