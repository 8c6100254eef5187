"""The default preprocessing, by what the rows so far have shown: nobody knows the table beforehand."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, Int

from rbmle.datasets.encoding import ALL, encoder
from rbmle.datasets.image import is_image
from rbmle.datasets.standard import pixels, scale_of, side_by_side, varies, with_constant

if TYPE_CHECKING:
    import pandas as pd


def online(
    frame: "pd.DataFrame", order: Int[np.ndarray, " rows"]
) -> Float32[np.ndarray, "rows features"]:
    """Return what `standard` would if it were fitted to the rows that came so far, in the table's order.

    It is fitted anew whenever their number has doubled. Known beforehand are the columns that vary, their kinds
    and their categories: how many features there are, not how large they are. Of pixels nothing is fitted.
    """
    if is_image(frame):
        return pixels(frame)
    encoders = [encoder(column) for _, column in frame.items()]
    is_kept = varies(side_by_side(encoders, len(frame), ALL, ALL))
    X = np.empty((len(frame), int(is_kept.sum()) + 1), np.float32)
    for begin, end in epochs(len(frame)):
        seen, rows = order[: begin + 1], order[begin:end]
        fitted = side_by_side(encoders, len(seen), seen, seen).compress(is_kept, axis=1)
        shown = side_by_side(encoders, len(rows), rows, seen).compress(is_kept, axis=1)
        X[rows] = with_constant(shown, scale_of(fitted))
    return X


def epochs(rounds: int) -> Iterator[tuple[int, int]]:
    """Yield the first round of each epoch and the end of it.

    >>> list(epochs(10))
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 10)]
    """
    begin = 0
    while begin < rounds:
        end = min(max(2 * begin, 1), rounds)
        yield begin, end
        begin = end
