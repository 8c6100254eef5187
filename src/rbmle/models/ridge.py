"""Ridge regression, one for each block: θ̂ = V⁻¹ Σ r x with V = λI + Σ x xᵀ."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.hints import Settings
from rbmle.core.numbers import check_positive
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.square_root import (
    diagonal_ridge_estimates,
    diagonal_ridge_update,
    ridge_estimates,
    ridge_update,
)
from rbmle.engine.watching import Watch
from rbmle.models.watch import check_alarm, complete, fresh_watch, is_alarmed, observed

Form = Literal["full", "diagonal"]
MOST_NUMBERS = 2**27  # of all F: 1 GiB


@dataclass(slots=True, kw_only=True)
class RidgeState:
    """θ̂ and a square root F of V⁻¹ = FFᵀ for each block; of a diagonal F, the diagonal alone."""

    F: Float[np.ndarray, "blocks features *features"]
    theta: Float[np.ndarray, "blocks features"]
    round: int
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        """Complete what an earlier version saved."""
        self.watch = complete(self.watch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge(Settings):
    """The linear model θᵀx. V is block-diagonal in the disjoint encoding: K small ones.

    A full V has features × features numbers, and a round costs as much. With `precision="diagonal"`, only the
    diagonal of V⁻¹ is kept, and a round costs as much as a context has entries: for thousands of features, such
    as hashed ones. docs/features.md says what it loses.
    """

    ridge: float = 1.0  # λ
    alarm: float = 40.0  # S above which all is forgotten, see docs/drift.md; 0: never
    precision: Form = "full"

    def __post_init__(self) -> None:
        """Raise SettingError for a ridge that is not positive, an alarm below 0 or an unknown precision."""
        check_alarm(self.alarm)
        check_positive("ridge", self.ridge)
        if self.precision not in ("full", "diagonal"):
            raise SettingError(f"`precision` must be 'full' or 'diagonal', got {self.precision!r}")

    @property
    def is_diagonal(self) -> bool:
        """Return whether V⁻¹ has its diagonal alone."""
        return self.precision == "diagonal"

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return (-math.inf, math.inf)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and V = λI; raise SettingError if V has more numbers than fit in memory."""
        self._check_size(blocks, features)
        F = self._roots(blocks, features)
        return RidgeState(F=F, theta=np.zeros((blocks, features)), round=0)

    def estimates(self, state: RidgeState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return θ̂ᵀx and ‖x‖²_{V⁻¹} for every context."""
        means, norms = np.empty(len(contexts)), np.empty(len(contexts))
        if self.is_diagonal:
            diagonal_ridge_estimates(state.F, state.theta, contexts.rows, means, norms)
        else:
            projections = np.empty((len(contexts), contexts.features))
            ridge_estimates(state.F, state.theta, contexts.rows, means, norms, projections)
        return means, norms

    def draws(
        self,
        state: RidgeState,
        contexts: Contexts,
        deviation: float,  # ν
        count: int,
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "draws arms"]:
        """Return θ̃ᵀx for every context, with one θ̃ ~ N(θ̂, ν² V⁻¹) for each block and draw."""
        n = len(contexts)
        means, norms = np.empty(n), np.empty(n)
        if self.is_diagonal:
            diagonal_ridge_estimates(state.F, state.theta, contexts.rows, means, norms)
            projections, places = _touched(state.F, contexts)
            return means + deviation * rng.normal(size=(count, places)) @ projections.T
        projections = np.empty((n, contexts.features))
        ridge_estimates(state.F, state.theta, contexts.rows, means, norms, projections)
        z = rng.normal(size=(count, *state.theta.shape))[:, contexts.rows.blocks]
        return draw_linear(means, projections, deviation, z)

    def predict(self, state: RidgeState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀx for every context."""
        return self.estimates(state, contexts)[0]

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        """Learn from each reward; all of them are fitted, as it costs no more."""
        self.learn(state, batch, diagonal_ridge_update if self.is_diagonal else ridge_update)

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
        self._check_size(blocks, features)
        state.F = np.concatenate([state.F, self._roots(more, features)])
        state.theta = np.concatenate([state.theta, np.zeros((more, features))])

    def frozen(self, state: RidgeState) -> RidgeState:
        """Return a copy."""
        return RidgeState(F=state.F.copy(), theta=state.theta.copy(), round=state.round)

    def _roots(self, blocks: int, features: int) -> np.ndarray:
        """Return F = I/√λ for some blocks."""
        if self.is_diagonal:
            return np.full((blocks, features), 1 / self.ridge**0.5)
        return np.tile(np.eye(features) / self.ridge**0.5, (blocks, 1, 1))

    def _check_size(self, blocks: int, features: int) -> None:
        """Raise SettingError if a full V of some blocks would not fit in memory."""
        if self.is_diagonal or blocks * features**2 <= MOST_NUMBERS:
            return
        arms = f"for each of {blocks:,} arms " if blocks > 1 else ""
        raise SettingError(
            f"this linear model keeps a matrix of {features:,} × {features:,} numbers {arms}"
            f"({8 * blocks * features**2 / 2**30:,.1f} GiB), more than the {MOST_NUMBERS * 8 / 2**30:g} GiB "
            "that are allowed; for so many features, use model.precision=diagonal, as in "
            "'lin-ucb:model.precision=diagonal' or Ridge(precision='diagonal'), or a policy with a network"
        )


def _touched(F: np.ndarray, contexts: Contexts) -> tuple[Float[np.ndarray, "arms places"], int]:
    """Return Fᵀx of every context for a diagonal F, at those of its places where some context has an entry."""
    starts, lengths, blocks, indices, values = contexts.rows
    entries = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)])
    arms = np.repeat(np.arange(len(blocks)), lengths)
    at = blocks[arms] * contexts.features + indices[entries]
    places, columns = np.unique(at, return_inverse=True)
    projections = np.zeros((len(blocks), len(places)))
    projections[arms, columns] = values[entries] * F.ravel()[at]
    return projections, len(places)


def draw_linear(
    means: Indices,
    projections: Float[np.ndarray, "arms features"],
    deviation: float,
    z: Float[np.ndarray, "draws arms features"],
) -> Float[np.ndarray, "draws arms"]:
    """Return θ̂ᵀx + ν (Fᵀx)ᵀz for each draw of a standard normal z: it is θ̃ᵀx, with θ̃ ~ N(θ̂, ν² FFᵀ)."""
    return means + deviation * np.einsum("ij,nij->ni", projections, z)
