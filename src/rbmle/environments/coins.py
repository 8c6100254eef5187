"""Arms that pay 1 with a fixed chance each, whatever the context says."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.randomness import Purpose, generator
from rbmle.core.types import Encoding
from rbmle.environments.base import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins:
    """r = 1 with the arm's chance, else 0. A context is a constant, and features that tell nothing."""

    chances: tuple[float, ...] = (0.45, 0.55)
    irrelevant: int = 0  # features from N(0, 1), beside the constant
    name: str = "coins"

    def __post_init__(self) -> None:
        """Raise SettingError for chances that are no probabilities, or a negative number of features."""
        if not self.chances or not all(0 <= chance <= 1 for chance in self.chances):
            raise SettingError(
                f"`chances` must be probabilities, one for each arm, got {self.chances}"
            )
        if self.irrelevant < 0:
            raise SettingError(f"`irrelevant` must be 0 or more, got {self.irrelevant}")

    @property
    def arms(self) -> int:
        """Return K."""
        return len(self.chances)

    @property
    def features(self) -> int:
        """Return d."""
        return 1 + self.irrelevant

    @property
    def encoding(self) -> Encoding:
        """Return DISJOINT: all arms share a row."""
        return Encoding.DISJOINT

    @property
    def rows(self) -> None:
        """Return None: no round comes again."""
        return

    @property
    def settings(self) -> dict[str, Any]:
        """Return all but the seed."""
        chances = [float(chance) for chance in self.chances]
        return {"name": self.name, "chances": chances, "irrelevant": self.irrelevant}

    def round(self, t: int, seed: int) -> Round:
        """Return the context of round t, and a reward for each arm."""
        rng = generator(seed, Purpose.ENVIRONMENT, t)
        means = np.array(self.chances)
        rewards = (rng.random(len(means)) < means).astype(np.float64)
        return Round(x=np.r_[1.0, rng.normal(size=self.irrelevant)], rewards=rewards, means=means)
