"""FG-TS (Zhang 2021, "Feel-good Thompson sampling for contextual bandits and reinforcement learning")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.layout import FeelGood
from rbmle.engine.posterior import feel_good, jolt
from rbmle.models.regression import FullBatch, Regression, RegressionState, Replay
from rbmle.policies.base import ModelPolicy

STEPS = 10  # a round, on the feel-good term


@dataclass(frozen=True, slots=True, kw_only=True)
class FGTS(ModelPolicy[RegressionState]):
    """Index f(x; θ), with θ drawn from exp(L(θ)/ν²), L(θ) = ℓ_λ(F_t; θ) + c Σ_s min(cap, max_a f(x_{s,a}; θ)).

    The feel-good term favours parameters that promise reward, as the bias of RBMLE does, but for the contexts
    of the past. θ is the last point of stochastic-gradient Langevin dynamics (Welling, Teh 2011):
    θ ← θ + h ∇L(θ) + √(2h) ν ε in each round, split in three: the steps on ℓ_λ that the regression takes
    anyway, which make h = Jη/n; some steps on the feel-good term, for contexts that are drawn; and the noise.
    The arms of a past round are the blocks that its context could have stood in.
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
        check_not_negative("bias", self.bias)
        check_not_negative("exploration", self.exploration)
        match self.model.training:
            case Replay(average=average) if average > 0:
                raise SettingError(
                    f"`model.training.average` must be 0, got {average}; a sample is the last point of "
                    "the walk, not an average of its points"
                )

    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        return self.model.scores(state, contexts)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        for single, rng in batch.singles():
            is_restarted = self.model.update_all(state, single)
            if single.is_fitted[0] and not is_restarted:
                self._move(state, rng)

    def _move(self, state: RegressionState, rng: np.random.Generator) -> None:
        """Take the steps on the feel-good term, and add the noise of a round."""
        net, history, training = state.net, state.history, self.model.training
        match training:  # h, for which a round of the regression follows the gradient of ℓ_λ
            case FullBatch():
                h = training.steps * training.step_size(history.count)
            case _:
                h = training.steps * training.rate / history.count
        amount = h * history.count * self.bias / STEPS
        good = FeelGood(STEPS if self.bias > 0 else 0, amount, float(self.cap))
        feel_good(net, history.rows, history.count, good, key(rng))
        deviation = (2 * h * self.exploration**2) ** 0.5
        parts = net.theta if net.biased else net.theta[:3]
        for part in parts:
            jolt(part.reshape(-1, part.shape[-1]), deviation, key(rng))
