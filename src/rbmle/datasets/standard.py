"""The default preprocessing: one-hot categories, robustly scaled numbers, rows of mean squared length 1.

It looks at features only, never at labels.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Float32, Shaped

from rbmle.datasets.columns import codes, is_numeric, numbers
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.image import is_image

if TYPE_CHECKING:
    import pandas as pd

NORMAL_IQR = 1.349  # between the quartiles of a normal distribution with standard deviation 1
CLIP = 3.0  # standard deviations
MAX_CATEGORIES = 1000  # of a column; more are names or keys, which say nothing of the next row


def standard(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return pixels or columns as numbers of like size."""
    X = pixels(frame) if is_image(frame) else columns(frame)
    if X.shape[1] == 0:
        raise DatasetError(
            f"no feature varies: all {frame.shape[1]} columns are constant; "
            "expected at least one that differs between rows; check the file"
        )
    return unit_mean_square(X)


def pixels(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the pixels that vary, all on the one scale they have."""
    return varying(frame.to_numpy()).astype(np.float32, order="C")


def columns(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the columns side by side, each as what its kind asks for."""
    blocks = [
        varying(scaled(column) if is_numeric(column) else one_hot(column))
        for _, column in frame.items()
    ]
    none = np.empty((len(frame), 0), np.float32)
    return np.concatenate([none, *blocks], axis=1, dtype=np.float32)


def one_hot(column: "pd.Series") -> Bool[np.ndarray, "rows categories"]:
    """Return a column for each category, the last of them for missing values."""
    places, categories = codes(column)
    if len(categories) > MAX_CATEGORIES:
        raise DatasetError(
            f"column {column.name!r} has {len(categories)} categories; expected at most "
            f"{MAX_CATEGORIES}; drop it if it names rows, make it numbers if it has an order"
        )
    return places[:, None] == np.array([*range(len(categories)), -1])


def scaled(column: "pd.Series") -> Shaped[np.ndarray, "rows _"]:
    """Return the scaled numbers, and whether each is missing if one is; 0/1 stay 0/1."""
    values = numbers(column)
    if values.dtype.kind != "f" or not np.isnan(values).any():
        return (values if is_binary(values) else robust(values))[:, None]
    missing = np.isnan(values)
    known = values[~missing]
    filled = np.zeros(len(values), np.float32)
    if len(known) and known.min() < known.max():
        filled[~missing] = known if is_binary(known) else robust(known)
    return np.stack([filled, missing], axis=1)


def is_binary(values: Shaped[np.ndarray, " rows"]) -> bool:
    """Say whether all values are 0 or 1."""
    return bool(np.all((values == 0) | (values == 1)))


def robust(values: Shaped[np.ndarray, " rows"]) -> Float32[np.ndarray, " rows"]:
    """Return (x − median) / scale, at most 3 in size.

    The scale is the distance of the quartiles over 1.349, or the standard deviation
    if the quartiles are equal.
    """
    peak = max(abs(float(values.min())), abs(float(values.max()))) or 1.0
    x = values.astype(np.float64) / peak  # in −1 … 1, where nothing overflows
    low, median, high = np.percentile(x, [25, 50, 75])
    scale = (high - low) / NORMAL_IQR if high > low else x.std()
    if scale == 0:
        return np.zeros(len(x), np.float32)
    reach = CLIP * scale
    return (np.clip(x - median, -reach, reach) / scale).astype(np.float32)


def varying(block: Shaped[np.ndarray, "rows columns"]) -> Shaped[np.ndarray, "rows varying"]:
    """Return the columns that are not constant."""
    keep = block.min(axis=0) != block.max(axis=0)
    return block if keep.all() else block[:, keep]


def unit_mean_square(
    X: Float[np.ndarray, "rows features"],
) -> Float[np.ndarray, "rows features"]:
    """Return c · X with the c that makes the mean of ‖x‖² one; X is used up."""
    squares = np.einsum("ij,ij->i", X, X)
    X *= (
        float(squares.mean(dtype=np.float64)) ** -0.5
    )  # in place: X may fill a good part of the memory
    return X
