"""Bodies that are almost right: valid ones, and what befalls them byte by byte and value by value."""

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType

from hypothesis import strategies as st

from rbmle.service.settings import ServiceConfiguration

_RANK = (
    b'{"event":"e-1","context":{"user":{"age":31,"tags":[1,2.5,-3e2]},"hour":12,"new":true},'
    b'"actions":[{"id":"a","features":{"price":2.5,"kind":"tea"}},{"id":"b"},{"id":"c"}],'
    b'"excluded":["c"],"deferred":false}'
)
_SLOTS = (
    b'{"context":{"who":"u"},"actions":[{"id":"a"},{"id":"b","features":{"x":1}},{"id":"c"}],"slots":'
    b'[{"id":"top","baseline":"a","features":{"size":2}},{"id":"left","baseline":"b","excluded":["c"]}]}'
)
_OLD_RANK = (
    b'{"contextFeatures":[{"user":{"age":31,"home":null}},{"hour":12}],"actions":[{"id":"a",'
    b'"features":[{"price":2.5,"tags":[1,2]}]},{"id":"b","features":[]}],"excludedActions":["b"],'
    b'"eventId":"e-2","deferActivation":true}'
)
_OLD_SLOTS = (
    b'{"contextFeatures":[{"who":"u"}],"actions":[{"id":"a","features":[{"x":1}]},{"id":"b",'
    b'"features":[]}],"slots":[{"id":"top","baselineAction":"a","features":[{"size":"large"}],'
    b'"excludedActions":["b"]}],"eventId":"e-3","deferActivation":false}'
)
_CONFIGURATION = json.dumps(  # every setting, with some that are not the default
    ServiceConfiguration().to_json()
    | {
        "default_reward": 0.5,
        "reward_aggregation": "sum",
        "exploration": 0.25,
        "log_retention_days": 90,
        "model_retrain_days": 7,
        "auto_optimization_frequency": "P7D",
        "auto_optimization_start_date": "2019-01-19T00:00:00Z",
    }
).encode()
_OLD_CONFIGURATION = (
    b'{"rewardWaitTime":"PT10M","defaultReward":0.5,"rewardAggregation":"sum",'
    b'"explorationPercentage":0.25,"modelExportFrequency":"PT5M","logRetentionDays":90,'
    b'"learningMode":"Online","isAutoOptimizationEnabled":false,"modelRetrainDays":7}'
)
_POLICY = b'{"name":"neural-ucb","arguments":"exploration=0.5 model.ridge=0.1"}'

SAMPLES: Mapping[str, tuple[bytes, ...]] = MappingProxyType(
    {
        "rank": (_RANK, _RANK.replace(b'"event":"e-1",', b""), _SLOTS),
        "reward": (b'{"value":0.5}', b'{"slots":{"top":1,"left":-0.25}}'),
        "configuration": (_CONFIGURATION,),
        "change": (_CONFIGURATION, b'{"exploration":0.3}', b"{}"),
        "old rank": (_OLD_RANK, _OLD_RANK.replace(b'"eventId":"e-2",', b"")),
        "old slots rank": (_OLD_SLOTS,),
        "old reward": (b'{"value":1}',),
        "old slots reward": (b'{"reward":[{"slotId":"top","value":1},{"slotId":"b","value":0}]}',),
        "old configuration": (_OLD_CONFIGURATION,),
        "old policy": (_POLICY,),
    }
)

_NUMBER = re.compile(rb"(?<![\w\"])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_MEMBER = re.compile(rb'"(?:[^"\\]|\\.)*":(?:"(?:[^"\\]|\\.)*"|[^,\[\]{}]+)')

_NUMBERS = (
    *(b"0", b"-0", b"-0.0", b"1e-400", b"5e-324", b"1e15", b"1.0000000000000002e15", b"1e308"),
    *(
        b"1e309",
        b"-1e999",
        b"NaN",
        b"-NaN",
        b"Infinity",
        b"-Infinity",
        b"nan",
        b"inf",
        b"1.",
        b".5",
    ),
    *(
        b"01",
        b"+1",
        b"0x10",
        b"1_0",
        b"1e",
        b"--1",
        b"9223372036854775808",
        b"18446744073709551616",
    ),
    *(b"1" + b"0" * 400, b"0." + b"0" * 400 + b"1", b"1e" + b"9" * 30, b"9" * 5_000, b"1.5", b"-1"),
)
_STRINGS = (
    *(b'""', b'"\\u0000"', b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\ud83d\\ude00"', b'"\\u001f"'),
    *(
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xf4\x90\x80\x80"',
        b'"\xe2\x80\xae"',
        b'"\x00"',
    ),
    *(
        b'"\\x41"',
        b'"\\u12"',
        b'"\\"',
        b'"' + b"x" * 257 + b'"',
        b'"' + b"y" * 10_001 + b'"',
        b"'a'",
    ),
    *(b'"_"', b'"{id}"', b'"__proto__"', b'"$ref"', b'"a\nb"', b'"' + "é".encode() * 256 + b'"'),
    *(
        b'"PT1S"',
        b'"P999999999Y"',
        b'"PT"',
        b'"0000-01-01"',
        b'"9999-12-31T23:59:59-23:59"',
        b'"1"',
    ),
)
_VALUES = (
    *(b"null", b"true", b"false", b"[]", b"{}", b"[[]]", b"[null]", b"[true]", b'{"":1}', b"{{}}"),
    *(
        b"[1,]",
        b'{"a":1,}',
        b'{"a":{"b":{"c":1}}}',
        b"[1e400]",
        b'{"_a":{"b":{}}}',
        b"/**/1",
        b"\\u0031",
    ),
)
_GOOD_NUMBERS = (b"0", b"-0.0", b"5e-324", b"1e15", b"-1e15", b"0.5", b"1E2", b"123456789012345")
_GOOD_STRINGS = (
    b'"_"',
    b'"\\u0000"',
    b'"\\ud83d\\ude00"',
    b'"\\u202e"',
    b'"' + b"z" * 256 + b'"',
    b'"a"',
)
_GOOD_VALUES = (
    b"null",
    b"true",
    b"[]",
    b"[1,2e3]",
    b"{}",
    b'{"y":[0]}',
    b"[" + b"1," * 999 + b"1]",
)
_DEPTHS = (16, 17, 100, 1_000, 20_000)


def mutated(body: bytes, rng: Random) -> bytes:
    """Return a body after one to four mishaps."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        body = rng.choice(_MISHAPS)(body, rng)
    return body


def mangled(body: bytes, rng: Random) -> bytes:
    """Return a body of which some values are others."""
    for _ in range(rng.randint(1, 3)):
        body = rng.choice((_number, _string, _value))(body, rng)
    return body


def varied(body: bytes, rng: Random) -> bytes:
    """Return a body of which some values are others, at which most places of it would not mind."""
    for _ in range(rng.randint(1, 3)):
        body = _replaced(body, _NUMBER, rng.choice(_GOOD_NUMBERS + _GOOD_VALUES), rng)
        if rng.random() < 0.3:
            body = _replaced(body, _STRING, rng.choice(_GOOD_STRINGS), rng)
    return body


def changed(body: bytes, rng: Random) -> bytes:
    """Return a body changed in one of the three ways."""
    return rng.choice((mutated, mangled, varied))(body, rng)


def json_values() -> st.SearchStrategy[object]:
    """Return JSON with our names in it, of any shape."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(_names() | st.text(), inner, max_size=4)
        ),
        max_leaves=25,
    )


def _names() -> st.SearchStrategy[str]:
    found = {
        match.group(1).decode()
        for samples in SAMPLES.values()
        for sample in samples
        for match in re.finditer(rb'"([a-zA-Z_]+)":', sample)
    }
    return st.sampled_from(sorted(found))


def _flip(body: bytes, rng: Random) -> bytes:
    if not body:
        return b"\x00"
    at = rng.randrange(len(body))
    return body[:at] + bytes([body[at] ^ 1 << rng.randrange(8)]) + body[at + 1 :]


def _cut(body: bytes, rng: Random) -> bytes:
    start, end = _range(body, rng)
    return body[:start] + body[end:]


def _truncate(body: bytes, rng: Random) -> bytes:
    return body[: rng.randint(0, len(body))]


def _insert(body: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(body))
    return body[:at] + rng.randbytes(rng.randint(1, 8)) + body[at:]


def _repeat(body: bytes, rng: Random) -> bytes:
    start, end = _range(body, rng)
    return body[:end] + body[start:end] * rng.choice((1, 1, 2, 60)) + body[end:]


def _splice(body: bytes, rng: Random) -> bytes:
    other = rng.choice(rng.choice(list(SAMPLES.values())))
    return body[: rng.randint(0, len(body))] + other[rng.randint(0, len(other)) :]


def _number(body: bytes, rng: Random) -> bytes:
    return _replaced(body, _NUMBER, rng.choice(_NUMBERS), rng)


def _string(body: bytes, rng: Random) -> bytes:
    return _replaced(body, _STRING, rng.choice(_STRINGS), rng)


def _value(body: bytes, rng: Random) -> bytes:
    return _replaced(body, rng.choice((_NUMBER, _STRING)), rng.choice(_VALUES), rng)


def _nest(body: bytes, rng: Random) -> bytes:
    depth = rng.choice(_DEPTHS)
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    nested = opening * depth + rng.choice((b"1" + closing * depth, b""))
    return _replaced(body, rng.choice((_NUMBER, _STRING)), nested, rng)


def _say_twice(body: bytes, rng: Random) -> bytes:
    found = list(_MEMBER.finditer(body))
    if not found:
        return body
    member = rng.choice(found)
    return body[: member.end()] + b"," + member.group() + body[member.end() :]


def _frame(body: bytes, rng: Random) -> bytes:
    before, after = rng.choice(
        (
            *((b"\xef\xbb\xbf", b""), (b"", b"x"), (b"", b" \n"), (b"[", b"]"), (b"", body)),
            *(
                (b"\xff\xfe", b""),
                (b"\x00", b""),
                (b'{"a":', b"}"),
                (b")]}'\n", b""),
                (b"\x0b", b""),
            ),
        )
    )
    return before + body + after


def _widen(body: bytes, rng: Random) -> bytes:
    return body.decode("latin-1").encode(rng.choice(("utf-16", "utf-16-be", "utf-32", "latin-1")))


_MISHAPS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip, _cut, _truncate, _insert, _repeat, _splice, _nest, _say_twice, _frame, _widen),
    *(_number, _string, _value) * 3,
)


def _range(body: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randint(0, len(body))
    return start, min(len(body), start + rng.randint(1, 20))


def _replaced(body: bytes, what: re.Pattern[bytes], other: bytes, rng: Random) -> bytes:
    found = list(what.finditer(body))
    if not found:
        return body
    place = rng.choice(found)
    return body[: place.start()] + other + body[place.end() :]
