"""From hashed features to sparse rows: slots, signs, interactions, sums and lengths."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from rbmle.core.types import Rows, Scales
from rbmle.engine.feature_rows import feature_rows
from rbmle.engine.scaling import plain_values, scaled_values
from rbmle.features.reading import ALONE, OTHER, Group

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
        """Return how many products of features it has."""
        return self.context.size * sum([action.size for action in self.actions])


def rows_of(
    calls: Sequence[Call],
    bits: int,
    pairs: Pairs | None,
    scales: Scales | None = None,
    is_learning: bool = False,
) -> Rows:
    """Return a row for each action of each call: its features, the context's and products of the two.

    Features are scaled by what is known of them, if there are scales, which learn from them first if
    they are learning; else a number x is arcsinh(x): near 0 that is x, far away ± log 2|x|.

    They are in 2^bits slots. A product with hash h is added to the slot of h's low bits, with the sign
    of h's top bit. Slot 0 is the constant's alone: what would fall there goes to slot 1.
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
    """Put what the network sees in the place of numbers as they came."""
    if scales is None:
        plain_values(values)
    else:
        scaled_values(hashes, counts, sizes, scales, is_learning, values)
