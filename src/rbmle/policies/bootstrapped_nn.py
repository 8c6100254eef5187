"""BootstrappedNN (Osband et al. 2016, "Deep exploration via bootstrapped DQN"), as a bandit."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.types import Contexts, Indices, Probabilities
from rbmle.core.weighing import shares
from rbmle.models.ensemble import Ensemble, EnsembleState
from rbmle.models.regression import Regression
from rbmle.policies.base import ModelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrappedNN(ModelPolicy[EnsembleState]):
    """Index f(x; θ_b) of a network b drawn anew in each round.

    Each of the networks keeps a sample with probability `share`, the paper's transition probability.
    """

    networks: int = 10
    share: float = 0.8
    model: Regression = field(default_factory=Regression)

    def __post_init__(self) -> None:
        """Raise SettingError for no network, or for a share that is no probability."""
        self.learner  # noqa: B018  # its constructor checks

    @property
    def learner(self) -> Ensemble:
        """Return the networks."""
        return Ensemble(model=self.model, networks=self.networks, share=self.share)

    def index(self, state: EnsembleState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        """Return the estimates of one network."""
        net = state.nets[int(rng.integers(self.networks))]
        return self.model.network.predict(net, contexts)

    def weigh(
        self, state: EnsembleState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates of one network, and the share of networks that put each arm first."""
        estimates = self.learner.estimates(state, contexts)
        return estimates[int(rng.integers(self.networks))], shares(estimates).mean(axis=0)
