"""EE-Net (Ban, Yan, Banerjee, He 2022, "Exploitation-exploration neural networks in contextual bandits")."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rbmle.core.checks import check_not_negative
from rbmle.core.types import Batch, Contexts, Indices, Rows
from rbmle.engine.compiled import scalar
from rbmle.engine.exponential_family import expectations
from rbmle.engine.network import gradient_contexts
from rbmle.likelihoods import Gaussian
from rbmle.models.drift import units
from rbmle.models.regression import Regression, RegressionState
from rbmle.policies.base import ModelPolicy


@dataclass(slots=True, kw_only=True)
class ExplorerState:
    """f_1, which exploits, and f_2, which explores."""

    exploit: RegressionState
    explore: RegressionState

    @property
    def round(self) -> int:
        return self.exploit.round


@dataclass(frozen=True, slots=True, kw_only=True)
class EENet(ModelPolicy[ExplorerState]):
    """Index f_1(x) + c f_2(z), with z = (∇_x f_1, x), both of norm √d.

    f_1 is fitted to rewards, and f_2 to what f_1 leaves of them, r − f_1(x): the potential gain of an arm is
    learned, and may be negative. f_1 and z of an observation are those of its round, before it was learned.
    The decision maker is linear, f_1 + f_2 for c = 1.
    """

    model: Regression = field(default_factory=Regression)
    exploration: float = 0.5  # c

    title: ClassVar[str] = "EE-Net"
    is_separate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("exploration", self.exploration)

    @property
    def explorer(self) -> Regression:
        """The regression of f_2; the alarm and the units of rewards are those of f_1."""
        return replace(self.model, likelihood=Gaussian(), alarm=0.0, is_standardised=False)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> ExplorerState:
        exploit = self.model.init(blocks, features, rng)
        explore = self.explorer.init(blocks, 2 * features, rng)
        return ExplorerState(exploit=exploit, explore=explore)

    def index(self, state: ExplorerState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        expected, z = self.gradients(state, contexts)
        return expected + self.exploration * self.explorer.predict(state.explore, z)

    def predict(self, state: ExplorerState, contexts: Contexts) -> Indices:
        expected = self.model.expected(state.exploit, contexts)
        return self.model.in_rewards(state.exploit.watch, expected)

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
        model, explorer = self.model, self.explorer
        for single, _ in batch.singles():
            expected, z = self.gradients(state, single.contexts)
            expected = model.in_rewards(state.exploit.watch, expected)
            is_first = self.standardises and state.round == 0  # its units are not known
            if model.update_all(state.exploit, single):
                explorer.restart(state.explore)
            else:
                gain = 0.0 if is_first else units(state.exploit.watch)[1]
                rest = replace(single, contexts=z, rewards=(single.rewards - expected) * gain)
                explorer.update_all(state.explore, rest)

    def grow(self, state: ExplorerState, blocks: int, rng: np.random.Generator) -> None:
        self.model.grow(state.exploit, blocks, rng)
        self.explorer.grow(state.explore, blocks, rng)

    def frozen(self, state: ExplorerState) -> ExplorerState:
        exploit, explore = self.model.frozen(state.exploit), self.explorer.frozen(state.explore)
        return ExplorerState(exploit=exploit, explore=explore)
