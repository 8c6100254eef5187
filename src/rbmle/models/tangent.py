"""A regression that knows how sure it is: the network and the precision of its gradients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import Regression, RegressionState
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

    @property
    def estimator(self) -> "TangentState":
        """Return θ̂, Z and the round, without what training needs."""
        return TangentState(regression=self.regression.estimator, precision=self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tangent:
    """f(x; θ̂), with Z = λI + Σ g gᵀ/m over the contexts that were played."""

    model: Regression
    precision: Precision

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TangentState:
        """Return θ₀ and Z = λI."""
        regression = self.model.init(blocks, features, rng)
        precision = self.precision.init(regression.net, self.model.ridge)
        return TangentState(regression=regression, precision=precision)

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

    def update(self, state: TangentState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit θ̂, then Z ← Z + g(x_t; θ̂) g(x_t; θ̂)ᵀ/m, in the order of Algorithm 2."""
        self.update_all(state, Batch.of(seen, rng))

    def update_all(self, state: TangentState, batch: Batch) -> None:
        """Do so for each observation; θ̂ stays as it is for those that are not fitted."""
        net, network = state.regression.net, self.model.network
        match self.model.training, self.precision:
            case Replay(), Diagonal():  # one call for both
                D = state.precision.D
                self.model.update_all(state.regression, batch, push=1 / network.m, D=D)
            case _:
                for one in map(batch.one, range(len(batch))):
                    self.model.update_all(state.regression, one)
                    rows = network.rows(one.contexts)
                    self.precision.add(state.precision, net, rows, network.m)

    def grow(self, state: TangentState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state.regression, blocks, rng)
        self.precision.grow(state.precision, state.regression.net, self.model.ridge)
