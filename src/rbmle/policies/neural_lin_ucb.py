"""NeuralLinUCB (Xu, Wen, Zhao, Gu 2022, "… with deep representation and shallow exploration")."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative, check_positive
from rbmle.core.types import Batch, Contexts, Indices, Rows, rows_at
from rbmle.engine.network import last_hidden
from rbmle.models.linear import Ridge, RidgeState
from rbmle.models.network import Network
from rbmle.models.regression import AroundRegressionState, Regression, RegressionState, Replay
from rbmle.policies.base import ModelPolicy

CHUNK = 1024  # observations that are represented at once


@dataclass(slots=True, kw_only=True)
class LastLayerState(AroundRegressionState):
    """The network, and the linear model over its last hidden layer."""

    regression: RegressionState
    head: RidgeState


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralLinUCB(ModelPolicy[LastLayerState]):
    """Index θ̂ᵀφ(x) + γ ‖φ(x)‖_{V⁻¹}, with φ(x) = (h_{L−1}(x), 1) the last hidden layer of the network.

    θ̂ and V = λI + Σ φ φᵀ are those of a ridge regression, the head: the network represents, and its last layer
    explores. Observation s has the φ of the network of its round; whenever the rounds have doubled, θ̂ and V are
    made again of all that is remembered, with the φ of that time. So the mean cost of a round does not grow.
    """

    # The zero start's units come in pairs: as features they would say everything twice.
    model: Regression = field(
        default_factory=lambda: Regression(
            network=Network(start="standard"), ridge=0.001, training=Replay(rate=0.2)
        )
    )
    exploration: float = 1.0  # γ
    ridge: float = 1.0  # λ of the head

    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)
        check_positive("ridge", self.ridge)

    @property
    def head(self) -> Ridge:
        """The linear model; drift is detected by the network."""
        return Ridge(ridge=self.ridge, alarm=0.0, is_standardised=self.standardises)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> LastLayerState:
        regression = self.model.init(blocks, features, rng)
        return LastLayerState(regression=regression, head=self._start(rng))

    def index(self, state: LastLayerState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        phi = self._represent(state.regression, self.model.network.rows(contexts))
        means, norms = self.head.estimates(state.head, phi)
        return means + self.exploration * np.sqrt(norms)

    def predict(self, state: LastLayerState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀφ(x) for every context, in the units of rewards."""
        phi = self._represent(state.regression, self.model.network.rows(contexts))
        return self.head.predict(state.head, phi)

    def update_all(self, state: LastLayerState, batch: Batch) -> None:
        """Fit the network to each observation, if it is to be fitted, and then θ̂ and V."""
        for single, rng in batch.singles():
            if self.model.update_all(state.regression, single):
                state.head = self._start(rng)
            elif state.round & (state.round - 1) == 0:  # a power of 2
                self._refit(state, rng)
            else:
                self._add(state, self.model.network.rows(single.contexts), single.rewards, rng)

    def grow(self, state: LastLayerState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state.regression, blocks, rng)

    def frozen(self, state: LastLayerState) -> LastLayerState:
        regression = self.model.frozen(state.regression)
        return LastLayerState(regression=regression, head=self.head.frozen(state.head))

    def _represent(self, state: RegressionState, rows: Rows) -> Contexts:
        """Return φ(x) of every context, as contexts of one block."""
        n, size = len(rows.blocks), self.model.network.width + 1
        phi = np.empty((n, size))
        last_hidden(state.net, rows, phi)
        indices = np.tile(np.arange(size, dtype=np.int32), n)
        lengths, blocks = np.full(n, size, np.int64), np.zeros(n, np.int64)
        represented = Rows(np.arange(n) * size, lengths, blocks, indices, phi.ravel())
        return Contexts(rows=represented, features=size)

    def _start(self, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and V = λI."""
        return self.head.init(1, self.model.network.width + 1, rng)

    def _refit(self, state: LastLayerState, rng: np.random.Generator) -> None:
        """Compute θ̂ and V again from the history, with the present φ."""
        state.head = self._start(rng)
        rows, rewards, count = state.regression.history.samples
        for begin in range(0, count, CHUNK):
            some = slice(begin, min(begin + CHUNK, count))
            self._add(state, rows_at(rows, some), rewards[some], rng)

    def _add(
        self, state: LastLayerState, rows: Rows, rewards: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Add observations to θ̂ and V."""
        phi, is_fitted = self._represent(state.regression, rows), np.ones(len(rewards), np.bool_)
        batch = Batch(contexts=phi, rewards=rewards, is_fitted=is_fitted, rng=lambda _: rng)
        self.head.update_all(state.head, batch)
