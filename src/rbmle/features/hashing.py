"""Feature hashing: dictionaries, which may differ from round to round, become sparse contexts."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from rbmle.core.checks import Settings
from rbmle.core.encoding import records
from rbmle.core.errors import EligibilityError, FeatureError, SettingError
from rbmle.core.types import ArmId, Contexts, Rows, Scales
from rbmle.engine.feature_rows import feature_rows
from rbmle.engine.json_features import text_hash
from rbmle.engine.scaling import plain_values, scaled_values
from rbmle.features.errors import IGNORED, LARGEST, LEVELS, SPELLED, find_errors, is_number

VERSION = 2  # of hashes and of how features are read; rows of two versions differ
MOST_BITS = 24
_NUMBERS = 2**12  # places for the moments of numbers
MOST_PRODUCTS = 2**19  # of an arm's features with the shared ones: some 100 ms and 50 MB
_REMEMBERED = 2**15  # features
_LONGEST = 200  # characters of a remembered feature, so that all need less than 50 MB

NOTHING = 0  # the hash of no feature at all


def feature_hash(seed: int, namespace: str, name: str, category: str | None) -> int:
    """Return the hash of the number called `name`, or of the indicator of name=category.

    Between the texts are bytes that UTF-8 does not have, so different features never give the same text.
    """
    value = b"" if category is None else b"\xfe" + _encode(category)
    text = b"%s\xff%s%s" % (_encode(namespace), _encode(name), value)
    bytes_of = np.frombuffer(bytearray(text), np.uint8)
    return int(text_hash(seed_bits(seed), bytes_of))


def seed_bits(seed: int) -> np.uint64:
    """Return a seed of any size and sign as 64 bits."""
    return np.uint64(seed & (2**64 - 1))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Remembered(dict[tuple[str, str, str | int | None], int]):
    """A cache of the hashes of features under one seed, by (namespace, name, category).

    A dict, so that a known feature costs one lookup; it is cleared when it is full. An integer instead of
    the category is a place in an array, so (…, name, 3) is the number name[3]. A name that begins with _
    is ignored: its hash is 0.
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __missing__(self, feature: tuple[str, str, str | int | None]) -> int:
        namespace, name, category = feature
        if isinstance(category, int):
            name, category = f"{name}[{category}]", None
        ignored = name[:1] == IGNORED
        hashed = NOTHING if ignored else feature_hash(self.seed, namespace, name, category)
        if len(namespace) + len(name) + len(category or "") <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[feature] = hashed
        return hashed


@lru_cache(maxsize=8)
def hashes_under(seed: int) -> Remembered:
    """Return the cache of a seed, which all encoders of that seed share."""
    return Remembered(seed)


NO_NAMESPACE = ""  # of features without a namespace
ID_NAMESPACE = "_id"  # unique, because a user's names that begin with _ are ignored
INDICATOR = nan  # of a feature that is present, without a number
ALONE, OTHER = 0, 1  # the codes of the 1s, and of namespaces without a code

_DEEPEST = 2 + LEVELS  # levels at which features can stand: a list, dictionaries, an array

_NAMES = {str}  # the type of names


class Group(NamedTuple):
    """The features of a context, or of an action, after a 1; arrays are bytes, which are quick to join."""

    size: int
    hashes: bytes  # of 64 bits
    values: bytes  # floats: numbers as they came, INDICATOR for other features
    codes: bytes  # of the features' namespaces, of 64 bits; empty if no codes are needed


def read(
    features: object, id: str | None, seed: int, codes: dict[str, int] | None, where: str
) -> Group:
    """Return the features of {namespace: {name: value}} or {name: value}, or of a list of such.

    A number is read as it is, under its name; `rows_of` scales it. A string is the indicator of
    name=value; True, False and None are the strings "true", "false" and "null". A list is the numbers
    name[0], name[1], …, and a string in it is read like a string alone. A dictionary in a namespace is read
    as if its features were in the namespace itself, named outer.inner. Names that begin with _ are
    ignored. An id is the indicator of itself, unless it is None. `codes` are those of some namespaces,
    if codes are wanted.

    Raise FeatureError for invalid features; the message calls them `where`.
    """
    group = _group(features, id, hashes_under(seed), codes)
    if group is None:  # some value is not a plain Python one, or is invalid
        features = plain(features)
        group = _group(features, id, hashes_under(seed), codes)
    if group is None:
        raise next(find_errors(features, where))
    return group


def join_groups(first: Group, *others: Group) -> Group:
    """Return the features of some groups as one group, with a single 1."""
    groups = [first, *(Group(n - 1, h[8:], v[8:], c[8:]) for n, h, v, c in others)]
    counts, hashes, values, codes = zip(*groups, strict=True)
    return Group(sum(counts), b"".join(hashes), b"".join(values), b"".join(codes))


def with_prefix(outer: str, inner: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a dictionary inside a namespace, with their full names.

    >>> with_prefix("address", {"city": "Delft", "_note": "ignored"})
    {'address.city': 'Delft'}
    """
    return {f"{outer}.{name}": value for name, value in inner.items() if name[:1] != IGNORED}


def plain(value: Any, deepest: int = _DEEPEST) -> Any:
    """Convert values of NumPy, pandas and others to plain Python dictionaries, lists, strings and numbers.

    >>> import numpy as np
    >>> plain({"age": np.float32(0.5), "at": np.arange(2), "tags": ("a", None)})
    {'age': 0.5, 'at': [0, 1], 'tags': ['a', None]}
    """
    if isinstance(value, str):
        return str.__str__(value)
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a Series
        value = value.to_dict()
    elif hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if deepest == 0:
        return value
    if isinstance(value, Mapping):
        return {plain(name, 0): plain(part, deepest - 1) for name, part in value.items()}
    return [plain(p, deepest - 1) for p in value] if isinstance(value, list | tuple) else value


def _group(
    features: object, id: str | None, known: Remembered, codes: dict[str, int] | None
) -> Group | None:
    """Return features as a group; None if one of them is invalid."""
    hashes, values = [NOTHING], [INDICATOR]
    if id is not None:
        hashes.append(known[ID_NAMESPACE, "", id])
        values.append(INDICATOR)
    coded = [] if codes is None else [ALONE, codes.get(ID_NAMESPACE, OTHER)][: len(hashes)]
    items = [features] if type(features) is dict else features
    if not _take(items, known, codes, hashes, values, coded):
        return None
    return Group(
        len(hashes),
        array("Q", hashes).tobytes(),
        array("d", values).tobytes(),
        array("q", coded).tobytes() if coded else b"",
    )


def _take(
    items: object,
    known: Remembered,
    codes: dict[str, int] | None,
    hashes: list[int],
    values: list[float],
    coded: list[int],
) -> bool:
    """Add the features of some dictionaries; return False at the first invalid one.

    Scalars are handled without a function call, because there are many.
    """
    if type(items) is not list:
        return False
    for item in items:
        if type(item) is not dict:
            return False
        groups = [(NO_NAMESPACE, item, 1)]
        for namespace, group, level in groups:
            if not {*map(type, group)} <= _NAMES:
                return False
            for name, value in group.items():
                kind = type(value)
                if kind is str:
                    if h := known[namespace, name, value]:
                        hashes.append(h)
                        values.append(INDICATOR)
                elif (kind is float or kind is int) and -LARGEST <= value <= LARGEST:
                    if h := known[namespace, name, None]:
                        hashes.append(h)
                        values.append(float(value))
                elif kind is bool or value is None:
                    if h := known[namespace, name, SPELLED[value]]:
                        hashes.append(h)
                        values.append(INDICATOR)
                elif name[:1] == IGNORED:
                    continue
                elif kind is dict and level == 1:
                    groups.append((name, value, 2))
                elif kind is dict and level < LEVELS and {*map(type, value)} <= _NAMES:
                    groups.append((namespace, with_prefix(name, value), level + 1))
                elif kind is list and all(map(is_number, value)):
                    hashes += [known[namespace, name, i] for i in range(len(value))]
                    values += map(float, value)
                elif kind is list and all(type(x) is str or is_number(x) for x in value):
                    hashes += [
                        known[namespace, name, x if type(x) is str else i]
                        for i, x in enumerate(value)
                    ]
                    values += [INDICATOR if type(x) is str else float(x) for x in value]
                else:
                    return False
            if codes is not None:
                coded += [codes.get(namespace, OTHER)] * (len(hashes) - len(coded))
    return True


Pairs = tuple[tuple[str, str], ...]


class Interactions(NamedTuple):
    """Which features are multiplied: chosen[c, d] says whether those with the codes c and d are.

    The code of a feature is that of its namespace. Without codes, all are multiplied.
    """

    codes: dict[str, int] | None
    chosen: Bool[np.ndarray, "codes codes"]


@lru_cache(maxsize=8)
def interactions_of(pairs: Pairs | None) -> Interactions:
    """Return the interactions of pairs of namespaces; None stands for all."""
    if pairs is None:
        return Interactions(None, np.empty((0, 0), np.bool_))
    names = dict.fromkeys(name for pair in pairs for name in pair)
    codes = {name: code for code, name in enumerate(names, OTHER + 1)}
    size = len(codes) + OTHER + 1
    chosen = np.zeros((size, size), np.bool_)
    chosen[ALONE] = chosen[:, ALONE] = True  # a feature times 1 is the feature alone
    for first, second in pairs:
        chosen[codes[first], codes[second]] = True
    return Interactions(codes, chosen)


class Call(NamedTuple):
    """The features of a context, and those of each action that is offered in it."""

    context: Group
    actions: list[Group]

    @property
    def products(self) -> int:
        """The number of products of features."""
        return self.context.size * sum([action.size for action in self.actions])


def rows_of(
    calls: Sequence[Call],
    bits: int,
    pairs: Pairs | None,
    scales: Scales | None = None,
    is_learning: bool = False,
) -> Rows:
    """Return a row for each action of each call: its features, the context's and products of the two.

    With scales, features are scaled by them, after the scales have learned from them if `is_learning`;
    else a number x becomes arcsinh(x): near 0 that is x, far away ± log 2|x|.

    They are in 2^bits slots. A product with hash h is added to the slot of h's low bits, with the sign
    of h's top bit. Slot 0 is reserved for the constant: anything else that would fall there goes to slot 1.
    """
    groups = [group for context, actions in calls for group in (context, *actions)]
    hashes = np.frombuffer(bytearray().join([group.hashes for group in groups]), np.uint64)
    values = np.frombuffer(bytearray().join([group.values for group in groups]), np.float64)
    counts = np.array([group.size for group in groups], np.int64)
    sizes = np.array([len(call.actions) for call in calls], np.int64)
    codes = np.frombuffer(bytearray().join([group.codes for group in groups]), np.int64)
    scale(hashes, counts, sizes, scales, is_learning, values)
    return feature_rows(hashes, values, counts, sizes, codes, interactions_of(pairs).chosen, bits)


def scale(
    hashes: UInt64[np.ndarray, " features"],
    counts: Int[np.ndarray, " groups"],
    sizes: Int[np.ndarray, " calls"],
    scales: Scales | None,
    is_learning: bool,
    values: Float[np.ndarray, " features"],
) -> None:
    """Scale the numbers in place, by the statistics if there are any."""
    if scales is None:
        plain_values(values)
    else:
        scaled_values(hashes, counts, sizes, scales, is_learning, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing(Settings):
    """Signed feature hashing: shared features, an arm's own and their products in 2^bits slots, and a constant.

    Weinberger, Dasgupta, Langford, Smola, Attenberg, Feature hashing for large scale multitask
    learning, 2009. No schema: a new feature already has a slot. The settings are part of
    a model: rows made with different settings are not comparable.

    Features are a dictionary {name: value} or {namespace: {name: value}}. A tuple (shared, own)
    is accepted too, each part a dictionary or a list of dictionaries, which are combined. Shared features
    are multiplied with own ones as `interactions` say: pairs (namespace of the shared, namespace of the
    own), where None stands for all pairs and "" for features in no namespace. If ids are features, an
    arm's string id is one of its own features, in the namespace "_id"; an integer only counts arms.

    >>> hashing = Hashing(bits=8)
    >>> contexts = hashing.rows(({"user": {"age": 31}}, [{"price": 2.5}, {}]), ["tea", "air"])
    >>> len(contexts), contexts.features, contexts.rows.lengths.tolist()
    (2, 256, [6, 4])
    """

    bits: int = 12  # b
    interactions: tuple[tuple[str, str], ...] | None = None
    ids_are_features: bool = True
    seed: int = 0
    version: int = VERSION
    is_scaled: bool = False  # by running statistics of features; see `Scales`

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise SettingError(
                f"`version` must be {VERSION}, the only one this release has, got {self.version!r}"
            )
        if type(self.bits) is not int or not 1 <= self.bits <= MOST_BITS:
            raise SettingError(
                f"`bits` must be an integer from 1 to {MOST_BITS}, got {self.bits!r}"
            )
        if type(self.seed) is not int:
            raise SettingError(f"`seed` must be an integer, got {self.seed!r}")
        if type(self.ids_are_features) is not bool:
            raise SettingError(
                f"`ids_are_features` must be True or False, got {self.ids_are_features!r}"
            )
        if type(self.is_scaled) is not bool:
            raise SettingError(f"`is_scaled` must be True or False, got {self.is_scaled!r}")
        if self.interactions is not None and not _are_pairs(self.interactions):
            raise SettingError(
                "`interactions` must be None for all, or a tuple of pairs of namespaces as in "
                f"(('user', 'article'),), got {self.interactions!r}"
            )

    def check_usable(self) -> None:
        """Raise SettingError for settings with which `row` and `rows` do not work."""
        if self.is_scaled:
            raise SettingError(
                "`is_scaled` is for the service, which keeps statistics of features with its log; "
                "make the bandit with Hashing(is_scaled=False)"
            )

    def start(self) -> Scales | None:
        """Return the statistics before any data; None if features are not scaled."""
        if not self.is_scaled:
            return None
        return Scales(
            counts=np.zeros(self.size, np.float32),
            names=np.zeros(_NUMBERS, np.uint64),
            moments=np.zeros((_NUMBERS, 3)),
            used=np.zeros(1, np.int64),
        )

    @property
    def size(self) -> int:
        """The number of slots."""
        return 2**self.bits

    def row(self, x: object, arm: ArmId | None = None) -> Contexts:
        """Return the context of one arm; raise FeatureError."""
        return x if isinstance(x, Contexts) else self._contexts_of([self._call(x, arm, "context")])

    def rows(self, X: object, arms: Sequence[ArmId] | None = None) -> Contexts:
        """Return a context for each of some arms; raise FeatureError.

        X is a list of features or of tuples (shared, own), a data frame whose columns are features, or one
        tuple (shared, list of own). A context has the constant √½ in slot 0, and the rest of it the
        squared length ½. It depends only on its own features and the shared ones.
        """
        if isinstance(X, Contexts):
            return X
        if isinstance(X, tuple):
            shared, per_arm = _pair(X, "all arms", "[own, own, …]")
            groups = [self._read(x, arm, where) for x, arm, where in _zip_arms(per_arm, arms)]
            return self._contexts_of([Call(self._read(shared, None, "shared"), groups)])
        return self._contexts_of(
            [self._call(x, arm, where) for x, arm, where in _zip_arms(X, arms)]
        )

    def _call(self, x: object, arm: ArmId | None, where: str) -> Call:
        """Return the features of an arm, and the shared ones if there are any."""
        if isinstance(x, list):
            raise FeatureError(
                f"{where} is a list, but a dictionary or a tuple (shared, own) is expected; for a dictionary "
                "for each arm, make the bandit with encoding='per-arm'"
            )
        shared, per_arm = _pair(x, where, "own") if isinstance(x, tuple) else ([], x)
        return Call(self._read(shared, None, "shared"), [self._read(per_arm, arm, where)])

    def _read(self, features: object, arm: ArmId | None, where: str) -> Group:
        id = arm if self.ids_are_features and isinstance(arm, str) else None
        return read(features, id, self.seed, interactions_of(self.interactions).codes, where)

    def _contexts_of(self, calls: Sequence[Call]) -> Contexts:
        self.check_usable()
        for call in calls:
            _check_size(call)
        return Contexts(rows=rows_of(calls, self.bits, self.interactions), features=self.size)


def _check_size(call: Call) -> None:
    most = call.context.size * max((action.size for action in call.actions), default=0)
    if most > MOST_PRODUCTS:
        raise FeatureError(
            f"an arm has {most:,} products of shared features and its own, but at most {MOST_PRODUCTS:,} "
            "are allowed; give fewer features"
        )


def _pair(x: tuple[object, ...], where: str, form: str) -> tuple[object, object]:
    """Return the parts of a tuple, or raise FeatureError."""
    if len(x) != 2:
        raise FeatureError(
            f"a tuple of {len(x)} was given for {where}, but a tuple must be (shared, {form}); give several "
            "arms as a list"
        )
    return x[0], x[1]


def _zip_arms(
    X: object, arms: Sequence[ArmId] | None
) -> Iterator[tuple[object, ArmId | None, str]]:
    """Return the features of each arm, its id or None, and how a message calls them."""
    if isinstance(X, str | Mapping | tuple) or not isinstance(X, Iterable):
        raise FeatureError(
            f"a {type(X).__name__} was given for the features of all arms, but a list is expected, with a "
            "dictionary for each arm; features that all arms share go first, as in (shared, [own, own, …])"
        )
    table = records(X)
    every = list(X) if table is None else list(table)
    if arms is not None and len(arms) != len(every):
        raise EligibilityError(
            f"there are {len(every)} rows of features for {len(arms)} arms; give one row for each arm, in "
            "their order"
        )
    ids = [None] * len(every) if arms is None else arms
    return zip(every, ids, (f"rows[{i}]" for i in range(len(every))), strict=True)


def _are_pairs(interactions: object) -> bool:
    return type(interactions) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and all(type(name) is str for name in pair)
        for pair in interactions
    )
