"""Base classes of policies: the model learns, and the policy adds an index."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic

import numpy as np

from rbmle.core.checks import Settings
from rbmle.core.policy import State
from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.engine.layout import Push
from rbmle.models.drift import units
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import AroundRegressionState, Regression, RegressionState, Replay


class ModelPolicy(Settings, ABC, Generic[State]):
    """A policy whose field `model` predicts rewards and learns from them.

    Its state is that of the model, and it only needs an `index`. A policy with more in its state overrides
    `init`, `predict`, `update_all`, `grow` and `frozen`.
    """

    __slots__ = ()
    model: Any  # not a field here, so that each policy has it in its own order

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    @abstractmethod
    def index(self, state: State, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm."""

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> State:
        """Return the state before any data."""
        return self.model.init(blocks, features, rng)

    def predict(self, state: State, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.model.predict(state, contexts)

    def index_in_rewards(self, state: State, index: Indices) -> Indices:
        """Convert an index from the units in which rewards are learned to those of rewards."""
        if not self.standardises:
            return index
        centre, gain = units(_watch_in(state))
        return centre + index / gain

    def update(self, state: State, seen: Observation, rng: np.random.Generator) -> None:
        """Learn from one observation."""
        self.update_all(state, Batch.of(seen, rng))

    def update_all(self, state: State, batch: Batch) -> None:
        self.model.update_all(state, batch)

    def grow(self, state: State, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)

    def frozen(self, state: State) -> State:
        """Return the part of the state that the index reads, as a copy that later learning does not change."""
        return self.model.frozen(state)


@dataclass(slots=True, kw_only=True)
class TangentState(AroundRegressionState):
    """θ̂ and Z."""

    regression: RegressionState
    precision: Any  # of the kind that the policy's `Precision` makes


@dataclass(frozen=True, slots=True, kw_only=True)
class TangentPolicy(ModelPolicy[TangentState]):
    """A policy that measures the uncertainty of its network by Z = λI + Σ g gᵀ/m over played contexts.

    g is the gradient of f(x; θ̂) with respect to θ: the policy explores as a linear one does with features g.
    """

    model: Regression = field(default_factory=Regression)
    precision: Precision = field(default_factory=Diagonal)

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

        θ̂ stays as it is for an observation that is not fitted.
        """
        model, net, m = self.model, state.regression.net, self.model.network.m
        # One call of the kernel does both.
        is_joint = isinstance(model.training, Replay) and isinstance(self.precision, Diagonal)

        def restart(at: int, forgotten: int) -> None:
            batch.restarted(at, forgotten)
            precision = self.precision.init(net, model.ridge)
            if is_joint:  # the kernel keeps using these arrays
                for part, start in zip(state.precision.D, precision.D, strict=True):
                    part[:] = start
            else:
                state.precision = precision

        watched = replace(batch, restarted=restart)
        if is_joint:
            model.update_all(state.regression, watched, push=Push(1 / m, state.precision.D))
            return
        for i in range(len(batch)):
            single = watched.one(i)
            if not model.update_all(state.regression, single):
                rows = model.network.rows(single.contexts)
                self.precision.add(state.precision, net, rows, m)

    def grow(self, state: TangentState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state.regression, blocks, rng)
        self.precision.grow(state.precision, state.regression.net, self.model.ridge)

    def frozen(self, state: TangentState) -> TangentState:
        regression = self.model.frozen(state.regression)
        return TangentState(regression=regression, precision=self.precision.frozen(state.precision))


def _watch_in(state: Any) -> Any:
    """Return the statistics of rewards in a state, or in its first part that has them."""
    if hasattr(state, "watch"):
        return state.watch
    parts = (getattr(state, field.name) for field in fields(state))
    return next(_watch_in(part) for part in parts if is_dataclass(part))
