"""The default preprocessing: one-hot categories, numbers by value and by rank, and a constant.

It looks at features only, never at labels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float32, Shaped

from rbmle.datasets.encoding import ALL, Encoder, Places, encoder
from rbmle.datasets.errors import DatasetError
from rbmle.datasets.image import is_image

if TYPE_CHECKING:
    import pandas as pd

CONSTANT = 0.5**0.5
IMAGE_LENGTH = 2.0


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
    values = frame.to_numpy()
    X = values[:, varies(values)].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return with_constant(X, IMAGE_LENGTH / np.maximum(lengths, 1)[:, None])


def columns(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return the columns side by side, each as what its kind asks for, and a constant.

    Rows have mean squared length 1, half of which is the constant.
    """
    X = side_by_side([encoder(column) for _, column in frame.items()], len(frame), ALL, ALL)
    X = X.compress(varies(X), axis=1)
    return with_constant(X, scale_of(X))


def side_by_side(
    encoders: Sequence[Encoder], count: int, rows: Places, seen: Places
) -> Float32[np.ndarray, "rows columns"]:
    """Return all columns of some rows, `count` of them, by what the rows show that were seen."""
    blocks = [each.encode(rows, seen) for each in encoders]
    return np.concatenate([np.empty((count, 0), np.float32), *blocks], axis=1, dtype=np.float32)


def scale_of(X: Float32[np.ndarray, "rows columns"]) -> np.float64:
    """Return what brings rows to a mean squared length of ½; the product is in double precision."""
    squares = np.einsum("ij,ij->i", X, X).mean(dtype=np.float64)
    return (2 * squares) ** -0.5 if squares else np.float64(0)


def varies(block: Shaped[np.ndarray, "rows columns"]) -> Bool[np.ndarray, " columns"]:
    """Return which columns are not constant."""
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
