"""Handwritten digits of 8 × 8 pixels, from scikit-learn."""

import hashlib

import numpy as np

from rbmle.datasets.base import Dataset, Source, Table
from rbmle.datasets.preprocessing import preprocess

DIGITS = Source(
    name="digits",
    title="Optical Recognition of Handwritten Digits (test part)",
    file=None,
    rows=1_797,
    features=64,
    counts=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    sha256="87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826",
    licence="CC BY 4.0",
    citation="Alpaydin, E. and Kaynak, C. (1998). Optical Recognition of Handwritten Digits. "
    "UCI Machine Learning Repository.",
    doi="10.24432/C50P49",
    openml_id=None,
    openml_version=None,
    shipped=True,
)


def digits_table() -> Table:
    """Return the pixels, 0 … 16."""
    from sklearn.datasets import load_digits  # it takes a second to import

    pixels, labels = load_digits(return_X_y=True, as_frame=True)
    pixels, labels = pixels.astype(np.uint8), labels.to_numpy(np.int64)
    content = pixels.to_numpy().tobytes() + labels.astype(np.uint8).tobytes()
    return Table(
        name="digits",
        frame=pixels,
        labels=labels,
        classes=tuple(str(digit) for digit in range(10)),
        digest=hashlib.sha256(content).hexdigest(),
    )


def digits() -> Dataset:
    """Return 1,797 digits, each brought to length 2, and a constant."""
    return preprocess(digits_table(), "standard")
