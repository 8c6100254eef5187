"""How long something took: lately, and ever since the start."""

from bisect import bisect_left
from collections.abc import MutableSequence

import numpy as np

EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # seconds
LATELY = 2048  # durations


class Histogram:
    """How many durations there were of each length; one thread adds, any thread looks.

    Its numbers are the counts up to each edge and beyond the last, and the sum of all durations. They may be
    in memory that other processes read.
    """

    __slots__ = ("values",)

    def __init__(self, values: MutableSequence[float] | None = None) -> None:
        self.values = [0.0] * (len(EDGES) + 2) if values is None else values

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.values[bisect_left(EDGES, seconds)] += 1
        self.values[-1] += seconds


class Timings:
    """The last durations, in a ring, and all in a histogram; one thread adds, any thread looks."""

    def __init__(self, histogram: Histogram | None = None) -> None:
        self._seconds = np.full(LATELY, np.nan)
        self.count = 0  # ever added
        self.histogram = Histogram() if histogram is None else histogram

    def add(self, seconds: float) -> None:
        """Remember a duration in the place of the oldest."""
        self._seconds[self.count % len(self._seconds)] = seconds
        self.count += 1
        self.histogram.add(seconds)

    def quantile(self, q: float) -> float | None:
        """Return a quantile of the durations; None if there are none.

        >>> timings = Timings()
        >>> timings.add(0.1)
        >>> timings.quantile(0.99)
        0.1
        """
        known = self._seconds[: min(self.count, len(self._seconds))]
        return float(np.quantile(known, q)) if len(known) else None
