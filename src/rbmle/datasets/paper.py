"""The preprocessing of the NeuralUCB and NeuralTS reference code: codes, −1 for missing, unit rows."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32

from rbmle.datasets.columns import codes, is_numeric, numbers

if TYPE_CHECKING:
    import pandas as pd

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
