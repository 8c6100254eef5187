"""A network fitted to the history by regularised maximum likelihood: the base estimator θ̂_t.

It is fitted by steps on single samples drawn from the history (`Replay`), or on all of it (`FullBatch`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from jaxtyping import Float

from rbmle.core.checks import Settings, check_positive, whole_number
from rbmle.core.errors import SettingError
from rbmle.core.randomness import key as key_of
from rbmle.core.types import Batch, Contexts, Indices, Observation, rows_at
from rbmle.engine.compiled import scalar
from rbmle.engine.drift import Watch, notice
from rbmle.engine.exponential_family import expectations
from rbmle.engine.full_batch import full_batch
from rbmle.engine.layout import (
    Arrivals,
    Bias,
    Fit,
    Net,
    Parameters,
    Push,
    Rows,
    Samples,
    TrainingWalk,
)
from rbmle.engine.network import UNTOUCHED
from rbmle.engine.replay import expect_reward, learn, perturb, replay, select_share
from rbmle.likelihoods import Gaussian, Likelihood, rewards_of
from rbmle.models.drift import check_alarm, complete, count_observed, fresh_watch, is_alarmed, units
from rbmle.models.history import History, Memory, usual_memory
from rbmle.models.network import Network


@dataclass(slots=True, kw_only=True)
class RegressionState:
    """A network, the training walk that it averages, and the observations it was fitted to."""

    net: Net
    walk: TrainingWalk
    history: History
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
        return self.history.seen


class AroundRegressionState:
    """Base of states that have a `regression` as one of their parts."""

    __slots__ = ()
    regression: RegressionState

    @property
    def round(self) -> int:
        return self.regression.round


def restart_net(net: Net, walk: TrainingWalk) -> None:
    """Bring a network and its walk back to θ₀."""
    for moved in (net, walk):
        for part, start in zip(moved.theta, net.start, strict=True):
            part[:] = start[: len(part)]  # the parts of a walk are empty if there is no average
        moved.clock[:] = 0.0
    net.ages[:], walk.ages[:] = 0.0, UNTOUCHED


def copy_net(net: Net) -> Net:
    """Return a copy that training does not move; θ₀ is shared, as nothing writes to it."""
    theta = Parameters(*(part.copy() for part in net.theta))
    return net._replace(theta=theta, ages=net.ages.copy(), clock=net.clock.copy())


def settle(net: Net) -> Net:
    """Return a copy of a network in which the ridge's pull has been applied to every row."""
    copy = copy_net(net)
    keep = np.exp(np.minimum(net.clock[0] - net.ages, 0.0)).astype(net.theta.first.dtype)
    start = net.start.first
    copy.theta.first[:] = start + keep[:, None] * (net.theta.first - start)
    copy.ages[:], copy.clock[:] = 0.0, 0.0
    return copy


def no_walk(net: Net) -> TrainingWalk:
    """Return the empty walk of a network that keeps no average."""
    return TrainingWalk(Parameters(*(part[:0] for part in net.theta)), net.ages[:0], net.clock[:0])


def walk_from(net: Net) -> TrainingWalk:
    """Return a walk from the start of a network that is at θ₀."""
    theta = Parameters(*(part.copy() for part in net.theta))
    return TrainingWalk(theta, np.full_like(net.ages, UNTOUCHED), np.zeros(2))


def grow_walk(walk: TrainingWalk, net: Net) -> TrainingWalk:
    """Return a walk with the new blocks of its network, at their start."""
    if len(walk.ages) == 0:
        return walk
    new = net.start.first[len(walk.ages) :]
    theta = walk.theta._replace(first=np.concatenate([walk.theta.first, new]))
    ages = np.concatenate([walk.ages, np.full(len(new), UNTOUCHED)])
    return TrainingWalk(theta, ages, walk.clock)


POINTS = 16  # of the walk in an average
NO_CONTEXT = Rows(*(np.zeros(1, np.int64),) * 3, np.zeros(1, np.int32), np.zeros(1, np.float32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Settings):
    """J steps a round on single samples, the newest among them, warm started.

    Each is a step on ℓ_λ/n in expectation; the cost of a round does not grow with the rounds.
    θ̂ is the average of the walk's points over the last share of the rounds (Polyak and Juditsky
    1992), or the last point if `average` is 0.
    """

    steps: int = 40  # J
    rate: float = 0.4  # η
    average: float = 0.02

    def __post_init__(self) -> None:
        _check(self.steps, self.rate)
        if not 0 <= self.average <= 1:
            raise SettingError(
                f"`average` must be between 0 and 1, got {self.average}; it is a share of the rounds"
            )

    def walk(self, net: Net) -> TrainingWalk:
        """Return a walk that starts at a network, or an empty one if θ̂ is not an average."""
        return no_walk(net) if self.average == 0 else walk_from(net)

    def fit(self, state: RegressionState, fit: Fit, key: np.uint64) -> None:
        """Take J steps on the history."""
        net, history = state.net, state.history
        theta, ages, clock = self.trained_part(state)
        trained = Net(theta, net.start, ages, clock, net.features, net.scale, net.biased)
        weight = self._weight(history.count, history.seen)
        replay(trained, history.past, history.sizes, fit, key, weight, net.theta)

    def arrivals(self, history: History, memory: Memory, batch: Batch, begin: int) -> Arrivals:
        """Return a batch as the engine learns it from its place `begin` on."""
        n, begun = len(batch), history.seen - begin
        slots = memory.slots(begun, n)
        keys, weights = np.zeros(n, np.uint64), np.zeros(n)
        is_all = memory.is_random or n == 1
        fitted = range(begin, n) if is_all else batch.is_fitted[begin:].nonzero()[0] + begin
        for i in map(int, fitted):
            rng, seen = batch.rng(i), begun + i + 1
            if memory.is_random:
                slots[i] = memory.slot(begun + i, rng)
            if batch.is_fitted[i]:
                keys[i], weights[i] = key_of(rng), self._weight(memory.count(seen), seen)
        rows, is_fitted = batch.contexts.rows, batch.is_fitted
        return Arrivals(rows, batch.rewards, slots, memory.listed, is_fitted, keys, weights)

    def trained_part(self, state: RegressionState) -> TrainingWalk:
        """Return what training moves: the walk, or the network itself."""
        net = state.net
        return TrainingWalk(net.theta, net.ages, net.clock) if self.average == 0 else state.walk

    def _weight(self, count: int, seen: int) -> float:
        """Return the weight of the walk's newest point in θ̂, which has POINTS in a window of rounds.

        Late in a run it is mostly 0: a pass over all parameters costs as much as a few steps.
        """
        window = self.average * count  # of the rounds that are remembered
        apart = max(1, int(window / POINTS))
        return min(1.0, apart / window) if window > 0 and seen % apart == 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBatch(Settings):
    """J steps a round of gradient ascent on ℓ_λ(F_t; θ), as Algorithms 1 and 2 state it.

    `objective="sum"` ascends ℓ_λ itself, for which η must shrink with the number of rounds;
    `objective="mean"` ascends ℓ_λ/t, with the same maximiser, as the published code does.
    The cost of a round grows with the rounds: it is the reference for `Replay`.
    """

    steps: int = 100  # J
    rate: float = 0.1  # η
    objective: Literal["mean", "sum"] = "mean"
    warm: bool = True  # start from the last round's θ̂, or from θ₀

    def __post_init__(self) -> None:
        _check(self.steps, self.rate)
        if self.objective not in ("mean", "sum"):
            raise SettingError(f"`objective` must be 'mean' or 'sum', got {self.objective!r}")

    def walk(self, net: Net) -> TrainingWalk:
        """Return an empty walk: θ̂ is the last point."""
        return no_walk(net)

    def step_size(self, count: int) -> float:
        """Return the step on ℓ_λ itself."""
        return self.rate / max(count, 1) if self.objective == "mean" else float(self.rate)

    def fit(self, state: RegressionState, fit: Fit, key: np.uint64) -> None:
        """Take J steps on the part of the history that the fit sees."""
        net, history = state.net, state.history
        if not self.warm:
            for part, start in zip(net.theta, net.start, strict=True):
                part[:] = start
        rows, rewards, count = history.samples_in(fit)
        if fit.noise > 0:
            perturb(rewards, history.serials, count, fit.noise, key, rewards := rewards.copy())
        if fit.share < 1:
            seen = np.zeros(count, bool)
            select_share(history.serials, count, fit, seen)
            at = np.flatnonzero(seen)
            rows, rewards, count = rows_at(rows, at), rewards[at], len(at)
        samples, step = Samples(rows, rewards, count), fit._replace(rate=self.step_size(count))
        full_batch(net, samples, step, no_bias(net))

    def learn(
        self, state: RegressionState, memory: Memory, batch: Batch, begin: int, fit: Fit
    ) -> int:
        """Remember each observation, and take J steps if it is to be fitted.

        Return the end of the batch, or the place after an observation that set off the alarm.
        """
        for i in range(begin, len(batch)):
            rng, seen = batch.rng(i), batch.observation(i)
            hope = expected_reward(state.net, seen, in_units_of(fit, state.watch))
            if notice(state.watch, seen.reward, hope, fit.alarm):
                return i + 1
            state.history.append(seen, memory, rng)
            if batch.is_fitted[i]:
                self.fit(state, in_units_of(fit, state.watch), key_of(rng))
        return len(batch)


Training = Replay | FullBatch


def in_units_of(fit: Fit, watch: Watch) -> Fit:
    """Return a fit to rewards in the units in which they are learned."""
    if not fit.is_standardised:
        return fit
    centre, gain = units(watch)
    return fit._replace(centre=centre, gain=gain)


def expected_reward(net: Net, seen: Observation, fit: Fit) -> float:
    """Return b′(f(x; θ)) of the context that was played, in the units of rewards."""
    rows = seen.context.rows
    rows = rows._replace(values=rows.values.astype(net.theta.first.dtype, copy=False))
    return fit.centre + float(expect_reward(net, rows, 0, fit.mean)) / fit.gain


def no_bias(net: Net) -> Bias:
    """Return a bias of zero; its context is never read."""
    return Bias(NO_CONTEXT._replace(values=NO_CONTEXT.values.astype(net.theta.first.dtype)), 0, 0.0)


def _check(steps: int, rate: float) -> None:
    """Raise SettingError for steps or a rate out of range."""
    whole_number("steps", steps)
    if steps < 0:
        raise SettingError(f"`steps` must be 0 or more, got {steps}")
    check_positive("rate", rate)


NO_FORECASTS = np.empty((0, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Settings):
    """θ̂_t = argmax ℓ_λ(F_t; θ), with ℓ_λ = Σ_s (r_s f − b(f)) − (mλ/2)‖θ − θ₀‖²; Eqs. (9), (10), (14).

    The expected reward of a context is b′(f(x; θ̂_t)). Where rewards stay below it, they have drifted, and the
    model forgets all that it learned.

    With the Gaussian likelihood, all rewards are learned less their mean so far, in units of their
    deviation so far: choices do not depend on the unit or the offset of rewards. Other likelihoods have a
    range of their own.
    """

    network: Network = field(default_factory=Network)
    likelihood: Likelihood = field(default_factory=Gaussian)
    ridge: float = 0.1  # λ
    training: Training = field(default_factory=Replay)
    memory: Memory = field(default_factory=usual_memory)
    alarm: float = 40.0  # S above which all is forgotten, see docs/how-to/drift.md; 0: never
    is_standardised: bool = True  # learns (r − mean)/deviation so far; the papers learn r

    def __post_init__(self) -> None:
        check_alarm(self.alarm)
        check_positive("ridge", self.ridge)

    @property
    def pull(self) -> float:
        """Return mλ."""
        return self.network.m * self.ridge

    @property
    def rewards(self) -> tuple[float, float]:
        return rewards_of(self.likelihood)

    @property
    def fit(self) -> Fit:
        """How the network is fitted, without noise and to all of the history."""
        training, mean = self.training, self.likelihood.mean
        return _fit(training.steps, training.rate, self.pull, mean, self.alarm, self.standardises)

    @property
    def standardises(self) -> bool:
        return self.is_standardised and isinstance(self.likelihood, Gaussian)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> RegressionState:
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
        """Convert values from the units in which rewards are learned to those in which they come."""
        if not self.standardises:
            return values
        centre, gain = units(watch)
        return centre + values / gain

    def update_all(
        self,
        state: RegressionState,
        batch: Batch,
        *,
        fit: Fit | None = None,
        push: Push | None = None,
        forecasts: Float[np.ndarray, "n 3"] = NO_FORECASTS,
    ) -> list[int]:
        """Remember each observation, and fit to the history again if it is to be fitted.

        Return after how many observations all was forgotten. `fit` replaces the usual one; with a `push`, each
        observation is added to Z. If there is room for forecasts, `Replay` writes what was expected before each
        reward, see `engine.replay`.
        """
        fit = self.fit if fit is None else fit
        begin, restarts, n = 0, list[int](), len(batch)
        arrivals: Arrivals | None = None
        while begin < n:
            history, training = state.history, self.training
            if isinstance(training, FullBatch):
                begin = training.learn(state, self.memory, batch, begin, fit)
            else:
                if arrivals is None:
                    arrivals = training.arrivals(history, self.memory, batch, begin)
                net, sizes = state.net, history.sizes
                pushed = Push(0.0, net.theta) if push is None else push
                more = (in_units_of(fit, state.watch), pushed, state.watch, forecasts)
                moved = training.trained_part(state)
                begin = learn(net, moved, history.past, sizes, arrivals, begin, *more)
                history.resize(sizes)
            if is_alarmed(state.watch, self.alarm):
                restarts.append(begin)
                batch.restarted(begin - 1, count_observed(state.watch))
                self.restart(state)
                arrivals = None
            elif begin < n and arrivals is not None:
                history.make_room(int(arrivals.slots[begin]), arrivals.rows, begin)
        return restarts

    def restart(self, state: RegressionState) -> None:
        """Return to the state before any data, with the same θ₀."""
        restart_net(state.net, state.walk)
        state.history = History.empty(len(state.history.member_starts), self.network.dtype)
        state.watch = fresh_watch(self.standardises)

    def grow(self, state: RegressionState, blocks: int, rng: np.random.Generator) -> None:
        state.net = self.network.grow(state.net, blocks, rng)
        state.walk = grow_walk(state.walk, state.net)
        state.history.grow(blocks)

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and its round, without what training needs."""
        net = copy_net(state.net)
        watch, history = state.watch.copy(), state.history.forgotten
        return RegressionState(net=net, walk=no_walk(net), history=history, watch=watch)

    def frozen_with_history(self, state: RegressionState) -> RegressionState:
        """Return the network and the history, for policies whose index is fitted to it."""
        net, history = copy_net(state.net), state.history.frozen(self.memory)
        watch = state.watch.copy()  # the index may be in units of the deviation of rewards
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
    # Cached because making it costs as much as a training step.
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


def printed_model(*, objective: Literal["sum", "mean"] = "sum", warm: bool = False) -> Regression:
    """Return a network with the paired start and, in each round, J = 100 steps of η = 0.001.

    The paper does not say where a round's ascent starts, or whether its steps are on ℓ_λ or on ℓ_λ/t. Read
    literally they are on the sum ℓ_λ, from θ₀. With `objective="mean"` they are on ℓ_λ/t, as in the published
    code of NeuralUCB, and with `warm=True` they start from the last round's θ̂.

    It never forgets. The number of features must be even, and each context must be (x, x)/√2, so that
    f(x; θ₀) = 0. A round costs J passes over all rounds before it.
    """
    return Regression(
        network=Network(start="paired"),
        ridge=0.001,
        training=FullBatch(steps=100, rate=0.001, objective=objective, warm=warm),
        memory=Memory(),
        alarm=0.0,
        is_standardised=False,
    )
