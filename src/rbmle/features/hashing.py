"""Hashing: dictionaries, different from round to round, to sparse contexts, one for each arm."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import EligibilityError, FeatureError, SettingError
from rbmle.core.frames import records
from rbmle.core.hints import Settings
from rbmle.core.types import ArmId, Contexts, Scales
from rbmle.features.reading import Group, read
from rbmle.features.rows import Call, interactions_of, rows_of

VERSION = 2  # of hashes and of how features are read; rows of two versions are not alike
MOST_BITS = 24
_NUMBERS = 2**12  # places for the moments of numbers
MOST_PRODUCTS = 2**19  # of the shared features and an arm's own: some 100 ms and 50 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing(Settings):
    """Signed feature hashing: shared features, an arm's own and their products in 2^bits slots, and a constant.

    Weinberger, Dasgupta, Langford, Smola, Attenberg, Feature hashing for large scale multitask
    learning, 2009. No schema: a feature never seen before has a slot already. The settings are part of
    a model: rows of two settings that are not equal have nothing to do with each other.

    Features are a dictionary {name: value} or {namespace: {name: value}}. In its place there may be a tuple
    (shared, own), each of them a dictionary or a list of some, which are taken together. Shared features
    are multiplied with own ones as `interactions` say: pairs (namespace of the shared, namespace of the
    own), where None stands for all pairs and "" for features in no namespace. If ids are features, an
    arm's id that is a string is one of its own, in the namespace "_id"; an integer only counts arms.

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
    is_scaled: bool = False  # features by what was learned of them; see `Scales`

    def __post_init__(self) -> None:
        """Raise SettingError for settings out of their range."""
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
        """Raise SettingError for settings with which `row` and `rows` read nothing."""
        if self.is_scaled:
            raise SettingError(
                "`is_scaled` is for the service, which keeps what it has seen of features with its log; "
                "make the bandit with Hashing(is_scaled=False)"
            )

    def start(self) -> Scales | None:
        """Return what is known of features before any data; None if they are not scaled."""
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
        """Return the number of slots."""
        return 2**self.bits

    def row(self, x: object, arm: ArmId | None = None) -> Contexts:
        """Return the context of one arm; raise FeatureError."""
        return x if isinstance(x, Contexts) else self._stacked([self._call(x, arm, "context")])

    def rows(self, X: object, arms: Sequence[ArmId] | None = None) -> Contexts:
        """Return a context for each of some arms; raise FeatureError.

        X is a list of features or of tuples (shared, own), a data frame whose columns are features, or one
        tuple (shared, list of own). A context has the constant √½ in slot 0, and the rest of it the
        squared length ½. It depends on its own features and on those it shares, and on nothing else.
        """
        if isinstance(X, Contexts):
            return X
        if isinstance(X, tuple):
            shared, own = _pair(X, "all arms", "[own, own, …]")
            groups = [self._read(x, arm, where) for x, arm, where in _each(own, arms)]
            return self._stacked([Call(self._read(shared, None, "shared"), groups)])
        return self._stacked([self._call(x, arm, where) for x, arm, where in _each(X, arms)])

    def _call(self, x: object, arm: ArmId | None, where: str) -> Call:
        """Return what an arm has, and what it shares if that is given."""
        if isinstance(x, list):
            raise FeatureError(
                f"{where} is a list, but a dictionary or a tuple (shared, own) is expected; for a dictionary "
                "for each arm, make the bandit with encoding='per-arm'"
            )
        shared, own = _pair(x, where, "own") if isinstance(x, tuple) else ([], x)
        return Call(self._read(shared, None, "shared"), [self._read(own, arm, where)])

    def _read(self, features: object, arm: ArmId | None, where: str) -> Group:
        id = arm if self.ids_are_features and isinstance(arm, str) else None
        return read(features, id, self.seed, interactions_of(self.interactions).codes, where)

    def _stacked(self, calls: Sequence[Call]) -> Contexts:
        self.check_usable()
        for call in calls:
            _check_size(call)
        return Contexts(rows=rows_of(calls, self.bits, self.interactions), features=self.size)


def _check_size(call: Call) -> None:
    """Raise FeatureError for more products of an arm than memory should hold."""
    most = call.context.size * max((own.size for own in call.actions), default=0)
    if most > MOST_PRODUCTS:
        raise FeatureError(
            f"an arm has {most:,} products of shared features and its own, but at most {MOST_PRODUCTS:,} "
            "are taken; give fewer features"
        )


def _pair(x: tuple[object, ...], where: str, own: str) -> tuple[object, object]:
    """Return the parts of a tuple, or raise FeatureError."""
    if len(x) != 2:
        raise FeatureError(
            f"a tuple of {len(x)} was given for {where}, but a tuple must be (shared, {own}); give several "
            "arms as a list"
        )
    return x[0], x[1]


def _each(X: object, arms: Sequence[ArmId] | None) -> Iterator[tuple[object, ArmId | None, str]]:
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
    """Return whether these are pairs of namespaces, in tuples."""
    return type(interactions) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and all(type(name) is str for name in pair)
        for pair in interactions
    )
