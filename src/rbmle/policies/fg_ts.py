"""FG-TS (Zhang 2021, "Feel-good Thompson sampling for contextual bandits and reinforcement learning")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.types import Contexts, Indices
from rbmle.models.langevin import Langevin
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.training import Replay
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class FGTS(ModelPolicy[RegressionState]):
    """Index f(x; θ), with θ drawn from exp((ℓ_λ(F_t; θ) + c Σ_s min(cap, max_a f(x_{s,a}; θ)))/ν²).

    The feel-good term favours parameters that promise reward, as the bias of RBMLE does, but for the contexts
    of the past. θ is the last point of stochastic-gradient Langevin dynamics (Welling, Teh 2011).
    """

    # More and shorter steps than others take: 40 of 0.2 had 1.1 times the regret.
    model: Regression = field(
        default_factory=lambda: Regression(training=Replay(steps=100, rate=0.1, average=0.0))
    )
    bias: float = 0.03  # c
    cap: float = 1.0
    exploration: float = 0.01  # ν

    title: ClassVar[str] = "FG-TS"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise SettingError for a bias or an exploration below 0, or a training that averages."""
        check_not_negative("bias", self.bias)
        check_not_negative("exploration", self.exploration)
        self.learner  # noqa: B018  # its constructor checks

    @property
    def learner(self) -> Langevin:
        """Return the sampled network."""
        temperature = self.exploration**2
        return Langevin(model=self.model, weight=self.bias, cap=self.cap, temperature=temperature)

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return the estimates of the sample."""
        return self.model.scores(state, contexts)
