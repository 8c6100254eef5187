"""The featuriser: JSON features, different from call to call, to sparse contexts, one for each action."""

from collections.abc import Sequence
from dataclasses import dataclass

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts
from rbmle.service.features.packed import Offered, groups_of, rows_of_json
from rbmle.service.features.reading import (
    ID_NAMESPACE,
    FeatureError,
    Group,
    joined,
    read,
    shown,
)
from rbmle.service.features.rows import Call, interactions_of, rows_of

__all__ = ["ID_NAMESPACE", "FeatureError", "Featuriser"]

VERSION = 2  # of hashes and of how features are read; rows of two versions are not alike
MOST_BITS = 24
MOST_PRODUCTS = 2**19  # of context and action features in one call: some 100 ms and 50 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Featuriser:
    """Signed feature hashing: context, action and their products in 2^bits slots, and a constant.

    Weinberger, Dasgupta, Langford, Smola, Attenberg, Feature hashing for large scale multitask
    learning, 2009. No schema: a feature never seen before has a slot already. The settings are part of
    a model: rows of two featurisers that are not equal have nothing to do with each other.

    `interactions` are pairs (namespace of the context, namespace of the action) whose features are
    multiplied; None stands for all pairs, and "" for features in no namespace. If ids are features,
    they are the namespace "_id", so a context can work differently on each action.

    >>> featuriser = Featuriser(bits=8)
    >>> contexts = featuriser.contexts([{"user": {"age": 31}}], [[{"price": 2.5}], []], ["tea", "air"])
    >>> len(contexts), contexts.features, contexts.rows.lengths.tolist()
    (2, 256, [6, 4])
    """

    bits: int = 12  # b
    interactions: tuple[tuple[str, str], ...] | None = None
    ids_are_features: bool = True
    seed: int = 0
    version: int = VERSION

    def __post_init__(self) -> None:
        """Raise SettingError for settings that cannot be."""
        if self.version != VERSION:
            raise SettingError(
                f"version={self.version} of the featuriser is unknown; this release has version {VERSION}"
            )
        if type(self.bits) is not int or not 1 <= self.bits <= MOST_BITS:
            raise SettingError(
                f"bits={self.bits!r} cannot be; use 1 to {MOST_BITS}, for 2 to 2^{MOST_BITS} slots"
            )
        if type(self.seed) is not int:
            raise SettingError(f"seed={self.seed!r} cannot be; a seed is an integer")
        if type(self.ids_are_features) is not bool:
            raise SettingError(
                f"ids_are_features={self.ids_are_features!r} cannot be; use True or False"
            )
        if self.interactions is not None and not _are_pairs(self.interactions):
            raise SettingError(
                f"interactions={self.interactions!r} cannot be; use None for all, or pairs of namespaces "
                "as in (('user', 'article'),)"
            )

    @property
    def features(self) -> int:
        """Return the number of slots."""
        return 2**self.bits

    def contexts(
        self, context_features: object, actions_features: Sequence[object], ids: Sequence[str]
    ) -> Contexts:
        """Return one row for each action, from features as JSON was decoded; raise FeatureError.

        A row depends on the context and its own action, not on the other actions. It has the
        constant √½ in slot 0, and the rest of it the squared length ½.
        """
        if not len(actions_features) == len(ids) > 0:
            raise FeatureError(
                f"there are {len(actions_features)} actions and {len(ids)} ids, but as many of both are "
                "expected, and at least one"
            )
        if self.ids_are_features:
            _check_ids(ids)
        codes = interactions_of(self.interactions).codes
        context = read(context_features, None, self.seed, codes)
        actions = [
            read(features, id if self.ids_are_features else None, self.seed, codes, place)
            for place, (features, id) in enumerate(zip(actions_features, ids, strict=True), 1)
        ]
        return self.stacked([_checked(context, actions)])

    def contexts_of(self, offers: Sequence[Offered]) -> Contexts:
        """Return one row for each action of each call, from features as they were sent; raise FeatureError."""
        rows = None
        if self.interactions is None:
            settings = (self.seed, self.ids_are_features, self.bits, MOST_PRODUCTS)
            rows = rows_of_json(offers, *settings)
        if rows is None:
            return self.stacked([self.call(offered) for offered in offers])
        return Contexts(rows=rows, features=self.features)

    def call(self, offered: Offered) -> Call:
        """Return what a call offers, read without a kernel; raise FeatureError."""
        known = groups_of(self.seed, self.interactions)
        shared = [known.read(None, bytes(json)) for json in offered.context]  # nearly always new
        own = [
            known[id if self.ids_are_features else None, bytes(json)]
            for id, json in zip(offered.ids, offered.features, strict=True)
        ]
        return _checked(shared[0] if len(shared) == 1 else joined(*shared), own)

    def stacked(self, calls: Sequence[Call]) -> Contexts:
        """Return one row for each action of each call."""
        rows = rows_of(calls, self.bits, interactions_of(self.interactions).chosen)
        return Contexts(rows=rows, features=self.features)


def _checked(context: Group, actions: list[Group]) -> Call:
    """Return a call, or raise FeatureError if it has too many products."""
    call = Call(context, actions)
    if call.products > MOST_PRODUCTS:
        raise FeatureError(
            f"there are {call.products:,} products of context and action features, but at most "
            f"{MOST_PRODUCTS:,} are taken; send fewer features or fewer actions"
        )
    return call


def _check_ids(ids: Sequence[object]) -> None:
    for place, id in enumerate(ids):
        if type(id) is not str:
            raise FeatureError(f"actions[{place}].id is {shown(id)}, but a string is expected")


def _are_pairs(interactions: object) -> bool:
    """Return whether these are pairs of namespaces, in tuples."""
    return type(interactions) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and all(type(name) is str for name in pair)
        for pair in interactions
    )
