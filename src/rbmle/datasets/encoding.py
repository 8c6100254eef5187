"""A column as numbers of like size, by what some of its rows show of it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Bool, Float32, Int, Shaped

from rbmle.datasets.columns import codes, is_numeric, numbers
from rbmle.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

NORMAL_IQR = 1.349  # between the quartiles of a normal distribution with standard deviation 1
BOUND = 3.0  # standard deviations
MAX_CATEGORIES = 1000  # of a column; more are names or keys, which say nothing of the next row
ALL = slice(None)

Places = Int[np.ndarray, " rows"] | slice


class Encoder(Protocol):
    """A column of a table. How many numbers it becomes does not depend on the rows that were seen."""

    def encode(self, rows: Places, seen: Places) -> Shaped[np.ndarray, "rows _"]:
        """Return the numbers of some rows, by the statistics of those that were seen."""


def encoder(column: "pd.Series") -> Encoder:
    """Return the encoder that a column's kind asks for."""
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
        """Return which category each row has; nothing is learned from others."""
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
        """Return the numbers that are not missing."""
        return self.values if self.missing is None else self.values[~self.missing]

    @cached_property
    def peak(self) -> float:
        """Return the largest size of a number; divided by it, nothing overflows."""
        return max(abs(float(self.known.min())), abs(float(self.known.max()))) or 1.0

    @cached_property
    def is_binary(self) -> bool:
        """Return whether all numbers are 0 or 1."""
        return bool(np.all((self.known == 0) | (self.known == 1)))

    def encode(self, rows: Places, seen: Places) -> Shaped[np.ndarray, "rows _"]:
        """Return value and rank among the numbers that were seen."""
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
