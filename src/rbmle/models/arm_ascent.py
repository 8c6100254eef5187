"""The arm-specific estimators θ̃_a of NeuralRBMLE-GA, from the shared base θ̂."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.ascent import biased_ascent
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch, log_likelihood
from rbmle.engine.layout import Bias, Parameters
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState, no_walk, unmoved
from rbmle.models.training import FullBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAscent:
    """Gradient ascent on ℓ_λ(F_t; θ) + α f(x_a; θ) for each arm; nothing of it is kept.

    With a `Replay` model: `steps` times a step on a sample of the arm's block and one along the bias.
    The objective is divided by the number n of the block's observations, which leaves the maximiser
    as it is: a replayed sample has the weight 1, the bias α/n, and the ridge λ/n.
    With a `FullBatch` model: its J steps on the whole history, from θ̂ or from θ₀, as Algorithm 1 says.
    """

    steps: int
    rate: float  # η

    def __post_init__(self) -> None:
        """Raise SettingError for steps or a rate out of range."""
        if self.steps < 1:
            raise SettingError(f"`steps` must be at least 1, got {self.steps}")
        if not 0 < self.rate < float("inf"):
            raise SettingError(f"`rate` must be a positive number, got {self.rate}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Biased:
    """A regression, and for each arm an estimator of its own, biased towards the arm's reward."""

    model: Regression
    ascent: ArmAscent

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

    def estimates(
        self,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        with_gains: bool,
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a), and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂) if asked for, else zeros."""
        match self.model.training:
            case FullBatch() as training:
                return self._full(state, contexts, alpha, training)
            case _:
                return self._replayed(state, contexts, alpha, key, with_gains)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit θ̂ again if it is to be fitted."""
        self.model.update_all(state, batch)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and the history, which the ascent reads."""
        net, history = unmoved(state.net), state.history.frozen(self.model.memory)
        return RegressionState(net=net, walk=no_walk(net), history=history)

    def _replayed(
        self,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        with_gains: bool,
    ) -> tuple[Indices, Indices]:
        model, past, rows = self.model, state.history.past, self.model.network.rows(contexts)
        fit = model.fit._replace(steps=self.ascent.steps, rate=float(self.ascent.rate))
        potential = scalar(model.likelihood.b) if with_gains else 0
        counts = np.maximum(past.member_counts[rows.blocks], 1)
        weights = (alpha / counts, 1.0 / counts)
        estimates, gains = np.empty(len(contexts)), np.zeros(len(contexts))
        biased_ascent(state.net, past, rows, fit, potential, *weights, key, estimates, gains)
        return estimates, gains

    def _full(
        self, state: RegressionState, contexts: Contexts, alpha: float, training: FullBatch
    ) -> tuple[Indices, Indices]:
        model, samples, rows = self.model, state.history.samples, self.model.network.rows(contexts)
        fit = model.fit._replace(rate=training.step_size(samples.count))
        potential = scalar(model.likelihood.b)
        base = log_likelihood(state.net, samples, model.pull, potential)
        estimates, gains = np.empty(len(contexts)), np.empty(len(contexts))
        for arm in range(len(contexts)):
            start = state.net.theta if training.warm else state.net.start
            net = state.net._replace(theta=Parameters(*(part.copy() for part in start)))
            full_batch(net, samples, fit, Bias(rows, arm, float(alpha)))
            estimates[arm] = model.network.predict(net, contexts.row(arm))[0]
            gains[arm] = log_likelihood(net, samples, model.pull, potential) - base
        return estimates, gains
