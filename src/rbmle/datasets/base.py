"""What a dataset is: a name, features and labels."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Labelled rows; classes are 0 … K − 1."""

    name: str
    X: Float[np.ndarray, "rows features"] = field(repr=False)
    labels: Int[np.ndarray, " rows"] = field(repr=False)
