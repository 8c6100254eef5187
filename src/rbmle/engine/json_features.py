"""Features read from the bytes of JSON: hashes of names and categories, and numbers as they came.

What is read here is what nearly all clients send: ASCII without escapes, and numbers of up to 19 digits.
Whatever else there is, the caller is told, and reads it in another way. That it is JSON at all is known.
"""

import numpy as np
from jaxtyping import Float, Int, UInt64

from rbmle.engine.compiled import in_order, inlined, kernel
from rbmle.engine.hashing import mix
from rbmle.engine.json_numbers import Text, number

END = 0xFF  # behind each piece of text; UTF-8 has no such byte
NEW_FEATURES, MORE_FEATURES, NEW_ID = 0, 1, 2  # kinds of pieces
INDICATOR = float("nan")  # in the place of a number, where a feature has none
LONGEST = 10_000  # characters of a string or a name that are

_PRIME = np.uint64(0x100000001B3)  # of FNV-1a
_ONE = np.uint64(1)
_NAMED, _CATEGORY = 0xFF, 0xFE  # stand behind a namespace, and before a category
_QUOTE, _BACKSLASH, _COMMA, _COLON = 34, 92, 44, 58
_OPEN, _CLOSE, _BRACE, _END_BRACE = 91, 93, 123, 125
_T, _F, _N, _UNDERSCORE, _ZERO = 116, 102, 110, 95, 48
_LITERALS = np.frombuffer(b"truefalsenull", np.uint8)
_ID = np.frombuffer(b"_id", np.uint8)

Found = tuple[UInt64[np.ndarray, " features"], Float[np.ndarray, " features"]]


@kernel
def text_hash(seed: np.uint64, text: Text) -> int:
    """Return the hash of a feature: namespace, 0xFF, name, and if it has a category 0xFE and that."""
    return _finished(_fed(_begun(seed), text, 0, len(text)))


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

    The text is pieces, each with an END behind it. A group begins with a 1; NEW_FEATURES is a JSON
    array that begins a group, NEW_ID an id that begins one, and MORE_FEATURES an array that goes on.
    """
    most = len(text) // 2 + 2 * len(kinds)
    found = (np.empty(most, np.uint64), np.empty(most, np.float64))
    counts = np.zeros(len(kinds), np.int64)
    start = _begun(seed)
    id_start = _step(_step(_fed(start, _ID, 0, 3), _NAMED), _CATEGORY)
    nobody = _step(start, _NAMED)
    p = n = before = 0
    group = -1
    for kind in kinds:
        if kind != MORE_FEATURES:
            if group >= 0:
                counts[group] = n - before
            group, before = group + 1, n
            found[0][n], found[1][n] = 0, INDICATOR
            n += 1
        if kind == NEW_ID:
            end = p
            while text[end] != END:
                end += 1
            found[0][n], found[1][n] = _finished(_fed(id_start, text, p, end)), INDICATOR
            n += 1
            p = end
        else:
            p, n = _array(text, p, start, nobody, found, n)
        if p < 0 or p >= len(text) or text[p] != END:
            return found[0][:0], found[1][:0], counts[:0], False
        p += 1
    if group >= 0:
        counts[group] = n - before
    return found[0][:n], found[1][:n], counts[: group + 1], p == len(text)


@inlined
def _array(text: Text, p: int, start: int, nobody: int, found: Found, n: int) -> tuple[int, int]:
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
                inside = _step(_fed(start, text, first, last), _NAMED)
                p, n = _members(text, _after_blanks(text, p + 1), inside, found, n)
            else:
                p, n = _value(text, p, _fed(nobody, text, first, last), found, n)
            if p < 0:
                return -1, n
            p = _after_blanks(text, p)
        p = _after_blanks(text, p + 1)
    return _after_blanks(text, p + 1), n


@in_order
def _name(text: Text, p: int) -> tuple[int, int, int]:
    """Return where a name begins and ends, and where its value begins; -1 if it is none for us.

    Names that begin with _ are ignored, with all that is in their values.
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
def _members(text: Text, p: int, inside: int, found: Found, n: int) -> tuple[int, int]:
    """Read what is behind the brace of a namespace."""
    while text[p] != _END_BRACE:
        if text[p] == _COMMA:
            p = _after_blanks(text, p + 1)
        first, last, p = _name(text, p)
        if p < 0:
            return -1, n
        p, n = _value(text, p, _fed(inside, text, first, last), found, n)
        if p < 0:
            return -1, n
        p = _after_blanks(text, p)
    return p + 1, n


@in_order
def _value(text: Text, p: int, name: int, found: Found, n: int) -> tuple[int, int]:
    """Read a value whose name has this state; return where it ends, or -1 if it is none for us."""
    hashes, values = found
    c = text[p]
    if c == _QUOTE:
        last = _string_end(text, p + 1)
        if last < 0:
            return -1, n
        hashes[n] = _finished(_fed(_step(name, _CATEGORY), text, p + 1, last))
        values[n] = INDICATOR
        return last + 1, n + 1
    if c in (_T, _F, _N):
        first, last = (0, 4) if c == _T else (4, 9) if c == _F else (9, 13)
        for i in range(first, last):
            if text[p + i - first] != _LITERALS[i]:
                return -1, n
        hashes[n] = _finished(_fed(_step(name, _CATEGORY), _LITERALS, first, last))
        values[n] = INDICATOR
        return p + last - first, n + 1
    if c == _OPEN:
        return _numbers(text, p, name, found, n)
    x, p = number(text, p)
    hashes[n], values[n] = _finished(name), x
    return p, n + 1


@in_order
def _numbers(text: Text, p: int, name: int, found: Found, n: int) -> tuple[int, int]:
    """Read an array of numbers, name[0], name[1], …"""
    hashes, values = found
    place = 0
    p = _after_blanks(text, p + 1)
    while text[p] != _CLOSE:
        if text[p] == _COMMA:
            p = _after_blanks(text, p + 1)
        x, p = number(text, p)
        if p < 0:
            return -1, n
        hashes[n] = _finished(_step(_fed_number(_step(name, _OPEN), place), _CLOSE))
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
def _begun(seed: np.uint64) -> int:
    return mix(np.uint64(seed), np.uint64(0))


@inlined
def _step(state: int, byte: int) -> int:
    """Return FNV-1a's state after a byte more."""
    return (state ^ np.uint64(byte)) * _PRIME


@inlined
def _fed(state: int, text: Text, first: int, last: int) -> int:
    """Return the state after some bytes more."""
    for i in range(first, last):
        state = (state ^ np.uint64(text[i])) * _PRIME
    return state


@inlined
def _fed_number(state: int, n: int) -> int:
    """Return the state after the digits of a number."""
    unit = 1
    while n // unit >= 10:
        unit *= 10
    while unit > 0:
        state = _step(state, _ZERO + n // unit % 10)
        unit //= 10
    return state


@inlined
def _finished(state: int) -> int:
    """Return a hash that depends on each bit of a state, and is not that of nothing, 0."""
    return max(mix(state, np.uint64(0)), _ONE)
