"""A regression on perturbed rewards: the leader that DeepFPL follows."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbed:
    """A regression that is fitted to r_s + noise · ε_{t,s}, with ε_{t,s} ~ N(0, 1) drawn anew in each fit."""

    model: Regression
    noise: float

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the network at θ₀ and an empty history."""
        return self.model.init(blocks, features, rng)

    def predict(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.model.predict(state, contexts)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit to perturbed rewards if it is to be fitted."""
        fit = self.model.fit._replace(noise=float(self.noise))
        self.model.learn(state, batch, fit)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and its round."""
        return self.model.frozen(state)
