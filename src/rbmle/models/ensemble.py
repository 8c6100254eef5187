"""Several networks over one history, each of which sees a share of its own."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt64

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Observation
from rbmle.engine.layout import Net, Walk
from rbmle.models.history import History
from rbmle.models.regression import Regression
from rbmle.models.training import View, grown, no_walk


@dataclass(slots=True, kw_only=True)
class EnsembleState:
    """The networks, their walks, the key of each one's share, and the history they share."""

    nets: list[Net]
    walks: list[Walk]
    keys: UInt64[np.ndarray, " networks"]
    history: History

    @property
    def round(self) -> int:
        """Return how many rounds were learned."""
        return self.history.seen

    @property
    def estimators(self) -> "EnsembleState":
        """Return the networks, without what training needs."""
        walks = [no_walk(net) for net in self.nets]
        history = self.history.forgotten
        return EnsembleState(nets=self.nets, walks=walks, keys=self.keys, history=history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """Networks with starts of their own; each keeps an observation with probability `share`."""

    model: Regression
    networks: int
    share: float

    def __post_init__(self) -> None:
        """Raise SettingError for an ensemble that cannot be."""
        if self.networks < 1 or not 0 < self.share <= 1:
            raise SettingError(
                f"an ensemble of {self.networks} networks that keep a share of {self.share} cannot be; "
                "it needs at least one network, and a share above 0 and at most 1"
            )

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> EnsembleState:
        """Return networks at their starts and an empty history."""
        nets = [self.model.network.init(blocks, features, rng) for _ in range(self.networks)]
        keys = np.array([key(rng) for _ in range(self.networks)])
        walks = [self.model.training.walk(net) for net in nets]
        history = History.empty(blocks, self.model.network.dtype)
        return EnsembleState(nets=nets, walks=walks, keys=keys, history=history)

    def predict(
        self, state: EnsembleState, contexts: Contexts
    ) -> Float[np.ndarray, "networks arms"]:
        """Return f(x; θ) of every network for every context."""
        return np.array([self.model.network.predict(net, contexts) for net in state.nets])

    def update(self, state: EnsembleState, seen: Observation, rng: np.random.Generator) -> None:
        """Remember an observation, and fit every network to its share."""
        self.update_all(state, Batch.of(seen, rng))

    def update_all(self, state: EnsembleState, batch: Batch) -> None:
        """Do so for each observation; the networks stay as they are for those that are not fitted."""
        model = self.model
        past = (state.history, model.likelihood, model.pull)
        for i in range(len(batch)):
            rng = batch.rng(i)
            state.history.append(batch.observation(i), model.memory, rng)
            if not batch.is_fitted[i]:
                continue
            for net, walk, share_key in zip(state.nets, state.walks, state.keys, strict=True):
                view = View(share=self.share, key=int(share_key))
                model.training.fit(net, walk, *past, view, key(rng))

    def grow(self, state: EnsembleState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        state.nets = [self.model.network.grow(net, blocks, rng) for net in state.nets]
        state.walks = [grown(*both) for both in zip(state.walks, state.nets, strict=True)]
        state.history.grow(blocks)
