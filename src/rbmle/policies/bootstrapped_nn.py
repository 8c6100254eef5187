"""BootstrappedNN (Osband et al. 2016, "Deep exploration via bootstrapped DQN"), as a bandit."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.trees import copied
from rbmle.core.types import Batch, Contexts, Indices, Observation, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.ensemble import Ensemble, EnsembleState
from rbmle.models.regression import Regression


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrappedNN:
    """Index f(x; θ_b) of a network b drawn anew in each round.

    Each of the networks keeps a sample with probability `share`, the paper's transition probability.
    """

    networks: int = 10
    share: float = 0.8
    model: Regression = field(default_factory=Regression)

    def __post_init__(self) -> None:
        """Raise SettingError for an ensemble that cannot be."""
        self.ensemble  # noqa: B018  # its constructor checks

    @property
    def ensemble(self) -> Ensemble:
        """Return the networks' model."""
        return Ensemble(model=self.model, networks=self.networks, share=self.share)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> EnsembleState:
        """Return the state before any data."""
        return self.ensemble.init(blocks, features, rng)

    def index(self, state: EnsembleState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimates of one network."""
        net = state.nets[int(rng.integers(self.networks))]
        return self.model.network.predict(net, contexts)

    def update(self, state: EnsembleState, seen: Observation, rng: np.random.Generator) -> None:
        """Fit every network to its share."""
        self.ensemble.update(state, seen, rng)

    def update_all(self, state: EnsembleState, batch: Batch) -> None:
        """Learn a batch."""
        self.ensemble.update_all(state, batch)

    def frozen(self, state: EnsembleState) -> EnsembleState:
        """Return a copy of the networks."""
        return copied(state.estimators)

    def grow(self, state: EnsembleState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        self.ensemble.grow(state, blocks, rng)

    def weigh(
        self, state: EnsembleState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates of one network, and the share of networks that put each arm first."""
        estimates = self.ensemble.predict(state, contexts)
        return estimates[int(rng.integers(self.networks))], shares(estimates).mean(axis=0)
