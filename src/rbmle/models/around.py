"""What models around a regression share: they have its state, and all but what makes them different."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundRegression:
    """A regression, and whatever its subclass does otherwise."""

    model: Regression

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the network at θ₀ and an empty history."""
        return self.model.init(blocks, features, rng)

    def predict(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units of rewards."""
        return self.model.predict(state, contexts)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit θ̂ again if it is to be fitted."""
        self.model.update_all(state, batch)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and its round."""
        return self.model.frozen(state)
