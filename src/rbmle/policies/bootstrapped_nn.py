"""BootstrappedNN (Osband et al. 2016, "Deep exploration via bootstrapped DQN"), as a bandit."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt64

from rbmle.core.choosing import shares
from rbmle.core.errors import SettingError
from rbmle.core.randomness import key
from rbmle.core.types import Batch, Contexts, Indices, Probabilities
from rbmle.engine.drift import Watch, notice
from rbmle.engine.layout import Net, TrainingWalk
from rbmle.models.drift import complete, count_observed, fresh_watch
from rbmle.models.history import History
from rbmle.models.regression import (
    Regression,
    RegressionState,
    copy_net,
    expected_reward,
    grow_walk,
    in_units_of,
    no_walk,
    restart_net,
)
from rbmle.policies.base import ModelPolicy


@dataclass(slots=True, kw_only=True)
class EnsembleState:
    """The networks, their walks, the key of each one's share, and the history they share."""

    nets: list[Net]
    walks: list[TrainingWalk]
    keys: UInt64[np.ndarray, " networks"]
    history: History
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
        return self.history.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrappedNN(ModelPolicy[EnsembleState]):
    """Index f(x; θ_b) of one network b of several, drawn in each round.

    The networks differ in their starts, and in what they see of one history: each keeps a sample with
    probability `share`, the paper's transition probability.
    """

    networks: int = 10
    share: float = 0.8
    model: Regression = field(default_factory=Regression)

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise SettingError(f"`networks` must be at least 1, got {self.networks}")
        if not 0 < self.share <= 1:
            raise SettingError(f"`share` must be above 0 and at most 1, got {self.share}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> EnsembleState:
        nets = [self.model.network.init(blocks, features, rng) for _ in range(self.networks)]
        keys = np.array([key(rng) for _ in range(self.networks)])
        walks = [self.model.training.walk(net) for net in nets]
        history = History.empty(blocks, self.model.network.dtype)
        watch = fresh_watch(self.standardises)
        return EnsembleState(nets=nets, walks=walks, keys=keys, history=history, watch=watch)

    def index(self, state: EnsembleState, contexts: Contexts, rng: np.random.Generator) -> Indices:
        net = state.nets[int(rng.integers(self.networks))]
        return self.model.network.predict(net, contexts)

    def weigh(
        self, state: EnsembleState, contexts: Contexts, draws: int, rng: np.random.Generator
    ) -> tuple[Indices, Probabilities | None]:
        """Return the estimates of one network, and the share of networks that put each arm first."""
        estimates = self._estimates(state, contexts)
        return estimates[int(rng.integers(self.networks))], shares(estimates).mean(axis=0)

    def predict(self, state: EnsembleState, contexts: Contexts) -> Indices:
        return self.model.in_rewards(state.watch, self._estimates(state, contexts).mean(axis=0))

    def update_all(self, state: EnsembleState, batch: Batch) -> None:
        model = self.model
        fit = model.fit._replace(share=float(self.share))
        for i in range(len(batch)):
            rng, seen = batch.rng(i), batch.observation(i)
            fit = in_units_of(fit, state.watch)
            expected = [expected_reward(net, seen, fit) for net in state.nets]
            if notice(state.watch, seen.reward, sum(expected) / len(expected), fit.alarm):
                batch.restarted(i, count_observed(state.watch))
                self._restart(state)
                continue
            fit, history = in_units_of(fit, state.watch), state.history
            history.append(seen, model.memory, rng)
            if not batch.is_fitted[i]:
                continue
            for net, walk, share_key in zip(state.nets, state.walks, state.keys, strict=True):
                member = RegressionState(net=net, walk=walk, history=history)
                model.training.fit(member, fit._replace(share_key=share_key), key(rng))

    def grow(self, state: EnsembleState, blocks: int, rng: np.random.Generator) -> None:
        state.nets = [self.model.network.grow(net, blocks, rng) for net in state.nets]
        state.walks = [grow_walk(*both) for both in zip(state.walks, state.nets, strict=True)]
        state.history.grow(blocks)

    def frozen(self, state: EnsembleState) -> EnsembleState:
        nets = [copy_net(net) for net in state.nets]
        walks, history = [no_walk(net) for net in nets], state.history.forgotten
        return EnsembleState(
            nets=nets, walks=walks, keys=state.keys, history=history, watch=state.watch.copy()
        )

    def _estimates(
        self, state: EnsembleState, contexts: Contexts
    ) -> Float[np.ndarray, "networks arms"]:
        return np.array([self.model.network.predict(net, contexts) for net in state.nets])

    def _restart(self, state: EnsembleState) -> None:
        for net, walk in zip(state.nets, state.walks, strict=True):
            restart_net(net, walk)
        blocks = len(state.history.member_starts)
        state.history = History.empty(blocks, self.model.network.dtype)
        state.watch = fresh_watch(self.standardises)
