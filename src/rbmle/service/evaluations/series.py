"""What a policy would have earned over time: sums over windows, in a bounded number of them."""

import numpy as np
from jaxtyping import Float, Int

from rbmle.evaluation.weight_sums import WeightSums
from rbmle.service.statistics.buckets import MINUTE, fitted

MOST_WINDOWS = 96
LENGTHS = (5, 60, 360, 720, 1440)  # minutes, those of Personalizer; then 2, 4, 8, … days


class Series:
    """Windows of five minutes each, and of an hour, six, … when the whole time does not fit otherwise.

    A window is known by its number, the time of its decisions divided by its length.
    """

    def __init__(self) -> None:
        self.minutes = LENGTHS[0]
        self.windows: dict[int, WeightSums] = {}

    def at(self, time: int) -> WeightSums:
        """Return the sums of a time in milliseconds, to add to."""
        if time // (self.minutes * MINUTE) not in self.windows:
            self.windows, self.minutes = fitted(
                self.windows, self.minutes, time, MOST_WINDOWS, _longer
            )
        return self.windows.setdefault(time // (self.minutes * MINUTE), WeightSums())

    def add_all(
        self,
        times: Int[np.ndarray, " rounds"],
        weights: Float[np.ndarray, " rounds"],
        rewards: Float[np.ndarray, " rounds"],
    ) -> None:
        """Count some rounds."""
        for time in (int(times.min()), int(times.max())):
            self.at(time)
        numbers = times // (self.minutes * MINUTE)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self.at(number * self.minutes * MINUTE).add_all(weights[here], rewards[here])

    def total(self) -> WeightSums:
        """Return the sums of all windows."""
        found = WeightSums()
        for sums in self.windows.values():
            found = found.merged(sums)
        return found


def _longer(minutes: int) -> int:
    return next((length for length in LENGTHS if length > minutes), 2 * minutes)
