"""Several networks over one history, each of which sees a share of its own."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt64

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.layout import Net, Walk
from rbmle.engine.watching import Watch, notice
from rbmle.models.history import History
from rbmle.models.regression import Regression
from rbmle.models.regression_state import RegressionState, grown, no_walk, restarted, unmoved
from rbmle.models.training import expected_reward, in_units_of
from rbmle.models.watch import complete, fresh_watch, observed


@dataclass(slots=True, kw_only=True)
class EnsembleState:
    """The networks, their walks, the key of each one's share, and the history they share."""

    nets: list[Net]
    walks: list[Walk]
    keys: UInt64[np.ndarray, " networks"]
    history: History
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        """Complete what an earlier version saved."""
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
        """Return how many rounds were learned."""
        return self.history.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """Networks with starts of their own; each keeps an observation with probability `share`."""

    model: Regression
    networks: int
    share: float

    def __post_init__(self) -> None:
        """Raise SettingError for no network, or for a share that is no probability."""
        if self.networks < 1:
            raise SettingError(f"`networks` must be at least 1, got {self.networks}")
        if not 0 < self.share <= 1:
            raise SettingError(f"`share` must be above 0 and at most 1, got {self.share}")

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return self.model.rewards

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.model.standardises

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> EnsembleState:
        """Return networks at their starts and an empty history."""
        nets = [self.model.network.init(blocks, features, rng) for _ in range(self.networks)]
        keys = np.array([key(rng) for _ in range(self.networks)])
        walks = [self.model.training.walk(net) for net in nets]
        history = History.empty(blocks, self.model.network.dtype)
        watch = fresh_watch(self.model.standardises)
        return EnsembleState(nets=nets, walks=walks, keys=keys, history=history, watch=watch)

    def estimates(
        self, state: EnsembleState, contexts: Contexts
    ) -> Float[np.ndarray, "networks arms"]:
        """Return f(x; θ) of every network for every context, in the units in which rewards are learned."""
        return np.array([self.model.network.predict(net, contexts) for net in state.nets])

    def predict(self, state: EnsembleState, contexts: Contexts) -> Indices:
        """Return the mean of the networks' estimates for every context, in the units of rewards."""
        return self.model.in_rewards(state.watch, self.estimates(state, contexts).mean(axis=0))

    def update_all(self, state: EnsembleState, batch: Batch) -> None:
        """Remember each observation, and fit every network to its share if it is to be fitted."""
        model = self.model
        fit = model.fit._replace(share=float(self.share))
        for i in range(len(batch)):
            rng, seen = batch.rng(i), batch.observation(i)
            fit = in_units_of(fit, state.watch)
            hopes = [expected_reward(net, seen, fit) for net in state.nets]
            if notice(state.watch, seen.reward, sum(hopes) / len(hopes), fit.alarm):
                batch.restarted(i, observed(state.watch))
                self.restart(state)
                continue
            fit, history = in_units_of(fit, state.watch), state.history
            history.append(seen, model.memory, rng)
            if not batch.is_fitted[i]:
                continue
            for net, walk, share_key in zip(state.nets, state.walks, state.keys, strict=True):
                one = RegressionState(net=net, walk=walk, history=history)
                model.training.fit(one, fit._replace(share_key=share_key), key(rng))

    def restart(self, state: EnsembleState) -> None:
        """Forget all, so that the state is that before any data, with the same starts."""
        for net, walk in zip(state.nets, state.walks, strict=True):
            restarted(net, walk)
        blocks = len(state.history.member_starts)
        state.history = History.empty(blocks, self.model.network.dtype)
        state.watch = fresh_watch(self.model.standardises)

    def grow(self, state: EnsembleState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        state.nets = [self.model.network.grow(net, blocks, rng) for net in state.nets]
        state.walks = [grown(*both) for both in zip(state.walks, state.nets, strict=True)]
        state.history.grow(blocks)

    def frozen(self, state: EnsembleState) -> EnsembleState:
        """Return the networks and their round."""
        nets = [unmoved(net) for net in state.nets]
        walks, history = [no_walk(net) for net in nets], state.history.forgotten
        return EnsembleState(
            nets=nets, walks=walks, keys=state.keys, history=history, watch=state.watch.copy()
        )
