"""DeepFPL: follow the perturbed leader, the neural variant of Kveton et al. (2020)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.perturbed import Perturbed
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepFPL(ModelPolicy[RegressionState]):
    """Index f(x; θ) of a network fitted to r_s + ν ε_{t,s}, with ε_{t,s} ~ N(0, 1).

    All rewards of the history are perturbed anew in each round: one draw for a past sample and a
    round, however often training visits it. With a draw for each visit, noise would average out.
    """

    exploration: float = 0.1  # ν
    model: Regression = field(default_factory=Regression)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Perturbed:
        """Return the network on perturbed rewards."""
        return Perturbed(model=self.model, noise=self.exploration)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates of the perturbed leader."""
        return self.model.scores(state, contexts)
