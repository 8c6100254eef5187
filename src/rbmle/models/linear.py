"""Linear models, one for each block: ridge regression, and generalised linear models."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import Settings, check_positive
from rbmle.core.encoding import with_constant
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.compiled import scalar
from rbmle.engine.drift import Watch
from rbmle.engine.linear import (
    diagonal_generalised_update,
    diagonal_ridge_estimates,
    diagonal_ridge_update,
    generalised_update,
    ridge_estimates,
    ridge_update,
)
from rbmle.likelihoods import Bernoulli, Gaussian, Likelihood, rewards_of
from rbmle.models.drift import (
    RAW,
    check_alarm,
    complete,
    count_observed,
    fresh_watch,
    is_alarmed,
    units,
)

Form = Literal["full", "diagonal"]
MOST_NUMBERS = 2**27  # of all F: 1 GiB


@dataclass(slots=True, kw_only=True)
class RidgeState:
    """θ̂ and a square root F of V⁻¹ = FFᵀ for each block; a diagonal F is stored as its diagonal.

    `ones` is the θ̂ for rewards that are all 1.
    """

    F: Float[np.ndarray, "blocks features *features"]
    theta: Float[np.ndarray, "blocks features"]
    round: int
    watch: Watch = field(default_factory=fresh_watch)
    # No blocks: rewards are learned as they are.
    ones: Float[np.ndarray, "blocks features"] = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        self.watch = complete(self.watch)


class LinearModel(Settings):
    """Base of ridge regression and generalised linear models, which differ in how they learn a reward."""

    __slots__ = ()
    ridge: float
    alarm: float
    precision: Form
    is_standardised: bool

    def __post_init__(self) -> None:
        check_alarm(self.alarm)
        check_positive("ridge", self.ridge)
        if self.precision not in ("full", "diagonal"):
            raise SettingError(f"`precision` must be 'full' or 'diagonal', got {self.precision!r}")

    @property
    def is_diagonal(self) -> bool:
        return self.precision == "diagonal"

    @property
    def has_constant(self) -> bool:
        """Whether contexts get one more feature, which is 1.

        With a diagonal V they do not: hashed features have a constant, and a second one would count twice.
        """
        return self.standardises and not self.is_diagonal

    @property
    def standardises(self) -> bool:
        return self.is_standardised

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and V = λI; raise SettingError if V does not fit in memory."""
        return self._start(blocks, features + self.has_constant)

    def estimates(self, state: RidgeState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return θ̂ᵀx and ‖x‖²_{V⁻¹} for every context, in the units in which rewards are learned."""
        means, norms, _ = self._estimates(state, contexts)
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
        means, _, projections = self._estimates(state, contexts)
        if self.is_diagonal:
            projections, places = _project_diagonal(state.F, self._extend(contexts))
            return means + deviation * rng.normal(size=(count, places)) @ projections.T
        z = rng.normal(size=(count, *state.theta.shape))[:, contexts.rows.blocks]
        return draw_linear(means, projections, deviation, z)

    def predict(self, state: RidgeState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀx for every context, in the units of rewards."""
        centre, gain = self._units(state)
        return centre + self.estimates(state, contexts)[0] / gain

    def learn(self, state: RidgeState, batch: Batch, update: Callable[..., int]) -> None:
        """Learn by a kernel with the arguments of `ridge_update`; after a drift alarm, start from nothing."""
        rows, rewards, begin = self._extend(batch.contexts).rows, batch.rewards, 0
        while begin < len(batch):
            past = (state.F, state.theta, state.ones, state.watch)
            end = update(rows, rewards, begin, float(self.alarm), *past)
            state.round += end - begin
            begin = end
            if is_alarmed(state.watch, self.alarm):
                batch.restarted(end - 1, count_observed(state.watch))
                blocks, size = state.theta.shape
                fresh = self._start(blocks, size)
                state.F, state.theta, state.ones = fresh.F, fresh.theta, fresh.ones
                state.round, state.watch = 0, fresh.watch

    def grow(self, state: RidgeState, blocks: int, rng: np.random.Generator) -> None:
        more, features = blocks - len(state.theta), state.theta.shape[1]
        self._check_size(blocks, features - self.has_constant)
        state.F = np.concatenate([state.F, self._roots(more, features)])
        state.theta = np.concatenate([state.theta, np.zeros((more, features))])
        if self.standardises:
            state.ones = np.concatenate([state.ones, np.zeros((more, features))])

    def frozen(self, state: RidgeState) -> RidgeState:
        return RidgeState(
            F=state.F.copy(),
            theta=state.theta.copy(),
            round=state.round,
            watch=state.watch.copy(),
            ones=state.ones.copy(),
        )

    def _estimates(
        self, state: RidgeState, contexts: Contexts
    ) -> tuple[Indices, Indices, np.ndarray]:
        """Return θ̂ᵀx, ‖x‖²_{V⁻¹} and Fᵀx for every context; no Fᵀx of a diagonal F."""
        contexts = self._extend(contexts)
        n, features = len(contexts), 0 if self.is_diagonal else contexts.features
        means, norms, projections = np.empty(n), np.empty(n), np.empty((n, features))
        learned = (state.F, state.theta, state.ones, contexts.rows, *self._units(state))
        if self.is_diagonal:
            diagonal_ridge_estimates(*learned, means, norms)
        else:
            ridge_estimates(*learned, means, norms, projections)
        return means, norms, projections

    def _start(self, blocks: int, size: int) -> RidgeState:
        """Return the state before any data, for contexts of some size, with the constant."""
        self._check_size(blocks, size - self.has_constant)
        return RidgeState(
            F=self._roots(blocks, size),
            theta=np.zeros((blocks, size)),
            round=0,
            watch=fresh_watch(self.standardises),
            ones=np.zeros((blocks if self.standardises else 0, size)),
        )

    def _extend(self, contexts: Contexts) -> Contexts:
        return with_constant(contexts) if self.has_constant else contexts

    def _units(self, state: RidgeState) -> tuple[float, float]:
        return units(state.watch) if self.standardises else RAW

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge(LinearModel):
    """The linear model θᵀx. V is block-diagonal in the disjoint encoding: K small ones.

    All rewards are learned less their mean so far, in units of their deviation so far: choices do not depend on
    the unit or the offset of rewards. Contexts get one more feature, which is 1, because the mean of an arm may
    differ from that of all arms.

    A full V has features × features numbers, and the cost of a round is proportional to them. With
    `precision="diagonal"`, only the diagonal of V⁻¹ is kept, and the cost is proportional to the entries of a
    context: use it for thousands of features, such as hashed ones. docs/how-to/features.md says what it loses.
    """

    ridge: float = 1.0  # λ
    alarm: float = 40.0  # S above which all is forgotten, see docs/how-to/drift.md; 0: never
    precision: Form = "full"
    is_standardised: bool = True  # learns (r − mean)/deviation so far; the papers learn r

    @property
    def rewards(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        self.learn(state, batch, diagonal_ridge_update if self.is_diagonal else ridge_update)


@dataclass(frozen=True, slots=True, kw_only=True)
class GLM(LinearModel):
    """θ̂ and H = λI + Σ_s b″(θ̂_sᵀx_s) x_s x_sᵀ, so that ℓ_λ(θ) ≈ ℓ_λ(θ̂) − ½ ‖θ − θ̂‖²_H.

    An observation is fitted once, with this quadratic form instead of all before it: θ̂ becomes the maximum
    of both, and the curvature there is added to H. With the Gaussian likelihood that is ridge regression. With
    others it is close to a fit to the whole history, at a constant cost (docs/evidence/differences.md).
    """

    likelihood: Likelihood = field(default_factory=Bernoulli)
    ridge: float = 1.0  # λ
    alarm: float = 40.0  # S above which all is forgotten, see docs/how-to/drift.md; 0: never
    precision: Form = "full"  # H, or of its inverse the diagonal alone, as for `Ridge`
    is_standardised: bool = True  # with the Gaussian likelihood, as for `Ridge`

    @property
    def rewards(self) -> tuple[float, float]:
        return rewards_of(self.likelihood)

    @property
    def standardises(self) -> bool:
        return self.is_standardised and isinstance(self.likelihood, Gaussian)

    def update_all(self, state: RidgeState, batch: Batch) -> None:
        if isinstance(self.likelihood, Gaussian):
            self.learn(state, batch, diagonal_ridge_update if self.is_diagonal else ridge_update)
            return
        update = diagonal_generalised_update if self.is_diagonal else generalised_update
        self.learn(state, batch, partial(update, scalar(self.likelihood.mean)))


def _project_diagonal(
    F: np.ndarray, contexts: Contexts
) -> tuple[Float[np.ndarray, "arms places"], int]:
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
