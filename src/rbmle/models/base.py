"""What a model promises: it predicts rewards, and learns from them."""

from typing import Any, Protocol

import numpy as np

from rbmle.core.policy import State
from rbmle.core.types import Batch, Contexts, Indices


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
