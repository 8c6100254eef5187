"""A network fitted to the history by regularised maximum likelihood: the base estimator θ̂_t."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from jaxtyping import Float

from rbmle.core.hints import Settings
from rbmle.core.numbers import check_positive
from rbmle.core.types import Batch, Contexts, Indices
from rbmle.engine.compiled import scalar
from rbmle.engine.expectation import expectations
from rbmle.engine.layout import Fit, Push
from rbmle.engine.watching import Watch
from rbmle.likelihoods.base import Likelihood, rewards_of
from rbmle.likelihoods.gaussian import Gaussian
from rbmle.models.history import History, Memory, usual_memory
from rbmle.models.network import Network
from rbmle.models.regression_state import RegressionState, grown, no_walk, restarted, unmoved
from rbmle.models.training import FullBatch, Replay, Training
from rbmle.models.watch import check_alarm, fresh_watch, is_alarmed, observed, units

NO_FORECASTS = np.empty((0, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Settings):
    """θ̂_t = argmax ℓ_λ(F_t; θ), with ℓ_λ = Σ_s (r_s f − b(f)) − (mλ/2)‖θ − θ₀‖²; Eqs. (9), (10), (14).

    The expected reward of a context is b′(f(x; θ̂_t)). Where rewards stay below it, the world has changed:
    all that was learned is forgotten.

    With the Gaussian likelihood, all rewards are learned less their mean so far, in units of their
    deviation so far: choices do not depend on the unit or the offset of rewards. Other likelihoods have a
    range of their own.
    """

    network: Network = field(default_factory=Network)
    likelihood: Likelihood = field(default_factory=Gaussian)
    ridge: float = 0.1  # λ
    training: Training = field(default_factory=Replay)
    memory: Memory = field(default_factory=usual_memory)
    alarm: float = 40.0  # S above which all is forgotten, see docs/drift.md; 0: never
    is_standardised: bool = (
        True  # learns (r − mean)/deviation of the rewards so far; the papers learn r
    )

    def __post_init__(self) -> None:
        """Raise SettingError for a ridge that is not positive, or an alarm below 0."""
        check_alarm(self.alarm)
        check_positive("ridge", self.ridge)

    @property
    def pull(self) -> float:
        """Return mλ."""
        return self.network.m * self.ridge

    @property
    def rewards(self) -> tuple[float, float]:
        """Return the smallest and the largest reward that there can be."""
        return rewards_of(self.likelihood)

    @property
    def fit(self) -> Fit:
        """Return how the network is fitted, to all of the history as it is."""
        training, mean = self.training, self.likelihood.mean
        return _fit(training.steps, training.rate, self.pull, mean, self.alarm, self.standardises)

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.is_standardised and isinstance(self.likelihood, Gaussian)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
        """Return the network at θ₀ and an empty history."""
        history = History.empty(blocks, self.network.dtype)
        net = self.network.init(blocks, features, rng)
        watch = fresh_watch(self.standardises)
        return RegressionState(net=net, walk=self.training.walk(net), history=history, watch=watch)

    def predict(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units of rewards."""
        return self.in_rewards(state.watch, self.scores(state, contexts))

    def scores(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units in which rewards are learned."""
        return self.network.predict(state.net, contexts)

    def expected(self, state: RegressionState, contexts: Contexts) -> Indices:
        """Return the expected reward b′(f(x; θ̂)) of every context, in the units of learning."""
        expected = np.empty(len(contexts))
        expectations(self.scores(state, contexts), scalar(self.likelihood.mean), expected)
        return expected

    def in_rewards(self, watch: Watch, values: Indices) -> Indices:
        """Return values that are in the units in which rewards are learned, in those in which rewards come."""
        if not self.standardises:
            return values
        centre, gain = units(watch)
        return centre + values / gain

    def update_all(self, state: RegressionState, batch: Batch) -> None:
        """Remember each observation, and fit to the history again if it is to be fitted."""
        self.learn(state, batch, self.fit)

    def learn(
        self,
        state: RegressionState,
        batch: Batch,
        fit: Fit,
        push: Push | None = None,
        forecasts: Float[np.ndarray, "n 3"] = NO_FORECASTS,
    ) -> list[int]:
        """Do so, and push to Z if there is one; return after how many observations all was forgotten.

        If there is room for forecasts, `Replay` writes what was expected before each reward, see
        `engine.learning`.
        """
        begin, restarts = 0, []
        while begin < len(batch):
            match self.training:
                case Replay() as training:
                    more = (push, forecasts)
                    begin = training.learn(state, self.memory, batch, begin, fit, *more)
                case FullBatch() as training:
                    begin = training.learn(state, self.memory, batch, begin, fit)
            if is_alarmed(state.watch, self.alarm):
                restarts.append(begin)
                batch.restarted(begin - 1, observed(state.watch))
                self.restart(state)
                for part in () if push is None else push.D:
                    part.fill(1 / self.ridge)
        return restarts

    def restart(self, state: RegressionState) -> None:
        """Forget all, so that the state is that before any data, with the same θ₀."""
        restarted(state.net, state.walk)
        state.history = History.empty(len(state.history.member_starts), self.network.dtype)
        state.watch = fresh_watch(self.standardises)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        state.net = self.network.grow(state.net, blocks, rng)
        state.walk = grown(state.walk, state.net)
        state.history.grow(blocks)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and its round, without what training needs."""
        net = unmoved(state.net)
        watch, history = state.watch.copy(), state.history.forgotten
        return RegressionState(net=net, walk=no_walk(net), history=history, watch=watch)


@cache
def _fit(
    steps: int,
    rate: float,
    ridge: float,
    mean: Callable[[float], float],
    alarm: float,
    is_standardised: bool,
) -> Fit:
    """Return a fit to all of the history as it is; one for all rounds, as making it costs a step."""
    return Fit(
        steps=steps,
        rate=float(rate),
        ridge=float(ridge),
        mean=scalar(mean),
        noise=0.0,
        share=1.0,
        share_key=np.uint64(0),
        alarm=float(alarm),
        is_standardised=is_standardised,
        centre=0.0,
        gain=1.0,
    )
