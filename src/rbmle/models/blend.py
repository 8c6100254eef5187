"""A linear model beside a network, which is trusted as far as it has predicted rewards better."""

import math
from dataclasses import dataclass

import numpy as np

from rbmle.core.checks import check_not_negative, check_positive
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.blend import (
    COUNT,
    LOSSES,
    MISSED,
    SIZES,
    Record,
    Ridges,
    Sizes,
    blend_update,
    blend_values,
)
from rbmle.models.drift import units
from rbmle.models.regression import Regression, RegressionState, Replay

COMMON = 0.1  # τ: the precision of what blocks share, in units of that of how they differ
PRIOR = 20.0  # rounds
DENSE = 2**22  # numbers that V⁻¹ has at most; of wider contexts its diagonal is kept


@dataclass(slots=True, kw_only=True)
class BlendState:
    """A network, ridge regressions on the same rewards, and how well both have predicted."""

    regression: RegressionState
    ridges: Ridges
    common: Ridges  # what the last of them share
    record: Record
    sizes: Sizes

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.regression.round


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPart:
    """Ridge regressions on centred, scaled features and a constant, averaged by how well they predict.

    Most rewards are noisy. A network then needs thousands of them before it predicts better than a line;
    without noise it may need a hundred. So both learn every reward, and f = w₁ · line + w₂ · network, with
    weights that depend on what both predicted *before* they learned each reward: see `trust_parts`. The ridges
    are averaged with weights exp(−Σ e²/2σ²) by their errors e; the strongest is best for the noisiest rewards.
    Those of `common_ridges` shrink the vector of each arm to one that all arms share, instead of to 0: best for
    many arms, for arms with few rewards, and where contexts move the rewards of all arms alike.
    """

    ridges: tuple[float, ...] = (0.3, 3.0, 30.0, 100.0)  # λ, for contexts of a mean length of 1
    common_ridges: tuple[float, ...] = (
        10.0,
        100.0,
    )  # λ of those that shrink arms to a vector for all
    patience: float = 5.0  # rounds of evidence that pull the blend to the network alone
    forgetting: float = 0.001  # share of the evidence that is forgotten in a round
    bias_factor: float = 3.0  # the ν of the line, in units of that of the network
    radius: float = 0.7  # ρ; a biased line is within ρ σ(t) of θ̂, in the norm of V

    def __post_init__(self) -> None:
        """Raise SettingError for a setting out of range."""
        if not self.ridges:
            raise SettingError("`ridges` must have at least one ridge, as in ridges=(1.0,)")
        for ridge in (*self.ridges, *self.common_ridges):
            check_positive("ridges", ridge)
        check_positive("patience", self.patience)
        check_not_negative("bias_factor", self.bias_factor)
        check_positive("radius", self.radius)
        if not 0 <= self.forgetting < 1:
            raise SettingError(
                f"`forgetting` must be at least 0 and below 1, got {self.forgetting}; it is a share per round"
            )

    def start(self, regression: RegressionState, blocks: int, features: int) -> BlendState:
        """Return a state before any data, with V = λI."""
        size = features + 1
        is_dense = len(self._strengths) * blocks * size * size <= DENSE
        width = size if is_dense else 1
        record = np.zeros(LOSSES + len(self._strengths))
        sizes = np.zeros((features, SIZES))
        return BlendState(
            regression=regression,
            ridges=_begin(self._strengths, blocks, size, width),
            common=_begin(COMMON * self._strengths[len(self.ridges) :], 1, size, width),
            record=record,
            sizes=sizes,
        )

    def values(
        self, state: BlendState, contexts: Contexts
    ) -> tuple[tuple[float, float], Indices, Indices]:
        """Return (w₁, w₂), and the line's θ̂ᵀx and ‖x‖²_{V⁻¹} of every context."""
        n = len(contexts)
        means, norms = np.empty(n), np.empty(n)
        past = (self._strengths, state.ridges, state.common, state.sizes)
        judged = (state.record, float(self.patience), *units(state.regression.watch))
        weights = blend_values(contexts.rows, *judged, *past, means, norms)
        return weights, means, norms

    def deviation(self, state: BlendState) -> float:
        """Return the deviation of rewards from predictions, in units of that of all rewards."""
        missed, count = state.record[MISSED], state.record[COUNT]
        return min(math.sqrt((missed + 1) / (count + 1)), 1.0)

    def explained_share(self, state: BlendState) -> float:
        """Return the share R² of the variance of rewards that was predicted, 1 before any data.

        It is as if `PRIOR` rounds had been predicted without an error.
        """
        missed, count = state.record[MISSED], state.record[COUNT]
        return max(1.0 - missed / (count + PRIOR), 0.0)

    def update_all(self, state: BlendState, batch: Batch, model: Regression) -> None:
        """Let the network learn, then judge both parts and let the line learn."""
        if isinstance(model.training, Replay):
            forecasts = np.empty((len(batch), 3))
            restarts = model.update_all(state.regression, batch, forecasts=forecasts)
            self._learn(state, batch, forecasts, restarts)
            return
        for one, _ in batch.singles():
            (f,) = model.scores(state.regression, one.contexts)
            restarts = model.update_all(state.regression, one)
            forecasts = np.array([[f, *units(state.regression.watch)]])
            self._learn(state, one, forecasts, restarts)

    def grow(self, state: BlendState, blocks: int) -> None:
        """Make room for more blocks."""
        _, count, size, width = state.ridges.F.shape
        new = _begin(self._strengths, blocks - count, size, width)
        parts = zip(state.ridges, new, strict=True)
        state.ridges = Ridges(*(np.concatenate(pair, axis=1) for pair in parts))

    def frozen(self, state: BlendState, regression: RegressionState) -> BlendState:
        """Return a copy around a network that is frozen already."""
        return BlendState(
            regression=regression,
            ridges=Ridges(*(part.copy() for part in state.ridges)),
            common=Ridges(*(part.copy() for part in state.common)),
            record=state.record.copy(),
            sizes=state.sizes.copy(),
        )

    @property
    def _strengths(self) -> np.ndarray:
        """Return λ of every ridge regression."""
        return np.array([*self.ridges, *self.common_ridges])

    def _learn(
        self, state: BlendState, batch: Batch, forecasts: np.ndarray, restarts: list[int]
    ) -> None:
        """Learn what came after the last time that all was forgotten."""
        begin, n = restarts[-1] if restarts else 0, len(batch)
        if restarts:
            blocks, features = state.ridges.theta.shape[1], len(state.sizes)
            fresh = self.start(state.regression, blocks, features)
            state.ridges, state.common = fresh.ridges, fresh.common
            state.record, state.sizes = fresh.record, fresh.sizes
        past = (state.ridges, state.common, state.sizes)
        rules = (1.0 - self.forgetting, float(self.patience), self._strengths, state.record)
        blend_update(batch.contexts.rows, batch.rewards, forecasts, begin, n, *rules, *past)


def _begin(strengths: np.ndarray, blocks: int, size: int, width: int) -> Ridges:
    """Return θ̂ = 0 and F = I/√λ, or of width 1 the diagonal of V⁻¹ = I/λ."""
    root = np.eye(size) if width == size else np.ones((size, 1))
    F = np.tile(root, (len(strengths), blocks, 1, 1))
    F *= (strengths ** (-0.5 if width == size else -1.0)).reshape(-1, 1, 1, 1)
    theta, ones = np.zeros((2, len(strengths), blocks, size))
    return Ridges(F, theta, ones)
