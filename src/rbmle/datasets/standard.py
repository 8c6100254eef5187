"""The default preprocessing: one-hot categories, numbers by value and by rank, and a constant.

It looks at features only, never at labels.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float32, Shaped

from rbmle.datasets.columns import codes, is_numeric, numbers
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.image import is_image

if TYPE_CHECKING:
    import pandas as pd

NORMAL_IQR = 1.349  # between the quartiles of a normal distribution with standard deviation 1
BOUND = 3.0  # standard deviations
CONSTANT = 0.5**0.5
IMAGE_LENGTH = 2.0
MAX_CATEGORIES = 1000  # of a column; more are names or keys, which say nothing of the next row


def standard(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return pixels or columns as numbers of like size."""
    X = pixels(frame) if is_image(frame) else columns(frame)
    if X.shape[1] == 1:
        raise DatasetError(
            f"no feature varies: all {frame.shape[1]} columns are constant; "
            "expected at least one that differs between rows; check the file"
        )
    return X


def pixels(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the pixels that vary, each image brought to length 2, and a constant."""
    X = varying(frame.to_numpy()).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return with_constant(X, IMAGE_LENGTH / np.maximum(lengths, 1)[:, None])


def columns(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the columns side by side, each as what its kind asks for, and a constant.

    Rows have mean squared length 1, half of which is the constant.
    """
    blocks = [
        varying(scaled(column) if is_numeric(column) else one_hot(column))
        for _, column in frame.items()
    ]
    none = np.empty((len(frame), 0), np.float32)
    X = np.concatenate([none, *blocks], axis=1, dtype=np.float32)
    squares = np.einsum("ij,ij->i", X, X).mean(dtype=np.float64)
    return with_constant(X, (2 * squares) ** -0.5 if squares else 0.0)


def one_hot(column: "pd.Series") -> Bool[np.ndarray, "rows categories"]:
    """Return a column for each category, the last of them for missing values."""
    places, categories = codes(column)
    if len(categories) > MAX_CATEGORIES:
        raise DatasetError(
            f"column {column.name!r} has {len(categories)} categories; expected at most "
            f"{MAX_CATEGORIES}; if it names rows, leave it out with --drop {column.name}; if it has an "
            "order, make it a number"
        )
    return places[:, None] == np.array([*range(len(categories)), -1])


def scaled(column: "pd.Series") -> Shaped[np.ndarray, "rows _"]:
    """Return each number by value and by rank, and whether it is missing if one is; 0/1 stay 0/1."""
    values = numbers(column)
    if values.dtype.kind != "f" or not np.isnan(values).any():
        return both(values)
    missing = np.isnan(values)
    known = values[~missing]
    if len(known) == 0 or known.min() == known.max():
        return missing[:, None]
    seen = both(known)
    filled = np.zeros((len(values), seen.shape[1]), np.float32)
    filled[~missing] = seen
    return np.concatenate([filled, missing[:, None]], axis=1, dtype=np.float32)


def both(values: Shaped[np.ndarray, " rows"]) -> Shaped[np.ndarray, "rows _"]:
    """Return the numbers by value and by rank, or 0/1 as they are."""
    if is_binary(values):
        return values[:, None]
    return np.stack([robust(values), rank(values)], axis=1)


def is_binary(values: Shaped[np.ndarray, " rows"]) -> bool:
    """Say whether all values are 0 or 1."""
    return bool(np.all((values == 0) | (values == 1)))


def robust(values: Shaped[np.ndarray, " rows"]) -> Float32[np.ndarray, " rows"]:
    """Return z/√(1 + (z/3)²) with z = (x − median)/scale: z where it is small, and at most 3 in size.

    The scale is the distance of the quartiles over 1.349, or the standard deviation
    if the quartiles are equal.
    """
    peak = max(abs(float(values.min())), abs(float(values.max()))) or 1.0
    x = values.astype(np.float64) / peak  # in −1 … 1, where nothing overflows
    low, median, high = np.percentile(x, [25, 50, 75])
    scale = (high - low) / NORMAL_IQR if high > low else x.std()
    if scale == 0:
        return np.zeros(len(x), np.float32)
    # z/√(1 + (z/3)²), with no quotient that could overflow
    z = (x - median) / np.hypot(scale, (x - median) / BOUND)
    return z.astype(np.float32)


def rank(values: Shaped[np.ndarray, " rows"]) -> Float32[np.ndarray, " rows"]:
    """Return the share of smaller numbers, equal ones counted half, as −√3 … √3 with variance 1."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    share = (np.cumsum(counts) - counts / 2) / len(values)
    return ((share - 1 / 2) * 12**0.5).astype(np.float32)[places]


def varying(block: Shaped[np.ndarray, "rows columns"]) -> Shaped[np.ndarray, "rows varying"]:
    """Return the columns that are not constant."""
    keep = block.min(axis=0) != block.max(axis=0)
    return block if keep.all() else block[:, keep]


def with_constant(
    X: Float32[np.ndarray, "rows features"], scale: float | Float32[np.ndarray, "rows 1"]
) -> Float32[np.ndarray, "rows features+1"]:
    """Return rows (scale · x, √½).

    The constant gives each arm a level of its own: a network's biases are shared by all arms.
    """
    out = np.empty((len(X), X.shape[1] + 1), np.float32)
    np.multiply(X, scale, out=out[:, :-1])
    out[:, -1] = CONSTANT
    return out
