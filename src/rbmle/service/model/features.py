"""Reads the JSON features of a request: by a kernel, or by Python if interactions are set.

Python caches features by their bytes, for the actions of a page are the same for all its visitors.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from rbmle.core.errors import FeatureError
from rbmle.core.types import Contexts, Scales
from rbmle.features.hashing import (
    Call,
    Group,
    Hashing,
    Pairs,
    interactions_of,
    join_groups,
    read,
    rows_of,
)
from rbmle.features.json_rows import Offered, json_rows
from rbmle.service.model.limits import LIMITS, Features

_REMEMBERED = 2**14  # groups in the cache, and as many older ones
_LONGEST = 500  # bytes of JSON that are cached, so that the cache stays below 50 MB
_decoder = msgspec.json.Decoder(list[Features])


class TooManyProductsError(FeatureError):
    """A call whose features have more products than the limit."""


def contexts_of(
    featuriser: Hashing,
    offers: Sequence[Offered],
    scales: Scales | None = None,
    *,
    is_learning: bool = False,
) -> Contexts:
    """Return one row for each action of each call, from features as they were sent; raise FeatureError.

    If `is_learning`, the scales are updated with the features of a call before they scale them.
    """
    rows = None
    if featuriser.interactions is None:
        rows = json_rows(featuriser, offers, scales, is_learning=is_learning)
    if rows is None:
        return read_by_python(featuriser, offers, scales, is_learning=is_learning)
    return Contexts(rows=rows, features=featuriser.size)


def read_by_python(
    featuriser: Hashing,
    offers: Sequence[Offered],
    scales: Scales | None = None,
    *,
    is_learning: bool = False,
) -> Contexts:
    """Return what `contexts_of` returns, read without a kernel; raise FeatureError."""
    calls = [call_of(featuriser, offered) for offered in offers]
    rows = rows_of(calls, featuriser.bits, featuriser.interactions, scales, is_learning)
    return Contexts(rows=rows, features=featuriser.size)


def call_of(featuriser: Hashing, offered: Offered) -> Call:
    """Return the features of a call, read by Python; raise FeatureError."""
    known = groups_of(featuriser.seed, featuriser.interactions)
    shared = [known.read(None, bytes(json)) for json in offered.context]  # nearly always new
    actions = [
        known[id if featuriser.ids_are_features else None, bytes(json)]
        for id, json in zip(offered.ids, offered.features, strict=True)
    ]
    call = Call(shared[0] if len(shared) == 1 else join_groups(*shared), actions)
    if call.products > LIMITS.products:
        raise TooManyProductsError(
            f"there are {call.products:,} products of context and action features, but at most "
            f"{LIMITS.products:,} are taken; send fewer features or fewer actions"
        )
    return call


class Groups(dict[tuple[str | None, bytes], Group]):
    """A cache of the features of (id, JSON array), where an id is a feature unless it is None.

    It is a dict, so that a hit costs one lookup. When it is full, its entries become the older ones, which
    move back when they are used: frequent entries stay, and others are dropped.
    """

    __slots__ = ("before", "codes", "seed")

    def __init__(self, seed: int, pairs: Pairs | None) -> None:
        self.seed = seed
        self.codes = interactions_of(pairs).codes
        self.before: dict[tuple[str | None, bytes], Group] = {}

    def __missing__(self, sent: tuple[str | None, bytes]) -> Group:
        group = self.before.get(sent) or self.read(*sent)
        if len(sent[1]) <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.before = dict(self)
                self.clear()
            self[sent] = group
        return group

    def read(self, id: str | None, json: bytes) -> Group:
        """Return features without caching them; raise FeatureError."""
        try:
            features: Any = _decoder.decode(json)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FeatureError(f"features cannot be read: {error}") from None
        return read(features, id, self.seed, self.codes, "features")


@lru_cache(maxsize=8)
def groups_of(seed: int, pairs: Pairs | None) -> Groups:
    return Groups(seed, pairs)
