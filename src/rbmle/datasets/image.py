"""Are the rows of a table images?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FEWEST_PIXELS = 64  # 8 × 8
BRIGHTEST = 255


def is_image(frame: "pd.DataFrame") -> bool:
    """Say whether all columns are pixels: 64 or more integers in 0 … 255 that share one scale.

    They do if at least half of the columns that vary reach half of the largest value.
    """
    if frame.shape[1] < FEWEST_PIXELS or any(kind.kind not in "iu" for kind in frame.dtypes):
        return False
    values = frame.to_numpy()
    lows, highs = values.min(axis=0), values.max(axis=0)
    peaks = highs[highs > lows]
    if lows.min() != 0 or highs.max() > BRIGHTEST or len(peaks) == 0:
        return False
    return bool((2 * peaks.astype(int) >= int(highs.max())).mean() >= 1 / 2)
