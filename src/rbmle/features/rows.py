"""From hashed features to sparse rows: slots, signs, interactions, sums and lengths."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from rbmle.core.types import Rows
from rbmle.engine.feature_rows import feature_rows
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


def rows_of(calls: Sequence[Call], bits: int, pairs: Pairs | None) -> Rows:
    """Return a row for each action of each call: its features, the context's and products of the two.

    They are in 2^bits slots. A product with hash h is added to the slot of h's low bits, with the sign
    of h's top bit. Slot 0 is the constant's alone: what would fall there goes to slot 1.
    """
    groups = [group for context, actions in calls for group in (context, *actions)]
    return feature_rows(
        np.frombuffer(bytearray().join([group.hashes for group in groups]), np.uint64),
        np.frombuffer(bytearray().join([group.values for group in groups]), np.float64),
        np.array([group.size for group in groups], np.int64),
        np.array([len(call.actions) for call in calls], np.int64),
        np.frombuffer(bytearray().join([group.codes for group in groups]), np.int64),
        interactions_of(pairs).chosen,
        bits,
    )
