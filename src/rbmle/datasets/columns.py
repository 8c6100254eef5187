"""The two kinds of columns: numbers, and categories with a code each."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from rbmle.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("?", "missing")  # texts that mean a missing value, besides NaN


def is_numeric(column: "pd.Series") -> bool:
    """Say whether a column holds numbers or truth values."""
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column))


def numbers(column: "pd.Series") -> np.ndarray:
    """Return a numeric column as it is stored, so that 0/1 stay one byte; missing ones are NaN."""
    if column.dtype.kind == "b" and not column.hasnans:
        return column.to_numpy(np.uint8)
    is_plain = isinstance(column.dtype, np.dtype)
    values = column.to_numpy() if is_plain else column.to_numpy(np.float64, na_value=np.nan)
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DatasetError(
            f"column {column.name!r} is {values[row]} in row {row + 1}; expected finite numbers; "
            "correct it, or leave the field empty if the value is unknown"
        )
    return values


def codes(column: "pd.Series") -> tuple[Int[np.ndarray, " rows"], tuple[str, ...]]:
    """Return a code for each row, −1 if missing, and the categories in alphabetical order."""
    category = column.astype("category").cat.remove_unused_categories().cat
    names = [str(value) for value in category.categories]
    known = sorted(set(names) - set(MISSING))
    place = {name: i for i, name in enumerate(known)}
    places = np.array([place.get(name, -1) for name in names] + [-1])  # the last one is NaN's
    return places[category.codes.to_numpy()], tuple(known)
