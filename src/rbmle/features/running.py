"""Running scaling: numbers are scaled by the mean and deviation of what was learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbmle.core.encoding import Names, Places
from rbmle.core.types import ArmId, Contexts, Moments
from rbmle.engine.scaling import standardised_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Features by place or by name, which a bandit scales by a running mean and deviation.

    Contexts keep the user's units; they are scaled when a policy sees them, to decide and to learn. Both
    times the statistics are those of the rows that were learned before and the row itself, so a number is at
    most √(rows learned) deviations from the mean, and at most 4. Rewards do not matter, and decisions change
    nothing.

    - A number that is not 0 in half of the rows or more becomes (x − mean)/deviation.
    - Numbers that are mostly 0 are not centred, so 0 stays 0: they are divided by the root mean square of
      those that are not 0. A flag becomes 1, however rare it is.
    - A number that was the same in every row becomes a constant. A constant is added, because centred numbers
      have no intercept; constants together have the squared length ½.
    - All but the constants are divided by one number, which brings their mean squared length to ½.

    >>> from rbmle.core.encoding import per_arm
    >>> numbers = Running(of=Names(names=("age", "is_new")))
    >>> moments = numbers.start()
    >>> visitors = per_arm([[30, 0], [40, 0], [50, 1]], 2)
    >>> numbers.scale(visitors, moments, is_learning=True).dense().round(2).tolist()
    [[0.5, 0.0, 0.5], [0.71, 0.0, 0.71], [0.75, 0.61, 0.71]]
    >>> numbers.scale(visitors, moments).dense().round(2).tolist()
    [[-0.57, 0.0, 0.71], [0.0, 0.0, 0.71], [0.52, 0.58, 0.71]]
    """

    of: Places | Names

    @property
    def size(self) -> int:
        """Return the number of features."""
        return self.of.size

    @property
    def seen(self) -> int:
        """The number of features that a policy sees: one more, the constant."""
        return self.of.size + 1

    def row(self, x: Any, arm: ArmId | None) -> Any:
        """Return one vector in the user's units."""
        return self.of.row(x, arm)

    def rows(self, X: Any, arms: Sequence[ArmId] | None) -> Any:
        """Return several vectors in the user's units."""
        return self.of.rows(X, arms)

    def start(self) -> Moments:
        """Return the statistics before any data."""
        counts, means, variances = np.zeros((3, self.size))
        return Moments(np.zeros(1), counts, means, variances)

    def scale(self, contexts: Contexts, scales: Moments, *, is_learning: bool = False) -> Contexts:
        """Return contexts as a policy sees them; if `is_learning`, rows update the scales once scaled."""
        rows = standardised_rows(contexts.rows, scales, is_learning)
        return Contexts(rows=rows, features=self.seen)
