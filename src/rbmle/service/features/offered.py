"""Features as the JSON that a client sent: read by a kernel, or by Python where there is more to it.

What Python has read is remembered by its bytes: the actions of a page are the same for all who look at it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from jaxtyping import Int

from rbmle.core.errors import FeatureError
from rbmle.core.types import Contexts, Rows, Scales
from rbmle.engine.feature_rows import feature_rows
from rbmle.engine.json_features import MORE_FEATURES, NEW_FEATURES, NEW_ID, read_groups
from rbmle.features.hashes import seed_bits
from rbmle.features.hashing import MOST_PRODUCTS, Hashing
from rbmle.features.reading import Group, joined, read
from rbmle.features.rows import Call, Pairs, interactions_of, rows_of, scale
from rbmle.service.features.limits import Features
from rbmle.service.log.records import RawFeatures as Packed

_REMEMBERED = 2**14  # groups, and as many from before
_LONGEST = 500  # bytes of JSON that are remembered; so what is remembered stays below 50 MB
_END = b"\xff"
_NO_CODES = np.empty(0, np.int64)
_decoder = msgspec.json.Decoder(list[Features])


class Offered(NamedTuple):
    """A call as it was sent: JSON arrays of the features of all, and of each action with its id."""

    context: list[Packed]
    ids: list[str]
    features: list[Packed]


def contexts_of(
    featuriser: Hashing,
    offers: Sequence[Offered],
    scales: Scales | None = None,
    *,
    is_learning: bool = False,
) -> Contexts:
    """Return one row for each action of each call, from features as they were sent; raise FeatureError.

    If it is learning, the scales follow the features of a call before they scale them.
    """
    rows = None
    if featuriser.interactions is None:
        rows = _read_by_kernel(featuriser, offers, scales, is_learning)
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


def _read_by_kernel(
    featuriser: Hashing, offers: Sequence[Offered], scales: Scales | None, is_learning: bool
) -> Rows | None:
    """Return a row for each action; None if a kernel cannot read them, or there are too many products."""
    pieces: list[Packed | bytes] = []
    kinds: list[int] = []
    for context, ids, features in offers:
        pieces += context
        kinds += [NEW_FEATURES, *[MORE_FEATURES] * (len(context) - 1)]
        if featuriser.ids_are_features:
            pieces += [part for own in zip(map(str.encode, ids), features) for part in own]  # noqa: B905
            kinds += [NEW_ID, MORE_FEATURES] * len(ids)
        else:
            pieces += features
            kinds += [NEW_FEATURES] * len(ids)
    text = np.frombuffer(bytearray(_END).join([*pieces, b""]), np.uint8)
    seed = seed_bits(featuriser.seed)
    hashes, values, counts, is_read = read_groups(text, np.array(kinds), seed)
    sizes = np.array([len(offered.ids) for offered in offers])
    if not is_read or _products(counts, sizes) > MOST_PRODUCTS:
        return None
    scale(hashes, counts, sizes, scales, is_learning, values)
    chosen = interactions_of(None).chosen
    return feature_rows(hashes, values, counts, sizes, _NO_CODES, chosen, featuriser.bits)


def call_of(featuriser: Hashing, offered: Offered) -> Call:
    """Return what a call offers, read by Python; raise FeatureError."""
    known = groups_of(featuriser.seed, featuriser.interactions)
    shared = [known.read(None, bytes(json)) for json in offered.context]  # nearly always new
    own = [
        known[id if featuriser.ids_are_features else None, bytes(json)]
        for id, json in zip(offered.ids, offered.features, strict=True)
    ]
    call = Call(shared[0] if len(shared) == 1 else joined(*shared), own)
    if call.products > MOST_PRODUCTS:
        raise FeatureError(
            f"there are {call.products:,} products of context and action features, but at most "
            f"{MOST_PRODUCTS:,} are taken; send fewer features or fewer actions"
        )
    return call


def _products(counts: Int[np.ndarray, " groups"], sizes: Int[np.ndarray, " calls"]) -> int:
    """Return how many products the largest call has; counts are those of its context and of its actions."""
    firsts = np.cumsum(sizes + 1) - sizes - 1
    shared = counts[firsts]
    return int((shared * (np.add.reduceat(counts, firsts) - shared)).max())


class Groups(dict[tuple[str | None, bytes], Group]):
    """The features of (id, JSON array), where an id is a feature unless it is None; raises FeatureError.

    A dict, so that what is known costs one lookup. When it is full it starts anew, and what it had is
    kept for one time more: so what comes again and again stays, and what came once does not.
    """

    __slots__ = ("before", "codes", "seed")

    def __init__(self, seed: int, pairs: Pairs | None) -> None:
        self.seed = seed
        self.codes = interactions_of(pairs).codes
        self.before: dict[tuple[str | None, bytes], Group] = {}

    def __missing__(self, sent: tuple[str | None, bytes]) -> Group:
        """Return features that did not come lately, and remember them unless they are long."""
        found = self.before.get(sent) or self.read(*sent)
        if len(sent[1]) <= _LONGEST:
            if len(self) >= _REMEMBERED:
                self.before = dict(self)
                self.clear()
            self[sent] = found
        return found

    def read(self, id: str | None, json: bytes) -> Group:
        """Return features without remembering them."""
        try:
            features: Any = _decoder.decode(json)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FeatureError(f"features cannot be read: {error}") from None
        return read(features, id, self.seed, self.codes, "features")


@lru_cache(maxsize=8)
def groups_of(seed: int, pairs: Pairs | None) -> Groups:
    """Return what was read with these settings, which all featurisers that have them share."""
    return Groups(seed, pairs)
