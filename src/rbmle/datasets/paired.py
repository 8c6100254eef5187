"""The preprocessing of the paper's Assumption 1: as `paper`, and each row twice."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32

from rbmle.datasets.paper import paper

if TYPE_CHECKING:
    import pandas as pd


def paired(frame: "pd.DataFrame") -> Float32[np.ndarray, "rows features"]:
    """Return (x, x)/√2 for each row x of `paper`: with the paired start, f(x; θ₀) = 0."""
    X = paper(frame) / np.float32(2**0.5)
    return np.concatenate([X, X], axis=1)
