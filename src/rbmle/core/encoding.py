"""Turn a user's features into contexts; shapes and numbers are checked here and nowhere else.

Features are known by place, by name, or read by another kind of encoder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rbmle.core import MAKERS
from rbmle.core.checks import as_list, is_real, real_array, shorten, whole_number
from rbmle.core.errors import ContextError, SettingError
from rbmle.core.policy import IgnoresContexts, has
from rbmle.core.types import ArmId, Contexts, Moments, Rows, Scales

# Squares of larger numbers leave the range of single precision.
LARGEST = 1e12
LONG = 4096  # numbers

# What to do about a matrix where one vector is expected, or the other way round.
FOR_MANY = (
    "to decide many rounds, use decide_many; if each arm has its own features, make the bandit with "
    "encoding='per-arm'"
)
FOR_ONE = (
    "for one vector that all arms share, make the bandit with encoding='disjoint' and its arms"
)


def disjoint(x: Any, blocks: np.ndarray, features: int, many: str = FOR_MANY) -> Contexts:
    """Return a vector x in each of the blocks; `many` is what the error advises if x is a matrix."""
    indices, values = _entries(x, features, many)
    n = len(blocks)
    starts, lengths = np.zeros(n, np.int64), np.empty(n, np.int64)
    lengths.fill(len(indices))
    return Contexts(rows=Rows(starts, lengths, blocks, indices, values), features=features)


def per_arm(X: Any, features: int, advice: str = FOR_ONE) -> Contexts:
    """Return a row of features for each arm, all in block 0; `advice` is for the error if X is not a matrix."""
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
            f"one row of {features} features for each arm, or for each round of a batch; {advice}"
        )
    _check(X)
    n = len(X)
    every = np.tile(np.arange(features, dtype=np.int32), (n, 1))
    if np.count_nonzero(X) == X.size:  # saves the cost of a mask
        lengths, indices, values = np.full(n, features), every.reshape(-1), X.reshape(-1)
    else:
        is_there = X != 0
        lengths, indices, values = is_there.sum(axis=1), every[is_there], X[is_there]
    rows = Rows(_starts(lengths), lengths, np.zeros(n, np.int64), indices, values)
    return Contexts(rows=rows, features=features)


def every_in_blocks(contexts: Contexts, blocks: np.ndarray) -> Contexts:
    """Return each context in each of the blocks; the copies of a context follow each other."""
    n, (starts, lengths, _, indices, values) = len(blocks), contexts.rows
    everywhere = np.tile(blocks, len(contexts))
    rows = Rows(np.repeat(starts, n), np.repeat(lengths, n), everywhere, indices, values)
    return Contexts(rows=rows, features=contexts.features)


def with_constant(contexts: Contexts) -> Contexts:
    """Append a feature that is always 1.

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


def stack(several: Sequence[Contexts]) -> Contexts:
    """Concatenate the rows of several contexts."""
    starts, lengths, blocks, indices, values = zip(
        *(contexts.rows for contexts in several), strict=True
    )
    ends = np.cumsum([len(part) for part in indices])
    offsets = [end - len(part) for part, end in zip(indices, ends, strict=True)]
    moved = [part + offset for part, offset in zip(starts, offsets, strict=True)]
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
    try:
        return real_array(x, is_copied)
    except (TypeError, ValueError) as error:
        raise ContextError(
            f"the context {shorten(x)} is not an array of numbers ({error}); give numbers, with all rows of "
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


RUNNING = "running"  # scaling by the mean and the deviation of what was learned
_SHOWN = 8  # names in a message


@runtime_checkable
class Encoder(Protocol):
    """Turns features into numbers: a frozen dataclass, whose settings are part of a bandit.

    It is stateless: the same features become the same numbers, whatever was encoded before. It returns
    arrays, sparse matrices or `Contexts`. If contexts are per arm, `row` and `rows` get the arms whose features
    these are, else None.
    """

    @property
    def size(self) -> int:
        """Return the number of features that `row` returns."""
        ...

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return one vector of features; raise ContextError."""
        ...

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return several vectors, one for each arm or round; raise ContextError."""
        ...


@runtime_checkable
class Scaling(Protocol):
    """An encoder that scales features by statistics, which the bandit keeps."""

    def start(self) -> Scales | Moments | None:
        """Return the statistics before any data; None if the encoder keeps none."""
        ...


class ChecksUse(Protocol):
    """An encoder that cannot read features itself with some settings."""

    def check_usable(self) -> None:
        """Raise SettingError for such settings."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """Marks the encoder of a bandit whose caller has encoded the features already."""

    encoder: int | Encoder


@runtime_checkable
class ScalesContexts(Scaling, Protocol):
    """An encoder whose contexts keep the user's units, and are scaled when the policy sees them."""

    @property
    def seen(self) -> int:
        """Return the number of features that the policy sees."""
        ...

    def scale(self, contexts: Contexts, scales: Any, *, is_learning: bool = False) -> Contexts:
        """Return contexts as the policy sees them; if `is_learning`, rows update the scales once scaled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Features that are known by their place alone."""

    size: int

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the vector as it is; raise ContextError for a series with names."""
        self._check(index_of(x, needs_names=False), "series")
        return x

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return the vectors as they are; raise ContextError for a data frame with names."""
        self._check(columns_of(X), "data frame")
        return X

    def _check(self, names: list[Any] | None, what: str) -> None:
        if names is not None and names != list(range(len(names))):
            raise ContextError(
                f"the {what} has the names {_list_names(names)}, but this bandit was made with "
                f"features={self.size} and knows none, so their order could be any; make it with "
                f"features=[{_list_names(names)}], or give x.to_numpy() if the order is right"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Features that are known by name, whatever their order: in dictionaries, series and data frames.

    Arrays have no names, and are taken in the order of these.

    >>> Names(names=("age", "income")).row({"income": 2.5, "age": 31}, None)
    array([31. ,  2.5])
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or not all(isinstance(name, str) for name in self.names):
            raise SettingError(
                f"`features` must be at least one name, and names must be strings, got {list(self.names)!r}"
            )
        if len(set(self.names)) < len(self.names):
            raise SettingError(f"`features` must be names that differ, got {list(self.names)!r}")

    @property
    def size(self) -> int:
        """Return the number of features."""
        return len(self.names)

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the numbers of a dictionary or a series in the order of the names; arrays stay as they are."""
        if not isinstance(x, Mapping):
            index = index_of(x, needs_names=True)
            if index is None:
                return x
            x = dict(zip(index, x.to_numpy(), strict=True))
        if len(x) != len(self.names) or not all(name in x for name in self.names):
            raise self._mismatch(x)
        return self._numbers([x[name] for name in self.names])

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return the numbers of a data frame, or of each row, in the order of the names; arrays as they are."""
        columns = columns_of(X)
        if columns is None:
            return [self.row(x, None) for x in X] if isinstance(X, list | tuple) else X
        if {*columns} != {*self.names}:
            raise self._mismatch(columns)
        places = {name: place for place, name in enumerate(columns)}
        return self._numbers(X.to_numpy()[:, [places[name] for name in self.names]])

    def _mismatch(self, names: Iterable[Any]) -> ContextError:
        """Return the error for names that differ from these."""
        names = list(names)
        missing = [name for name in self.names if name not in names]
        unknown = [name for name in names if name not in self.names]
        parts = [("missing", missing), ("not a feature of this bandit", unknown)]
        wrong = "; ".join(f"{what}: {_list_names(names)}" for what, names in parts if names)
        return ContextError(
            f"the features given are not those of the bandit ({wrong}); give {_list_names(self.names)} and "
            "no others"
        )

    def _numbers(self, values: Any) -> np.ndarray:
        """Return an array, or raise ContextError with the name of the first feature that is not a number."""
        try:
            numbers = real_array(values)
        except (TypeError, ValueError):
            numbers = None
        if numbers is not None and (np.abs(numbers) <= LARGEST).all():
            return numbers
        rows = values if isinstance(values, np.ndarray) else [values]
        named = (pair for row in rows for pair in zip(self.names, row, strict=True))
        name, value = next(pair for pair in named if not _is_number(pair[1]))
        raise ContextError(
            f"feature {name!r} is {_short(value)}, but a finite number of at most {LARGEST:g} in size is "
            "expected; replace missing values, scale large ones, and for categories make the bandit with "
            "features=Hashing()"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFeatures:
    """No features: all that is known of a round is that it came, so every context is the number 1.

    >>> NoFeatures().row(None, None), NoFeatures().rows(2, None).tolist()
    ([1.0], [[1.0], [1.0]])
    """

    @property
    def size(self) -> int:
        """Return 1."""
        return 1

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return the number 1; raise ContextError for a context."""
        if x is None:
            return [1.0]
        raise ContextError(
            f"this bandit was made without features, but the context {_short(x)} was given; leave it out, or "
            "make the bandit with features=…"
        )

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return a number 1 for each of X rounds."""
        if isinstance(X, int | np.integer) and not isinstance(X, bool) and X >= 0:
            return np.ones((int(X), 1))
        raise ContextError(
            f"this bandit was made without features, so many rounds are given as their number, got {_short(X)}"
        )


def encoder_for(
    features: int | Iterable[str] | Encoder | Encoded | None, policy: object, scaling: str | None
) -> Encoder:
    """Return the encoder of features; a policy that ignores contexts needs none."""
    if scaling not in {None, RUNNING}:
        raise SettingError(f"`scaling` must be {RUNNING!r} or None, got {scaling!r}")
    ignores_contexts = has(policy, IgnoresContexts)
    if features is None and ignores_contexts:
        return NoFeatures()
    if scaling is not None and isinstance(features, Encoder | Encoded):
        raise SettingError(
            f"`scaling` is for a number of features or their names, but {features!r} was given, which scales "
            "numbers itself; leave `scaling` out"
        )
    if isinstance(features, Encoded):
        return encoder_of(features.encoder)
    encoder = encoder_of(features)
    if has(encoder, ChecksUse):
        encoder.check_usable()
    if scaling is None or ignores_contexts:
        return encoder
    running: Encoder = MAKERS[RUNNING](encoder)
    return running


def encoder_of(features: int | Iterable[str] | Encoder | None) -> Encoder:
    """Return the encoder of a number of features, or of their names; raise SettingError."""
    if isinstance(features, Encoder):
        return features
    if isinstance(features, Iterable) and not isinstance(features, str):
        return Names(names=tuple(as_list("features", features)))
    if isinstance(features, str) or features is None:
        raise SettingError(
            "`features` must be a number of features, a list of their names or an encoder such as "
            f"Hashing(), got {features!r}"
        )
    return Places(size=whole_number("features", features, least=1))


def _is_number(x: Any) -> bool:
    return (is_real(x) or isinstance(x, bool | np.bool_)) and bool(abs(float(x)) <= LARGEST)


def _short(value: Any) -> str:
    """Return a value for a message."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _list_names(names: Sequence[Any]) -> str:
    """Return the first names in words."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, … ({len(names) - _SHOWN} more)"


def columns_of(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None for anything else."""
    if not hasattr(X, "to_numpy") or not hasattr(X, "columns"):
        return None
    columns = list(X.columns)
    _check_distinct(columns, "column")
    return columns


def index_of(x: Any, *, needs_names: bool) -> list[Any] | None:
    """Return the names of the values of a series; None for anything without names."""
    if not hasattr(x, "to_numpy"):
        return None
    if hasattr(x, "columns"):
        is_pandas = hasattr(x, "iloc")
        named = "x.iloc[0]" if is_pandas else "x.row(0, named=True)"
        plain = "x.iloc[0].to_numpy()" if is_pandas else "x.row(0)"
        rows = "1 row" if len(x) == 1 else f"{len(x)} rows"
        raise ContextError(
            f"a data frame of {rows} was given where one context is expected; give one row, as in "
            f"{named if needs_names else plain}, and all rows to decide_many or partial_fit"
        )
    if not hasattr(x, "index"):
        return None
    index = list(x.index)
    _check_distinct(index, "name")
    return index


def records(X: Any) -> Iterator[dict[Any, Any]] | None:
    """Return the rows of a data frame as dictionaries of plain Python values; None for anything else."""
    columns = columns_of(X)
    if columns is None:
        return None
    values = [X[name].to_list() for name in columns]
    return (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _check_distinct(names: list[Any], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ContextError(f"the {what} {twice!r} is there twice; names must differ")
