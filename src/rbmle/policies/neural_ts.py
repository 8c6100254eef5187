"""NeuralTS (Zhang, Zhou, Li, Gu 2021, "Neural Thompson sampling")."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.numbers import check_not_negative
from rbmle.core.randomness import key
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.engine.hashing import context_noise
from rbmle.models.precision import Diagonal, Precision
from rbmle.models.regression import Regression
from rbmle.models.tangent import Tangent, TangentState
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralTS(ModelPolicy[TangentState]):
    """Index a draw from N(f(x; θ̂), ν² σ²) with σ² = λ gᵀ Z⁻¹ g/m.

    The noise of an arm is a function of its context and the stream: it does not depend on the order
    of the arms, and two arms with one context get one index.
    """

    model: Regression = field(default_factory=Regression)
    precision: Precision = field(default_factory=Diagonal)
    exploration: float = 0.1  # ν

    def __post_init__(self) -> None:
        """Raise SettingError for an exploration below 0."""
        check_not_negative("exploration", self.exploration)

    @property
    def learner(self) -> Tangent:
        """Return the network with its precision."""
        return Tangent(model=self.model, precision=self.precision)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return one draw for each arm."""
        (draw,) = self._draws(state, contexts, 1, rng)
        return draw

    def weigh(
        self, state: TangentState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return one draw, and how often each arm comes first in so many draws."""
        indices = self._draws(state, contexts, max(draws, 1), rng)
        return indices[0], shares(indices).mean(axis=0) if draws else None

    def _draws(
        self, state: TangentState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return a row of indices for each draw."""
        f, width = self.learner.estimates(state, contexts)
        deviation = self.exploration * self.model.ridge**0.5 * width
        noise = np.empty((draws, len(contexts)))
        context_noise(contexts.rows, key(rng), noise)
        return f + deviation * noise
