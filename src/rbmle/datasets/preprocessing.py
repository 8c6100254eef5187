"""Turn a raw table into the numbers that a policy sees, by a named method."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Shaped

from rbmle.core.checks import no_such
from rbmle.datasets.catalog import Dataset, DatasetError, Table
from rbmle.datasets.columns import codes, is_numeric, numbers

if TYPE_CHECKING:
    import pandas as pd


NORMAL_IQR = 1.349  # between the quartiles of a normal distribution with standard deviation 1
BOUND = 3.0  # standard deviations
MAX_CATEGORIES = 1000  # of a column; more are names or keys, which do not generalise
ALL = slice(None)

Places = Int[np.ndarray, " rows"] | slice


class ColumnEncoder(Protocol):
    """Encodes a column; how many numbers it becomes does not depend on the rows that were seen."""

    def encode(self, rows: Places, seen: Places) -> Shaped[np.ndarray, "rows _"]:
        """Return the numbers of some rows, by the statistics of the `seen` rows."""


def encoder(column: "pd.Series") -> ColumnEncoder:
    """Return the encoder for the kind of a column."""
    if is_numeric(column):
        return Numeric(values=numbers(column))
    places, categories = codes(column)
    if len(categories) > MAX_CATEGORIES:
        raise DatasetError(
            f"column {column.name!r} has {len(categories)} categories; expected at most "
            f"{MAX_CATEGORIES}; if it names rows, leave it out with --drop {column.name}; if it has an "
            "order, make it a number"
        )
    return OneHot(places=places, categories=len(categories))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHot:
    """A number for each category, the last of them for missing values."""

    places: Int[np.ndarray, " rows"] = field(repr=False)
    categories: int

    def encode(self, rows: Places, seen: Places) -> Bool[np.ndarray, "rows categories+1"]:
        return self.places[rows, None] == np.array([*range(self.categories), -1])


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """Each number by value and by rank, and whether it is missing if one is; 0/1 stay 0/1."""

    values: Shaped[np.ndarray, " rows"] = field(repr=False)

    @cached_property
    def missing(self) -> Bool[np.ndarray, " rows"] | None:
        """Return which numbers are missing, or None if none is."""
        missing = np.isnan(self.values) if self.values.dtype.kind == "f" else None
        return missing if missing is not None and missing.any() else None

    @cached_property
    def known(self) -> Shaped[np.ndarray, " known"]:
        return self.values if self.missing is None else self.values[~self.missing]

    @cached_property
    def peak(self) -> float:
        """The largest absolute value; divided by it, nothing overflows."""
        return max(abs(float(self.known.min())), abs(float(self.known.max()))) or 1.0

    @cached_property
    def is_binary(self) -> bool:
        return bool(np.all((self.known == 0) | (self.known == 1)))

    def encode(self, rows: Places, seen: Places) -> Shaped[np.ndarray, "rows _"]:
        """Return each value and its rank among the numbers that were seen."""
        values = self.values[rows]
        if self.missing is None:
            return self._both(values, self.values[seen])
        missing = self.missing[rows]
        if len(self.known) == 0 or self.known.min() == self.known.max():
            return missing[:, None]
        known = self._both(values[~missing], self.values[seen][~self.missing[seen]])
        filled = np.zeros((len(values), known.shape[1]), np.float32)
        filled[~missing] = known
        return np.concatenate([filled, missing[:, None]], axis=1, dtype=np.float32)

    def _both(
        self, values: Shaped[np.ndarray, " rows"], seen: Shaped[np.ndarray, " seen"]
    ) -> Shaped[np.ndarray, "rows _"]:
        if self.is_binary:
            return values[:, None]
        if len(seen) == 0:
            return np.zeros((len(values), 2), np.float32)
        return np.stack([robust(values, seen, self.peak), rank(values, seen)], axis=1)


def robust(
    values: Shaped[np.ndarray, " rows"], seen: Shaped[np.ndarray, " seen"], peak: float
) -> Float32[np.ndarray, " rows"]:
    """Return z/√(1 + (z/3)²) with z = (x − median)/scale: z where it is small, and at most 3 in size.

    The scale is the distance of the quartiles over 1.349, or the standard deviation
    if the quartiles are equal. No number is larger than the peak.
    """
    x, past = values.astype(np.float64) / peak, seen.astype(np.float64) / peak
    low, median, high = np.percentile(past, [25, 50, 75])
    scale = (high - low) / NORMAL_IQR if high > low else past.std()
    if scale == 0:
        return np.zeros(len(x), np.float32)
    # z/√(1 + (z/3)²), with no quotient that could overflow
    z = (x - median) / np.hypot(scale, (x - median) / BOUND)
    return z.astype(np.float32)


def rank(
    values: Shaped[np.ndarray, " rows"], seen: Shaped[np.ndarray, " seen"]
) -> Float32[np.ndarray, " rows"]:
    """Return the share of smaller numbers, equal ones counted half, as −√3 … √3 with variance 1."""
    past = np.sort(seen)
    smaller, equal_too = (np.searchsorted(past, values, side) for side in ("left", "right"))
    share = (smaller + equal_too) / 2 / len(past)
    return ((share - 1 / 2) * 12**0.5).astype(np.float32)


FEWEST_PIXELS = 64  # 8 × 8
BRIGHTEST = 255


def is_image(frame: "pd.DataFrame") -> bool:
    """Return whether all columns are pixels: 64 or more integers in 0 … 255 that share one scale.

    They share it if at least half of the columns that vary reach half of the largest value.
    """
    if frame.shape[1] < FEWEST_PIXELS or any(kind.kind not in "iu" for kind in frame.dtypes):
        return False
    values = frame.to_numpy()
    lows, highs = values.min(axis=0), values.max(axis=0)
    peaks = highs[highs > lows]
    if lows.min() != 0 or highs.max() > BRIGHTEST or len(peaks) == 0:
        return False
    return bool((2 * peaks.astype(int) >= int(highs.max())).mean() >= 1 / 2)


CONSTANT = 0.5**0.5
IMAGE_LENGTH = 2.0


def standard(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return pixels or columns as numbers of similar size."""
    X = pixels(frame) if is_image(frame) else columns(frame)
    if X.shape[1] == 1:
        raise DatasetError(
            f"no feature varies: all {frame.shape[1]} columns are constant; "
            "expected at least one that differs between rows; check the file"
        )
    return X


def pixels(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the pixels that vary, with each image scaled to length 2, and a constant."""
    values = frame.to_numpy()
    X = values[:, varies(values)].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return with_constant(X, IMAGE_LENGTH / np.maximum(lengths, 1)[:, None])


def columns(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the columns side by side, each encoded by its kind, and a constant.

    Rows have mean squared length 1, half of which is the constant.
    """
    X = side_by_side([encoder(column) for _, column in frame.items()], len(frame), ALL, ALL)
    X = X.compress(varies(X), axis=1)
    return with_constant(X, scale_of(X))


def side_by_side(
    encoders: Sequence[ColumnEncoder], count: int, rows: Places, seen: Places
) -> Float32[np.ndarray, "rows columns"]:
    """Return all columns of `count` rows, encoded by the statistics of the `seen` rows."""
    blocks = [column_encoder.encode(rows, seen) for column_encoder in encoders]
    return np.concatenate([np.empty((count, 0), np.float32), *blocks], axis=1, dtype=np.float32)


def scale_of(X: Float32[np.ndarray, "rows columns"]) -> np.float64:
    """Return the factor that gives rows a mean squared length of ½."""
    squares = np.einsum("ij,ij->i", X, X).mean(dtype=np.float64)
    return (2 * squares) ** -0.5 if squares else np.float64(0)


def varies(block: Shaped[np.ndarray, "rows columns"]) -> Bool[np.ndarray, " columns"]:
    return block.min(axis=0) != block.max(axis=0)


def with_constant(
    X: Float32[np.ndarray, "rows features"], scale: np.float64 | Float32[np.ndarray, "rows 1"]
) -> Float32[np.ndarray, "rows features+1"]:
    """Return rows (scale · x, √½).

    The constant gives each arm a level of its own: a network's biases are shared by all arms.
    """
    out = np.empty((len(X), X.shape[1] + 1), np.float32)
    np.multiply(X, scale, out=out[:, :-1])
    out[:, -1] = CONSTANT
    return out


def online(
    frame: "pd.DataFrame", order: Int[np.ndarray, " rows"]
) -> Float32[np.ndarray, "rows features"]:
    """Return rows as `standard` would, if it were fitted only to the rows that came before, in this order.

    It is fitted again whenever their number doubles. The columns that vary, their kinds and their categories
    are known beforehand: they determine how many features there are. Pixels need no fit.
    """
    if is_image(frame):
        return pixels(frame)
    encoders = [encoder(column) for _, column in frame.items()]
    is_kept = varies(side_by_side(encoders, len(frame), ALL, ALL))
    X = np.empty((len(frame), int(is_kept.sum()) + 1), np.float32)
    for begin, end in epochs(len(frame)):
        seen, rows = order[: begin + 1], order[begin:end]
        fitted = side_by_side(encoders, len(seen), seen, seen).compress(is_kept, axis=1)
        shown = side_by_side(encoders, len(rows), rows, seen).compress(is_kept, axis=1)
        X[rows] = with_constant(shown, scale_of(fitted))
    return X


def epochs(rounds: int) -> Iterator[tuple[int, int]]:
    """Yield the first round of each epoch and the end of it.

    >>> list(epochs(10))
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 10)]
    """
    begin = 0
    while begin < rounds:
        end = min(max(2 * begin, 1), rounds)
        yield begin, end
        begin = end


ROWS_AT_ONCE = 16_384  # a chunk in double precision stays small


def paper(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return all columns as numbers, and each row with length 1."""
    columns = [ordinal(column) for _, column in frame.items()]
    X = np.empty((len(frame), len(columns)), np.float32)
    for start in range(0, len(frame), ROWS_AT_ONCE):
        chunk = slice(start, start + ROWS_AT_ONCE)
        X[chunk] = unit_rows(np.stack([c[chunk] for c in columns], axis=1).astype(np.float64))
    return X


def ordinal(column: "pd.Series") -> np.ndarray:
    """Return numbers unchanged and categories as codes; missing values are −1."""
    if not is_numeric(column):
        return codes(column)[0]
    values = numbers(column)
    return np.where(np.isnan(values), -1.0, values) if values.dtype.kind == "f" else values


def unit_rows(X: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows features"]:
    """Return x / ‖x‖ for each row; a row of zeros is left unchanged."""
    peaks = np.abs(X).max(axis=1, keepdims=True)  # squares of x / peak cannot overflow
    X = X / np.where(peaks == 0, 1.0, peaks)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths == 0, 1.0, lengths)


def paired_rows(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return (x, x)/√2 for each row x of `paper`: with the paired start, f(x; θ₀) = 0."""
    X = paper(frame) / np.float32(2**0.5)
    return np.concatenate([X, X], axis=1)


ONLINE = "online"
_METHODS = {"standard": standard, ONLINE: standard, "paper": paper, "paired": paired_rows}
PREPROCESSINGS = tuple(_METHODS)


def preprocess(table: Table, method: str) -> Dataset:
    """Return the table as single-precision rows; labels stay as they are.

    `online` is fitted as rows come, so the table is kept; X then only shows how many features there are.
    """
    if method not in _METHODS:
        raise DatasetError(no_such("preprocessing", method, PREPROCESSINGS))
    X = _METHODS[method](table.frame)
    return Dataset(
        name=table.name,
        X=X,
        labels=table.labels,
        preprocessing=method,
        digest=table.digest,
        content=hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=16).hexdigest(),
        reading=table.reading,
        frame=table.frame if method == ONLINE else None,
    )
