"""Read features from the bytes of JSON: hashes of names and categories, and correctly rounded numbers.

The input is what nearly all clients send: ASCII without escapes, and numbers of up to 19 digits. Anything else
is reported to the caller, who reads it in another way. The bytes are known to be valid JSON.
"""

import math

import numpy as np
from jaxtyping import Float, Int, UInt8, UInt64

from rbmle.engine.compiled import in_order, inlined, kernel
from rbmle.engine.hashing import mix

LARGEST = 1e15  # the largest absolute value of a number that is read here

_ONE, _TOP = np.uint64(1), np.uint64(63)
_EXACT = np.uint64(2**53)
_MINUS, _PLUS, _POINT, _ZERO, _E, _CAPITAL_E = 45, 43, 46, 48, 101, 69
_TENS = 10.0 ** np.arange(23)
_FIVES = np.array([5**k for k in range(28)], np.uint64)  # below 2⁶³

Text = UInt8[np.ndarray, " bytes"]


@in_order
def number(text: Text, p: int) -> tuple[float, int]:
    """Return a number, correctly rounded, and where it ends; −1 if it cannot be read here."""
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
        x = _divide(m, -power)
    else:
        return 0.0, -1
    return (sign * x, p) if x <= LARGEST else (0.0, -1)


@in_order
def _divide(m: int, power: int) -> float:
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


END = 0xFF  # behind each piece of text; UTF-8 has no such byte
NEW_FEATURES, MORE_FEATURES, NEW_ID = 0, 1, 2  # kinds of pieces
INDICATOR = float("nan")  # instead of a number, for a feature without one
LONGEST = 10_000  # characters of a string or a name

_PRIME = np.uint64(0x100000001B3)  # of FNV-1a
_NAMED, _CATEGORY = 0xFF, 0xFE  # stand behind a namespace, and before a category
_QUOTE, _BACKSLASH, _COMMA, _COLON = 34, 92, 44, 58
_OPEN, _CLOSE, _BRACE, _END_BRACE = 91, 93, 123, 125
_T, _F, _N, _UNDERSCORE = 116, 102, 110, 95
_LITERALS = np.frombuffer(b"truefalsenull", np.uint8)
_ID = np.frombuffer(b"_id", np.uint8)

FeatureArrays = tuple[UInt64[np.ndarray, " features"], Float[np.ndarray, " features"]]


@kernel
def text_hash(seed: np.uint64, text: Text) -> int:
    """Return the hash of a feature: namespace, 0xFF, name, and with a category 0xFE and the category."""
    return _finish_hash(_feed_bytes(_begin_hash(seed), text, 0, len(text)))


@kernel
def read_groups(
    text: Text, kinds: Int[np.ndarray, " pieces"], seed: np.uint64
) -> tuple[
    UInt64[np.ndarray, " features"],
    Float[np.ndarray, " features"],
    Int[np.ndarray, " groups"],
    bool,
]:
    """Return hashes, values and sizes of groups of features, and whether all could be read.

    The text consists of pieces, each followed by an END. A group begins with a 1; NEW_FEATURES is a JSON array
    that begins a group, NEW_ID an id that begins one, and MORE_FEATURES an array that continues a group.
    """
    most = len(text) // 2 + 2 * len(kinds)
    features = (np.empty(most, np.uint64), np.empty(most, np.float64))
    counts = np.zeros(len(kinds), np.int64)
    start = _begin_hash(seed)
    id_start = _step(_step(_feed_bytes(start, _ID, 0, 3), _NAMED), _CATEGORY)
    no_namespace = _step(start, _NAMED)
    p = n = before = 0
    group = -1
    for kind in kinds:
        if kind != MORE_FEATURES:
            if group >= 0:
                counts[group] = n - before
            group, before = group + 1, n
            features[0][n], features[1][n] = 0, INDICATOR
            n += 1
        if kind == NEW_ID:
            end = p
            while text[end] != END:
                end += 1
            features[0][n], features[1][n] = (
                _finish_hash(_feed_bytes(id_start, text, p, end)),
                INDICATOR,
            )
            n += 1
            p = end
        else:
            p, n = _array(text, p, start, no_namespace, features, n)
        if p < 0 or p >= len(text) or text[p] != END:
            return features[0][:0], features[1][:0], counts[:0], False
        p += 1
    if group >= 0:
        counts[group] = n - before
    return features[0][:n], features[1][:n], counts[: group + 1], p == len(text)


@inlined
def _array(
    text: Text, p: int, start: int, no_namespace: int, features: FeatureArrays, n: int
) -> tuple[int, int]:
    """Read an array of objects; return where it ends, or -1, and how many features there are then."""
    p = _after_blanks(text, p)
    if text[p] != _OPEN:
        return -1, n
    p = _after_blanks(text, p + 1)
    while text[p] != _CLOSE:
        if text[p] == _COMMA:
            p = _after_blanks(text, p + 1)
        if text[p] != _BRACE:
            return -1, n
        p = _after_blanks(text, p + 1)
        while text[p] != _END_BRACE:
            if text[p] == _COMMA:
                p = _after_blanks(text, p + 1)
            first, last, p = _name(text, p)
            if p < 0:
                return -1, n
            if text[p] == _BRACE:
                inside = _step(_feed_bytes(start, text, first, last), _NAMED)
                p, n = _members(text, _after_blanks(text, p + 1), inside, features, n)
            else:
                p, n = _value(text, p, _feed_bytes(no_namespace, text, first, last), features, n)
            if p < 0:
                return -1, n
            p = _after_blanks(text, p)
        p = _after_blanks(text, p + 1)
    return _after_blanks(text, p + 1), n


@in_order
def _name(text: Text, p: int) -> tuple[int, int, int]:
    """Return where a name begins and ends, and where its value begins; −1 if it cannot be read here.

    Names that begin with _, which are ignored with their values, are not read here.
    """
    if text[p] != _QUOTE:
        return 0, 0, -1
    first = p + 1
    last = _string_end(text, first)
    if last <= first or text[first] == _UNDERSCORE:
        return 0, 0, -1
    p = _after_blanks(text, last + 1)
    return first, last, _after_blanks(text, p + 1) if text[p] == _COLON else -1


@in_order
def _members(text: Text, p: int, inside: int, features: FeatureArrays, n: int) -> tuple[int, int]:
    """Read what is behind the brace of a namespace."""
    while text[p] != _END_BRACE:
        if text[p] == _COMMA:
            p = _after_blanks(text, p + 1)
        first, last, p = _name(text, p)
        if p < 0:
            return -1, n
        p, n = _value(text, p, _feed_bytes(inside, text, first, last), features, n)
        if p < 0:
            return -1, n
        p = _after_blanks(text, p)
    return p + 1, n


@in_order
def _value(text: Text, p: int, name: int, features: FeatureArrays, n: int) -> tuple[int, int]:
    """Read a value whose name has this state; return where it ends, or -1 if it cannot be read here."""
    hashes, values = features
    c = text[p]
    if c == _QUOTE:
        last = _string_end(text, p + 1)
        if last < 0:
            return -1, n
        hashes[n] = _finish_hash(_feed_bytes(_step(name, _CATEGORY), text, p + 1, last))
        values[n] = INDICATOR
        return last + 1, n + 1
    if c in (_T, _F, _N):
        first, last = (0, 4) if c == _T else (4, 9) if c == _F else (9, 13)
        for i in range(first, last):
            if text[p + i - first] != _LITERALS[i]:
                return -1, n
        hashes[n] = _finish_hash(_feed_bytes(_step(name, _CATEGORY), _LITERALS, first, last))
        values[n] = INDICATOR
        return p + last - first, n + 1
    if c == _OPEN:
        return _numbers(text, p, name, features, n)
    x, p = number(text, p)
    hashes[n], values[n] = _finish_hash(name), x
    return p, n + 1


@in_order
def _numbers(text: Text, p: int, name: int, features: FeatureArrays, n: int) -> tuple[int, int]:
    """Read an array of numbers, name[0], name[1], …"""
    hashes, values = features
    place = 0
    p = _after_blanks(text, p + 1)
    while text[p] != _CLOSE:
        if text[p] == _COMMA:
            p = _after_blanks(text, p + 1)
        x, p = number(text, p)
        if p < 0:
            return -1, n
        hashes[n] = _finish_hash(_step(_feed_number(_step(name, _OPEN), place), _CLOSE))
        values[n] = x
        n += 1
        place += 1
        p = _after_blanks(text, p)
    return p + 1, n


@inlined
def _after_blanks(text: Text, p: int) -> int:
    """Return where the next text is."""
    while text[p] <= 32:
        p += 1
    return p


@inlined
def _string_end(text: Text, p: int) -> int:
    """Return where the quote behind a string is; -1 if it is long, or there is more to it than ASCII."""
    first = p
    while text[p] != _QUOTE:
        if text[p] == _BACKSLASH or text[p] >= 128:
            return -1
        p += 1
    return p if p - first <= LONGEST else -1


@inlined
def _begin_hash(seed: np.uint64) -> int:
    return mix(np.uint64(seed), np.uint64(0))


@inlined
def _step(state: int, byte: int) -> int:
    """Return FNV-1a's state after a byte more."""
    return (state ^ np.uint64(byte)) * _PRIME


@inlined
def _feed_bytes(state: int, text: Text, first: int, last: int) -> int:
    """Return the state after some bytes more."""
    for i in range(first, last):
        state = (state ^ np.uint64(text[i])) * _PRIME
    return state


@inlined
def _feed_number(state: int, n: int) -> int:
    """Return the state after the digits of a number."""
    unit = 1
    while n // unit >= 10:
        unit *= 10
    while unit > 0:
        state = _step(state, _ZERO + n // unit % 10)
        unit //= 10
    return state


@inlined
def _finish_hash(state: int) -> int:
    """Return a hash that depends on each bit of a state, and is not 0, which stands for no feature."""
    return max(mix(state, np.uint64(0)), _ONE)
