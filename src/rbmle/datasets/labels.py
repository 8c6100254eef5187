"""A column of classes as numbers 0 … K − 1."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from rbmle.datasets.columns import is_numeric, numbers

if TYPE_CHECKING:
    import pandas as pd


def encode(target: "pd.Series") -> tuple[Int[np.ndarray, " rows"], tuple[str, ...]]:
    """Return a label for each row, and the classes: numbers by size, all else alphabetically."""
    import pandas as pd

    if target.dtype.name == "category":
        target = target.astype(target.cat.categories.dtype)
    is_number = is_numeric(target) and target.dtype.kind != "b"
    values = numbers(target) if is_number else target.astype(str).to_numpy(object)
    labels, classes = pd.factorize(values, sort=True, use_na_sentinel=False)
    return labels.astype(np.int64), tuple(_name(value) for value in classes.tolist())


def _name(value: object) -> str:
    """Return a class as text; 1.0 is the class 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
