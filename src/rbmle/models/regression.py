"""A network fitted to the history by regularised maximum likelihood: the base estimator θ̂_t."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices, Observation
from rbmle.engine.layout import Net, Parameters, Walk
from rbmle.likelihoods.base import Likelihood
from rbmle.likelihoods.gaussian import Gaussian
from rbmle.models.history import History, Memory
from rbmle.models.network import Network
from rbmle.models.training import FullBatch, Replay, Training, View, grown, no_walk

ALL = View()


@dataclass(slots=True, kw_only=True)
class RegressionState:
    """A network, the walk that it is the average of, and the observations it was fitted to."""

    net: Net
    walk: Walk
    history: History

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.history.seen

    @property
    def estimator(self) -> "RegressionState":
        """Return the network and its round, without what training needs."""
        history = self.history.forgotten
        return RegressionState(net=self.net, walk=no_walk(self.net), history=history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """θ̂_t = argmax ℓ_λ(F_t; θ), with ℓ_λ = Σ_s (r_s f − b(f)) − (mλ/2)‖θ − θ₀‖²; Eqs. (9), (10), (14).

    The expected reward of a context is b′(f(x; θ̂_t)).
    """

    network: Network = field(default_factory=Network)
    likelihood: Likelihood = field(default_factory=Gaussian)
    ridge: float = 0.001  # λ
    training: Training = field(default_factory=Replay)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        """Raise SettingError for a ridge that is not positive."""
        if not 0 < self.ridge < float("inf"):
            raise SettingError(f"ridge={self.ridge} cannot be; λ must be a positive number")

    @property
    def pull(self) -> float:
        """Return mλ."""
        return self.network.m * self.ridge

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the network at θ₀ and an empty history."""
        history = History.empty(blocks, self.network.dtype)
        net = self.network.init(blocks, features, rng)
        return RegressionState(net=net, walk=self.training.walk(net), history=history)

    def predict(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context."""
        return self.network.predict(state.net, contexts)

    def update(
        self, state: RegressionState, seen: Observation, rng: np.random.Generator, view: View = ALL
    ) -> None:
        """Remember an observation, and fit again to what is seen of the history."""
        self.update_all(state, Batch.of(seen, rng), view)

    def update_all(
        self,
        state: RegressionState,
        batch: Batch,
        view: View = ALL,
        push: float = 0.0,
        D: Parameters | None = None,
    ) -> None:
        """Remember each observation; if it is to be fitted, fit again to what is seen of the history.

        Where the training is a replay, 1/D grows by push · g(x; θ̂)² after each; None: there is no D.
        """
        net, walk, history = state.net, state.walk, state.history
        match self.training:
            case Replay() as training:
                fit = (self.likelihood, self.pull, view, push, net.theta if D is None else D)
                training.learn(net, walk, history, self.memory, batch, *fit)
            case FullBatch() as training:
                for i in range(len(batch)):
                    rng = batch.rng(i)
                    history.append(batch.observation(i), self.memory, rng)
                    if batch.is_fitted[i]:
                        past = (history, self.likelihood, self.pull)
                        training.fit(net, walk, *past, view, key(rng))

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        state.net = self.network.grow(state.net, blocks, rng)
        state.walk = grown(state.walk, state.net)
        state.history.grow(blocks)
