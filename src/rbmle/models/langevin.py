"""A regression whose network is a sample of a posterior, moved on by Langevin dynamics in each round."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch
from rbmle.engine.langevin import feel_good, jolt
from rbmle.engine.layout import FeelGood
from rbmle.models.around import AroundRegression
from rbmle.models.regression_state import RegressionState
from rbmle.models.training import FullBatch, Replay

STEPS = 10  # a round, on the feel-good term


@dataclass(frozen=True, slots=True, kw_only=True)
class Langevin(AroundRegression):
    """θ as a sample of exp(L(θ)/τ), with L(θ) = ℓ_λ(F_t; θ) + c Σ_s min(cap, max_a f(x_{s,a}; θ)).

    θ ← θ + h ∇L(θ) + √(2 h τ) ε in each round, split in three: the steps on ℓ_λ that the regression takes
    anyway, which make h = Jη/n; some steps on the feel-good term, for contexts that are drawn; and the noise.
    The arms of a past round are the blocks that its context could have stood in.
    """

    weight: float  # c
    cap: float
    temperature: float  # τ

    def __post_init__(self) -> None:
        """Raise SettingError for an average: a sample is where the walk is."""
        match self.model.training:
            case Replay(average=average) if average > 0:
                raise SettingError(
                    f"`model.training.average` must be 0, got {average}; a sample is the last point of "
                    "the walk, not an average of its points"
                )

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and move the sample on if it is to be fitted."""
        for one, rng in batch.singles():
            is_anew = self.model.learn(state, one, self.model.fit)
            if one.is_fitted[0] and not is_anew:
                self._move(state, rng)

    def _move(self, state: RegressionState, rng: np.random.Generator) -> None:
        """Take the steps on the feel-good term, and add the noise of a round."""
        net, history = state.net, state.history
        h = self._time(history.count)
        amount = h * history.count * self.weight / STEPS
        good = FeelGood(STEPS if self.weight > 0 else 0, amount, float(self.cap))
        feel_good(net, history.rows, history.count, good, key(rng))
        deviation = (2 * h * self.temperature) ** 0.5
        parts = net.theta if net.biased else net.theta[:3]
        for part in parts:
            jolt(part.reshape(-1, part.shape[-1]), deviation, key(rng))

    def _time(self, count: int) -> float:
        """Return h, for which a round of the regression follows the gradient of ℓ_λ."""
        match self.model.training:
            case FullBatch() as training:
                return training.steps * training.step_size(count)
            case training:
                return training.steps * training.rate / count
