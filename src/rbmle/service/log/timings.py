"""How long something took lately."""

import numpy as np


class Timings:
    """The last `size` durations, in a ring; one thread adds, any thread looks."""

    def __init__(self, size: int = 2048) -> None:
        self._seconds = np.full(size, np.nan)
        self.count = 0  # ever added

    def add(self, seconds: float) -> None:
        """Remember a duration in the place of the oldest."""
        self._seconds[self.count % len(self._seconds)] = seconds
        self.count += 1

    def quantile(self, q: float) -> float | None:
        """Return a quantile of the durations; None if there are none.

        >>> timings = Timings()
        >>> timings.add(0.1)
        >>> timings.quantile(0.99)
        0.1
        """
        known = self._seconds[: min(self.count, len(self._seconds))]
        return float(np.quantile(known, q)) if len(known) else None
