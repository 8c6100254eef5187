"""Ridge regression, one for each block: θ̂ = V⁻¹ Σ r x with V = λI + Σ x xᵀ."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from rbmle.core.numbers import check_positive
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.square_root import ridge_estimates, ridge_update
from rbmle.engine.watching import Watch
from rbmle.models.watch import check_alarm, complete, fresh_watch, is_alarmed, observed


@dataclass(slots=True, kw_only=True)
class RidgeState:
    """θ̂ and a square root F of V⁻¹ = FFᵀ for each block."""

    F: Float[np.ndarray, "blocks features features"]
    theta: Float[np.ndarray, "blocks features"]
    round: int
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        """Complete what an earlier version saved."""
        self.watch = complete(self.watch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """The linear model θᵀx. V is block-diagonal in the disjoint encoding: K small ones."""

    ridge: float = 1.0  # λ
    alarm: float = 40.0  # S above which all is forgotten, see docs/drift.md; 0: never

    def __post_init__(self) -> None:
        """Raise SettingError for a ridge that is not positive, or an alarm below 0."""
        check_alarm(self.alarm)
        check_positive("ridge", self.ridge)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (-math.inf, math.inf)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and V = λI."""
        F = self._roots(blocks, features)
        return RidgeState(F=F, theta=np.zeros((blocks, features)), round=0)

    def estimates(
        self, state: RidgeState, contexts: Contexts
    ) -> tuple[Indices, Indices, np.ndarray]:
        """Return θ̂ᵀx, ‖x‖²_{V⁻¹} and Fᵀx for every context."""
        n = len(contexts)
        means, norms = np.empty(n), np.empty(n)
        projections = np.empty((n, contexts.features))
        ridge_estimates(state.F, state.theta, contexts.rows, means, norms, projections)
        return means, norms, projections

    def predict(self, state: RidgeState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀx for every context."""
        return self.estimates(state, contexts)[0]

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        """Learn from each reward; all of them are fitted, as it costs no more."""
        self.learn(state, batch, ridge_update)

    def learn(self, state: RidgeState, batch: Batch, update: Callable[..., int]) -> None:
        """Learn by a kernel with the arguments of `ridge_update`.

        Where rewards stay below what is expected, the world has changed: all that was learned is forgotten.
        """
        rows, rewards, begin = batch.contexts.rows, batch.rewards, 0
        while begin < len(batch):
            past = (state.F, state.theta, state.watch)
            end = update(rows, rewards, begin, float(self.alarm), *past)
            state.round += end - begin
            begin = end
            if is_alarmed(state.watch, self.alarm):
                batch.restarted(end - 1, observed(state.watch))
                state.F, state.theta = self._roots(*state.theta.shape), np.zeros_like(state.theta)
                state.round, state.watch = 0, fresh_watch()

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        more, features = blocks - len(state.theta), state.theta.shape[1]
        state.F = np.concatenate([state.F, self._roots(more, features)])
        state.theta = np.concatenate([state.theta, np.zeros((more, features))])

    def frozen(self, state: RidgeState) -> RidgeState:
        """Return a copy."""
        return RidgeState(F=state.F.copy(), theta=state.theta.copy(), round=state.round)

    def _roots(self, blocks: int, features: int) -> np.ndarray:
        """Return F = I/√λ for some blocks."""
        return np.tile(np.eye(features) / self.ridge**0.5, (blocks, 1, 1))


def draw_linear(
    means: Indices,
    projections: Float[np.ndarray, "arms features"],
    deviation: float,
    z: Float[np.ndarray, "draws arms features"],
) -> Float[np.ndarray, "draws arms"]:
    """Return θ̂ᵀx + ν (Fᵀx)ᵀz for each draw of a standard normal z: it is θ̃ᵀx, with θ̃ ~ N(θ̂, ν² FFᵀ)."""
    return means + deviation * np.einsum("ij,nij->ni", projections, z)
