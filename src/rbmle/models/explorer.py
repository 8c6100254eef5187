"""Two networks: one fitted to rewards, and one, which sees the gradient of the first, to what it leaves."""

from dataclasses import dataclass, replace

import numpy as np

from rbmle.core.types import Batch, Contexts, Indices, Rows
from rbmle.engine.compiled import scalar
from rbmle.engine.expectation import expectations
from rbmle.engine.feature_gradients import gradient_contexts
from rbmle.likelihoods.gaussian import Gaussian
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState
from rbmle.models.watch import units


@dataclass(slots=True, kw_only=True)
class ExplorerState:
    """f_1, which exploits, and f_2, which explores."""

    exploit: RegressionState
    explore: RegressionState

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.exploit.round


@dataclass(frozen=True, slots=True, kw_only=True)
class Explorer:
    """f_1(x) fitted to r, and f_2(z) fitted to r − f_1(x), with z the gradient of f_1 by x, and x.

    Both are normalised; f_1 and z of an observation are those of its round, before it was learned.
    """

    model: Regression

    @property
    def second(self) -> Regression:
        """The regression of f_2; the alarm and the units of rewards are those of f_1."""
        return replace(self.model, likelihood=Gaussian(), alarm=0.0, is_standardised=False)

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> ExplorerState:
        """Return both networks at their starts."""
        exploit = self.model.init(blocks, features, rng)
        return ExplorerState(exploit=exploit, explore=self.second.init(blocks, 2 * features, rng))

    def predict(self, state: ExplorerState, contexts: Contexts) -> Indices:
        """Return the expected reward by f_1 for every context."""
        expected = self.model.expected(state.exploit, contexts)
        return self.model.in_rewards(state.exploit.watch, expected)

    def estimates(self, state: ExplorerState, contexts: Contexts) -> tuple[Indices, Indices]:
        """Return the expected reward by f_1, and f_2, for every context."""
        expected, z = self.gradients(state, contexts)
        return expected, self.second.predict(state.explore, z)

    def gradients(self, state: ExplorerState, contexts: Contexts) -> tuple[Indices, Contexts]:
        """Return the expected reward by f_1, and the contexts z of f_2."""
        rows, n = self.model.network.rows(contexts), len(contexts)
        lengths, f, expected = 2 * rows.lengths, np.empty(n), np.empty(n)
        starts, entries = np.cumsum(lengths) - lengths, int(lengths.sum())
        z = Rows(starts, lengths, rows.blocks, np.empty(entries, np.int32), np.empty(entries))
        gradient_contexts(state.exploit.net, rows, f, z)
        expectations(f, scalar(self.model.likelihood.mean), expected)
        return expected, Contexts(rows=z, features=2 * contexts.features)

    def update_all(self, state: ExplorerState, batch: Batch) -> None:
        """Let f_2 learn from what f_1 leaves of each reward, and f_1 from the reward."""
        for one, _ in batch.singles():
            expected, z = self.gradients(state, one.contexts)
            expected = self.model.in_rewards(state.exploit.watch, expected)
            is_first = self.model.standardises and state.round == 0  # its units are not known
            if self.model.learn(state.exploit, one, self.model.fit):
                self.second.restart(state.explore)
            else:
                gain = 0.0 if is_first else units(state.exploit.watch)[1]
                left = replace(one, contexts=z, rewards=(one.rewards - expected) * gain)
                self.second.learn(state.explore, left, self.second.fit)

    def grow(self, state: ExplorerState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.model.grow(state.exploit, blocks, rng)
        self.second.grow(state.explore, blocks, rng)

    def frozen(self, state: ExplorerState) -> ExplorerState:
        """Return both networks and their round."""
        exploit, explore = self.model.frozen(state.exploit), self.second.frozen(state.explore)
        return ExplorerState(exploit=exploit, explore=explore)
