"""A regression that knows how sure it is: the network and the precision of its gradients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.layout import Push
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.training import Replay


@dataclass(slots=True, kw_only=True)
class TangentState:
    """θ̂ and Z."""

    regression: RegressionState
    precision: Any  # of the kind that the policy's `Precision` makes

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.regression.round


@dataclass(frozen=True, slots=True, kw_only=True)
class Tangent:
    """f(x; θ̂), with Z = λI + Σ g gᵀ/m over the contexts that were played."""

    model: Regression
    precision: Precision

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TangentState:
        """Return θ₀ and Z = λI."""
        regression = self.model.init(blocks, features, rng)
        precision = self.precision.init(regression.net, self.model.ridge)
        return TangentState(regression=regression, precision=precision)

    def predict(self, state: TangentState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.model.predict(state.regression, contexts)

    def estimates(self, state: TangentState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return f(x; θ̂) and the width √(gᵀ Z⁻¹ g/m) for every context."""
        net, network = state.regression.net, self.model.network
        rows = network.rows(contexts)
        f, norms = self.precision.estimates(state.precision, net, rows, network.m)
        return f, np.sqrt(np.maximum(norms, 0) / network.m)  # rounding can make it −0

    def corrected(self, state: TangentState, contexts: Contexts, alpha: float) -> Indices:
        """Return f(x; θ̂ + (α/m) Z⁻¹ g) for every context."""
        net, network = state.regression.net, self.model.network
        rows, m = network.rows(contexts), network.m
        return self.precision.corrected(state.precision, net, rows, alpha / m, m)

    def update_all(self, state: TangentState, batch: Batch) -> None:
        """Fit θ̂, then Z ← Z + g(x_t; θ̂) g(x_t; θ̂)ᵀ/m, in the order of Algorithm 2.

        θ̂ stays as it is for an observation that is not to be fitted.
        """
        model, network = self.model, self.model.network
        match model.training, self.precision:
            case Replay(), Diagonal():  # one call for both
                push = Push(1 / network.m, state.precision.D)
                model.learn(state.regression, batch, model.fit, push)
            case _:
                net = state.regression.net
                for one in map(batch.one, range(len(batch))):
                    if model.learn(state.regression, one, model.fit):
                        state.precision = self.precision.init(net, model.ridge)
                        continue
                    self.precision.add(state.precision, net, network.rows(one.contexts), network.m)

    def grow(self, state: TangentState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state.regression, blocks, rng)
        self.precision.grow(state.precision, state.regression.net, self.model.ridge)

    def frozen(self, state: TangentState) -> TangentState:
        """Return θ̂, Z and the round."""
        regression = self.model.frozen(state.regression)
        return TangentState(regression=regression, precision=self.precision.frozen(state.precision))
