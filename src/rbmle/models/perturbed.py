"""A regression on perturbed rewards: the leader that DeepFPL follows."""

from dataclasses import dataclass

from rbmle.core.types import Batch
from rbmle.models.around import AroundRegression
from rbmle.models.regression_state import RegressionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbed(AroundRegression):
    """A regression that is fitted to r_s + noise · ε_{t,s}, with ε_{t,s} ~ N(0, 1) drawn anew in each fit."""

    noise: float

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit to perturbed rewards if it is to be fitted."""
        fit = self.model.fit._replace(noise=float(self.noise))
        self.model.learn(state, batch, fit)
