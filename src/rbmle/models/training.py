"""How a network is fitted: steps on single samples drawn from the history, or on all of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.hints import Settings
from rbmle.core.numbers import check_positive, check_whole
from rbmle.core.randomness import key as key_of
from rbmle.core.types import Batch, Observation, rows_at
from rbmle.engine.full_batch import full_batch
from rbmle.engine.layout import Arrivals, Bias, Fit, Net, Push, Rows, Samples, Walk
from rbmle.engine.learning import expected, learn
from rbmle.engine.replay import kept, perturb, replay
from rbmle.engine.watching import Watch, notice
from rbmle.models.history import Memory
from rbmle.models.regression_state import RegressionState, no_walk, walk_from
from rbmle.models.watch import is_alarmed, units

POINTS = 16  # of the walk that an average is made of
NOBODY = Rows(*(np.zeros(1, np.int64),) * 3, np.zeros(1, np.int32), np.zeros(1, np.float32))


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
        """Raise SettingError for steps, a rate or a share out of range."""
        _check(self.steps, self.rate)
        if not 0 <= self.average <= 1:
            raise SettingError(
                f"`average` must be between 0 and 1, got {self.average}; it is a share of the rounds"
            )

    def walk(self, net: Net) -> Walk:
        """Return a walk from where a network is, if θ̂ is to be its average."""
        return no_walk(net) if self.average == 0 else walk_from(net)

    def fit(self, state: RegressionState, fit: Fit, key: np.uint64) -> None:
        """Take J steps on what is seen of the history."""
        net, history = state.net, state.history
        theta, ages, clock = self._moved(state)
        trained = Net(theta, net.start, ages, clock, net.features, net.scale, net.biased)
        weight = self._weight(history.count, history.seen)
        replay(trained, history.past, history.sizes, fit, key, weight, net.theta)

    def learn(
        self,
        state: RegressionState,
        memory: Memory,
        batch: Batch,
        begin: int,
        fit: Fit,
        push: Push | None,
        forecasts: Float[np.ndarray, "n 3"],
    ) -> int:
        """Remember each observation, take J steps if it is to be fitted, and add it to Z, if there is one.

        Return what is next in the batch: its end, unless one from `begin` on has set off the alarm.
        """
        history, rows = state.history, batch.contexts.rows
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
        arrivals = Arrivals(
            rows, batch.rewards, slots, memory.listed, batch.is_fitted, keys, weights
        )
        net, moved = state.net, self._moved(state)
        pushed = Push(0.0, net.theta) if push is None else push
        done = begin
        while True:
            sizes = history.sizes
            fit = in_units_of(fit, state.watch)
            more = (pushed, state.watch, forecasts)
            done = learn(net, moved, history.past, sizes, arrivals, done, fit, *more)
            history.resize(sizes)
            if done == n or is_alarmed(state.watch, fit.alarm):
                return done
            history.make_room(int(slots[done]), rows, done)

    def _moved(self, state: RegressionState) -> Walk:
        """Return what training moves: the walk, or the network itself."""
        net = state.net
        return Walk(net.theta, net.ages, net.clock) if self.average == 0 else state.walk

    def _weight(self, count: int, seen: int) -> float:
        """Return the weight of the walk's newest point in θ̂, which has POINTS in a window of rounds.

        Far on in a run it is mostly 0: a pass over all parameters costs as much as a few steps.
        """
        window = self.average * count  # of the rounds that are remembered
        apart = max(1, int(window / POINTS))
        return min(1.0, apart / window) if window > 0 and seen % apart == 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBatch(Settings):
    """J steps a round of gradient ascent on ℓ_λ(F_t; θ), as Algorithms 1 and 2 state it.

    `objective="sum"` ascends ℓ_λ itself, for which η must shrink with the number of rounds;
    `objective="mean"` ascends ℓ_λ/t, with the same maximiser, as the published code does.
    The cost of a round grows with the rounds: this is the reference that `Replay` is held against.
    """

    steps: int = 100  # J
    rate: float = 0.1  # η
    objective: Literal["mean", "sum"] = "mean"
    warm: bool = True  # start from the last round's θ̂, or from θ₀

    def __post_init__(self) -> None:
        """Raise SettingError for steps, a rate or an objective out of range."""
        _check(self.steps, self.rate)
        if self.objective not in ("mean", "sum"):
            raise SettingError(f"`objective` must be 'mean' or 'sum', got {self.objective!r}")

    def walk(self, net: Net) -> Walk:
        """Return no walk: θ̂ is the last point."""
        return no_walk(net)

    def step_size(self, count: int) -> float:
        """Return the step on ℓ_λ itself."""
        return self.rate / max(count, 1) if self.objective == "mean" else float(self.rate)

    def fit(self, state: RegressionState, fit: Fit, key: np.uint64) -> None:
        """Take J steps on what is seen of the history."""
        net, history = state.net, state.history
        if not self.warm:
            for part, start in zip(net.theta, net.start, strict=True):
                part[:] = start
        rows, rewards, count = history.samples_in(fit)
        if fit.noise > 0:
            perturb(rewards, history.serials, count, fit.noise, key, rewards := rewards.copy())
        if fit.share < 1:
            seen = np.zeros(count, bool)
            kept(history.serials, count, fit, seen)
            at = np.flatnonzero(seen)
            rows, rewards, count = rows_at(rows, at), rewards[at], len(at)
        samples, step = Samples(rows, rewards, count), fit._replace(rate=self.step_size(count))
        full_batch(net, samples, step, no_bias(net))

    def learn(
        self, state: RegressionState, memory: Memory, batch: Batch, begin: int, fit: Fit
    ) -> int:
        """Remember each observation, and take J steps if it is to be fitted.

        Return what is next in the batch: its end, unless one from `begin` on has set off the alarm.
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
    return fit.centre + float(expected(net, rows, 0, fit.mean)) / fit.gain


def no_bias(net: Net) -> Bias:
    """Return a bias of zero, whose context nothing reads."""
    return Bias(NOBODY._replace(values=NOBODY.values.astype(net.theta.first.dtype)), 0, 0.0)


def _check(steps: int, rate: float) -> None:
    """Raise SettingError for steps or a rate out of range."""
    check_whole("steps", steps)
    if steps < 0:
        raise SettingError(f"`steps` must be 0 or more, got {steps}")
    check_positive("rate", rate)
