"""What a model promises: it predicts rewards and learns from them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rbmle.core.policy import State
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.models.regression import Regression, RegressionState


class Model(Protocol[State]):
    """What learns under a policy: settings and the functions of a fold, as a frozen dataclass.

    `update_all` is the only writer of a state, apart from `grow`.
    """

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        ...

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        ...

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> State:
        """Return the state before any data."""
        ...

    def predict(self, state: State, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        ...

    def update_all(self, state: State, batch: Batch) -> None:
        """Learn a batch, to the bit as if its observations came one by one."""
        ...

    def grow(self, state: State, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks; what was learned stays."""
        ...

    def frozen(self, state: State) -> State:
        """Return what deciding reads, which stays as it is when the state learns."""
        ...


class Ascends(Protocol):
    """A model that finds the arm-specific estimators θ̃_a by itself, as one of another library does."""

    def ascend(
        self, state: Any, contexts: Contexts, alpha: float, key: np.uint64, ascent: Any
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a), and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂), for every arm."""
        ...

    def frozen(self, state: Any) -> Any:
        """Return what `ascend` reads, which stays as it is when the state learns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundRegression:
    """Base class for models that wrap a `Regression`."""

    model: Regression

    @property
    def rewards(self) -> tuple[float, float]:
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the network at θ₀ and an empty history."""
        return self.model.init(blocks, features, rng)

    def predict(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units of rewards."""
        return self.model.predict(state, contexts)

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit θ̂ again if it is to be fitted."""
        self.model.update_all(state, batch)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state, blocks, rng)

    def frozen(self, state: RegressionState) -> RegressionState:
        return self.model.frozen(state)
