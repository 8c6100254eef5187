"""Classification as a bandit, as in the paper's appendix F: reward 1 for the right class, else 0."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rbmle.core.randomness import Purpose, generator
from rbmle.datasets.base import Dataset
from rbmle.environments.base import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The rows of a dataset in an order that the seed decides; each class is an arm."""

    dataset: Dataset

    @property
    def arms(self) -> int:
        """Return the number of classes."""
        return int(self.dataset.labels.max()) + 1

    @property
    def features(self) -> int:
        """Return the number of features."""
        return int(self.dataset.X.shape[1])

    @property
    def rows(self) -> int:
        """Return how many rounds there are before a row comes again."""
        return len(self.dataset.labels)

    def round(self, t: int, seed: int) -> Round:
        """Return the row of round t, and a reward for each arm."""
        row = _order(self.rows, seed)[t % self.rows]
        rewards = np.zeros(self.arms)
        rewards[self.dataset.labels[row]] = 1.0
        return Round(x=self.dataset.X[row], rewards=rewards, means=rewards)


@lru_cache(maxsize=8)
def _order(rows: int, seed: int) -> np.ndarray:
    """Return the order of the rows."""
    return generator(seed, Purpose.ENVIRONMENT, 0).permutation(rows)
