"""DeepFPL: follow the perturbed leader, the neural variant of Kveton et al. (2020)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.models.regression import Regression, RegressionState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepFPL(ModelPolicy[RegressionState]):
    """Index f(x; θ) of a network fitted to r_s + ν ε_{t,s}, with ε_{t,s} ~ N(0, 1).

    All rewards of the history are perturbed again in each round: one draw for a past sample and a
    round, however often training visits it. With a draw for each visit, noise would average out.
    """

    exploration: float = 0.1  # ν
    model: Regression = field(default_factory=Regression)

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        return self.model.scores(state, contexts)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        fit = self.model.fit._replace(noise=float(self.exploration))
        self.model.update_all(state, batch, fit=fit)
