"""What policies of one kind share: a model that learns. Their index is their own."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.trees import copied
from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import Regression, RegressionState
from rbmle.models.ridge import Ridge, RidgeState
from rbmle.models.tangent import Tangent, TangentState


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPolicy(ABC):
    """A policy over a network and its history."""

    model: Regression = field(default_factory=Regression)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the state before any data."""
        return self.model.init(blocks, features, rng)

    @abstractmethod
    def index(
        self, state: RegressionState, contexts: Contexts, rng: np.random.Generator
    ) -> Indices:
        """Return one number for each arm."""

    def update(self, state: RegressionState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit the network again."""
        self.model.update(state, seen, rng)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Learn a batch."""
        self.model.update_all(state, batch)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class TangentPolicy(ABC):
    """A policy over a network and the precision Z of its gradients."""

    model: Regression = field(default_factory=Regression)
    precision: Precision = field(default_factory=Diagonal)

    @property
    def tangent(self) -> Tangent:
        """Return the network with its precision."""
        return Tangent(model=self.model, precision=self.precision)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TangentState:
        """Return the state before any data."""
        return self.tangent.init(blocks, features, rng)

    @abstractmethod
    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm."""

    def update(self, state: TangentState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit the network again, then add its gradient to Z."""
        self.tangent.update(state, seen, rng)

    def update_all(self, state: TangentState, batch: Batch) -> None:
        """Learn a batch."""
        self.tangent.update_all(state, batch)

    def frozen(self, state: TangentState) -> TangentState:
        """Return a copy of the network and Z."""
        return copied(state.estimator)

    def grow(self, state: TangentState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.tangent.grow(state, blocks, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgePolicy(ABC):
    """A policy over a linear model."""

    model: Ridge = field(default_factory=Ridge)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        """Return the state before any data."""
        return self.model.init(blocks, features, rng)

    @abstractmethod
    def index(self, state: RidgeState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one number for each arm."""

    def update(self, state: RidgeState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit the linear model again."""
        self.model.update(state, seen)

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state, blocks)


def check_not_negative(name: str, value: float) -> None:
    """Raise SettingError unless a multiplier is a finite number, 0 or more."""
    if not 0 <= value < float("inf"):
        raise SettingError(f"{name}={value} cannot be; it must be a finite number, 0 or more")
