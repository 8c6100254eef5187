"""From a user's features to contexts: the one border where shapes and numbers are checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbmle.core.checks import real_array, shortened
from rbmle.core.errors import ContextError
from rbmle.core.types import Contexts, Rows

# Squares of larger numbers leave the range of single precision.
LARGEST = 1e12
LONG = 4096  # numbers

# What to do about a matrix where one vector is expected, or the other way round.
FOR_MANY = (
    "to decide many rounds, use decide_many; to give each arm features of its own, make the bandit with "
    "encoding='per-arm'"
)
FOR_ONE = (
    "for one vector that all arms share, make the bandit with encoding='disjoint' and its arms"
)


def disjoint(x: Any, blocks: np.ndarray, features: int, many: str = FOR_MANY) -> Contexts:
    """Return one vector x in each of the given blocks; `many` is the advice if x is a matrix."""
    indices, values = _entries(x, features, many)
    n = len(blocks)
    starts, lengths = np.zeros(n, np.int64), np.empty(n, np.int64)
    lengths.fill(len(indices))
    return Contexts(rows=Rows(starts, lengths, blocks, indices, values), features=features)


def per_arm(X: Any, features: int, one: str = FOR_ONE) -> Contexts:
    """Return a row of features for each arm, all in block 0; `one` is the advice if X is no matrix."""
    if isinstance(X, Contexts):  # made by code that has checked it
        if X.features != features:
            raise ContextError(
                f"the contexts have {X.features} features, but {features} are expected; they were made "
                "for another bandit"
            )
        return X
    if hasattr(X, "tocsr"):
        return _sparse_rows(X, features)
    X = _array(X, is_copied=False)  # `Contexts.row` copies what outlives the call
    if X.ndim != 2 or X.shape[1] != features:
        raise ContextError(
            f"the contexts have the shape {X.shape}, but a matrix of shape (n, {features}) is expected: "
            f"one row of {features} features for each arm, or for each round of a batch; {one}"
        )
    _check(X)
    n = len(X)
    every = np.tile(np.arange(features, dtype=np.int32), (n, 1))
    if np.count_nonzero(X) == X.size:  # what a mask costs is saved
        lengths, indices, values = np.full(n, features), every.reshape(-1), X.reshape(-1)
    else:
        is_there = X != 0
        lengths, indices, values = is_there.sum(axis=1), every[is_there], X[is_there]
    rows = Rows(_starts(lengths), lengths, np.zeros(n, np.int64), indices, values)
    return Contexts(rows=rows, features=features)


def every_in_blocks(contexts: Contexts, blocks: np.ndarray) -> Contexts:
    """Return each of some contexts in each of the given blocks, those of one context together."""
    n, (starts, lengths, _, indices, values) = len(blocks), contexts.rows
    everywhere = np.tile(blocks, len(contexts))
    rows = Rows(np.repeat(starts, n), np.repeat(lengths, n), everywhere, indices, values)
    return Contexts(rows=rows, features=contexts.features)


def with_constant(contexts: Contexts) -> Contexts:
    """Return contexts with one more feature, which is 1.

    >>> with_constant(per_arm([[2.0, 3.0], [0.0, 4.0]], 2)).dense()
    array([[2., 3., 1.],
           [0., 4., 1.]])
    """
    starts, lengths, blocks, indices, values = contexts.rows
    features = contexts.features
    if len(starts) > 0 and (starts == starts[0]).all() and (lengths == lengths[0]).all():
        entries = slice(starts[0], starts[0] + lengths[0])  # one vector for all
        indices = np.append(indices[entries], np.int32(features))
        values = np.append(values[entries], values.dtype.type(1))
        rows = Rows(np.zeros_like(starts), lengths + 1, blocks, indices, values)
        return Contexts(rows=rows, features=features + 1)
    ends = np.cumsum(lengths)
    at = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    rows = Rows(
        _starts(lengths + 1),
        lengths + 1,
        blocks,
        np.insert(indices[at], ends, features).astype(np.int32, copy=False),
        np.insert(values[at], ends, 1),
    )
    return Contexts(rows=rows, features=features + 1)


def stacked(several: Sequence[Contexts]) -> Contexts:
    """Return the rows of several contexts as those of one."""
    starts, lengths, blocks, indices, values = zip(*(one.rows for one in several), strict=True)
    ends = np.cumsum([len(part) for part in indices])
    moved = [part + end - len(own) for part, end, own in zip(starts, ends, indices, strict=True)]
    parts = (moved, lengths, blocks, indices, values)
    return Contexts(rows=Rows(*map(np.concatenate, parts)), features=several[0].features)


def _entries(x: Any, features: int, many: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices and values of a vector's non-zero features."""
    if isinstance(x, Contexts) or hasattr(x, "tocsr"):
        only = per_arm(x, features)
        if len(only) != 1:
            raise ContextError(
                f"the context has {len(only)} rows, but one vector of {features} features is expected; {many}"
            )
        return only.row(0).rows[-2:]
    x = _array(x)
    if x.shape != (features,):
        raise ContextError(
            f"the context has the shape {x.shape}, but a vector of shape ({features},) is expected; "
            f"{_advice(x, features, many)}"
        )
    _check(x)
    if np.count_nonzero(x) == features:
        return np.arange(features, dtype=np.int32), x
    indices = x.nonzero()[0]
    return indices.astype(np.int32), x[indices]


def _sparse_rows(X: Any, features: int) -> Contexts:
    """Return a SciPy sparse matrix as contexts, each row in block 0."""
    X = X.tocsr(copy=True)
    if X.ndim == 1:
        X = X.reshape(1, -1)
    if X.shape[1] != features:
        raise ContextError(
            f"the sparse contexts have {X.shape[1]} features, but {features} are expected; check the "
            f"matrix, or make the bandit with features={X.shape[1]}"
        )
    X.sum_duplicates()
    X.eliminate_zeros()
    values = _array(X.data)
    _check(values)
    n, lengths = X.shape[0], np.diff(X.indptr).astype(np.int64)
    rows = Rows(
        _starts(lengths), lengths, np.zeros(n, np.int64), X.indices.astype(np.int32), values
    )
    return Contexts(rows=rows, features=features)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)


def _array(x: Any, is_copied: bool = True) -> np.ndarray:
    """Return a contiguous array of float64: a copy, or the user's own if that will do."""
    try:
        return real_array(x, is_copied)
    except (TypeError, ValueError) as error:
        raise ContextError(
            f"the context {shortened(x)} is not an array of numbers ({error}); give numbers, with all rows of "
            "the same length, and encode categories as numbers; for dictionaries, make the bandit with "
            "features=[…names…] or features=Hashing()"
        ) from None


def _check(x: np.ndarray) -> None:
    """Raise ContextError for NaN, infinity and numbers that are too large."""
    flat = x.reshape(-1)
    # A product is cheap, but that of a long vector would wake the threads of a linear algebra library.
    is_sound = len(flat) <= LONG and flat @ flat <= LARGEST
    if not is_sound and not (np.abs(flat) <= LARGEST).all():
        at = tuple(int(i) for i in np.argwhere(~(np.abs(x) <= LARGEST))[0])
        raise ContextError(
            f"feature {at if len(at) > 1 else at[0]} of the context is {x[at]}, but features must be finite "
            f"numbers of at most {LARGEST:g} in size; replace missing values, and scale large ones"
        )


def _advice(x: np.ndarray, features: int, many: str) -> str:
    """Return what to do about a context of the wrong shape."""
    if x.shape == (1, features):
        return "give the row itself, as in x[0]"
    if x.ndim == 2 and x.shape[1] == features:
        return many
    return f"check the vector, or make the bandit with features={x.shape[-1] if x.ndim else 1}"
