"""A linear model over the last hidden layer of a network that is trained beside it."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices, Rows, rows_at
from rbmle.engine.representation import last_hidden
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.ridge import Ridge, RidgeState

CHUNK = 1024  # observations that are represented at once


@dataclass(slots=True, kw_only=True)
class LastLayerState:
    """The network, and the linear model over its last hidden layer."""

    regression: RegressionState
    head: RidgeState

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.regression.round


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLayer:
    """θ̂ᵀφ(x) with φ(x) = (h_{L−1}(x), 1), and V = λI + Σ φ φᵀ over the contexts that were played.

    Observation s has the φ of the network of its round; whenever the rounds have doubled, θ̂ and V are made
    again of all that is remembered, with the φ of that time. So a round costs as much as any other on average.
    """

    model: Regression
    ridge: float  # λ of the head

    @property
    def linear(self) -> Ridge:
        """Return the linear model; whether the world has changed is for the network to say."""
        return Ridge(ridge=self.ridge, alarm=0.0, is_standardised=self.model.standardises)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> LastLayerState:
        """Return the network at θ₀, θ̂ = 0 and V = λI."""
        regression = self.model.init(blocks, features, rng)
        return LastLayerState(regression=regression, head=self._head(rng))

    def predict(self, state: LastLayerState, contexts: Contexts) -> Indices:
        """Return θ̂ᵀφ(x) for every context, in the units of rewards."""
        phi = self.represented(state.regression, self.model.network.rows(contexts))
        return self.linear.predict(state.head, phi)

    def estimates(self, state: LastLayerState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return θ̂ᵀφ(x) and the width ‖φ(x)‖_{V⁻¹} for every context."""
        phi = self.represented(state.regression, self.model.network.rows(contexts))
        means, norms = self.linear.estimates(state.head, phi)
        return means, np.sqrt(norms)

    def represented(self, state: RegressionState, rows: Rows) -> Contexts:
        """Return φ(x) of every context, as contexts of one block."""
        n, size = len(rows.blocks), self.model.network.width + 1
        phi = np.empty((n, size))
        last_hidden(state.net, rows, phi)
        indices = np.tile(np.arange(size, dtype=np.int32), n)
        lengths, blocks = np.full(n, size, np.int64), np.zeros(n, np.int64)
        found = Rows(np.arange(n) * size, lengths, blocks, indices, phi.ravel())
        return Contexts(rows=found, features=size)

    def update_all(self, state: LastLayerState, batch: Batch) -> None:
        """Fit the network to each observation, if it is to be fitted, and then θ̂ and V."""
        for one, rng in batch.singles():
            if self.model.learn(state.regression, one, self.model.fit):
                state.head = self._head(rng)
                continue
            if _is_power_of_2(state.round):
                self._refit(state, rng)
            else:
                self._add(state, self.model.network.rows(one.contexts), one.rewards, rng)

    def grow(self, state: LastLayerState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks; all share the last layer."""
        self.model.grow(state.regression, blocks, rng)

    def frozen(self, state: LastLayerState) -> LastLayerState:
        """Return the network, θ̂, V and the round."""
        regression = self.model.frozen(state.regression)
        return LastLayerState(regression=regression, head=self.linear.frozen(state.head))

    def _head(self, rng: np.random.Generator) -> RidgeState:
        """Return θ̂ = 0 and V = λI."""
        return self.linear.init(1, self.model.network.width + 1, rng)

    def _refit(self, state: LastLayerState, rng: np.random.Generator) -> None:
        """Make θ̂ and V of what is remembered, with φ as it is."""
        state.head = self._head(rng)
        rows, rewards, count = state.regression.history.samples
        for begin in range(0, count, CHUNK):
            some = slice(begin, min(begin + CHUNK, count))
            self._add(state, rows_at(rows, some), rewards[some], rng)

    def _add(
        self, state: LastLayerState, rows: Rows, rewards: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Add observations to θ̂ and V."""
        phi, is_fitted = self.represented(state.regression, rows), np.ones(len(rewards), np.bool_)
        batch = Batch(contexts=phi, rewards=rewards, is_fitted=is_fitted, rng=lambda _: rng)
        self.linear.update_all(state.head, batch)


def _is_power_of_2(n: int) -> bool:
    """Return whether rounds have doubled."""
    return n & (n - 1) == 0
