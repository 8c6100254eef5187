"""NeuralTS (Zhang, Zhou, Li, Gu 2021, "Neural Thompson sampling")."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.choosing import shares
from rbmle.core.randomness import key
from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.engine.hashing import context_noise
from rbmle.policies.base import TangentPolicy, TangentState


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralTS(TangentPolicy):
    """Index a draw from N(f(x; θ̂), ν² σ²) with σ² = λ gᵀ Z⁻¹ g/m.

    The noise of an arm is a function of its context and the stream: it does not depend on the order
    of the arms, and two arms with one context get one index.
    """

    exploration: float = 0.1  # ν

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    def index(self, state: TangentState, contexts: Contexts, rng: np.random.Generator) -> Indices:
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
        f, width = self.estimates(state, contexts)
        deviation = self.exploration * self.model.ridge**0.5 * width
        noise = np.empty((draws, len(contexts)))
        context_noise(contexts.rows, key(rng), noise)
        return f + deviation * noise
