"""How a network is fitted: steps on single samples drawn from the history, or on all of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.randomness import key as key_of
from rbmle.core.types import Batch, rows_at
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch
from rbmle.engine.layout import Net, Parameters, Rows, Walk
from rbmle.engine.learning import learn
from rbmle.engine.replay import kept, perturb, replay
from rbmle.likelihoods.base import Likelihood
from rbmle.models.history import History, Memory

POINTS = 16  # of the walk that an average is made of
NOBODY = Rows(*(np.zeros(1, np.int64),) * 3, np.zeros(1, np.int32), np.zeros(1, np.float32))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How a learner sees the history: rewards perturbed, and only a share of the observations."""

    noise: float = 0.0  # standard deviation of one draw for each observation and round
    share: float = 1.0
    key: int = 0  # which share


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """J steps a round on single samples, the newest among them, warm started.

    Each is a step on ℓ_λ/n in expectation; the cost of a round does not grow with the rounds.
    θ̂ is the average of the walk's points over the last share of the rounds (Polyak and Juditsky
    1992), or the last point if `average` is 0.
    """

    steps: int = 100  # J
    rate: float = 0.1  # η
    average: float = 0.02

    def __post_init__(self) -> None:
        """Raise SettingError for steps, a rate or a share that cannot be."""
        _check(self.steps, self.rate)
        if not 0 <= self.average <= 1:
            raise SettingError(f"average={self.average} cannot be; it is a share of the rounds")

    def walk(self, net: Net) -> Walk:
        """Return a walk from where a network is, if θ̂ is to be its average."""
        if self.average == 0:
            return no_walk(net)
        theta = Parameters(*(part.copy() for part in net.theta))
        return Walk(theta, net.ages.copy(), net.clock.copy())

    def fit(
        self,
        net: Net,
        walk: Walk,
        history: History,
        likelihood: Likelihood,
        ridge: float,
        view: View,
        key: np.uint64,
    ) -> None:
        """Take J steps on what is seen of the history; ridge is mλ."""
        replay(
            net if self.average == 0 else _walker(net, walk),
            history.rows,
            history.squares,
            history.rewards,
            history.serials,
            history.count,
            history.newest,
            self.steps,
            self.rate,
            ridge,
            scalar(likelihood.mean),
            key,
            view.noise,
            view.share,
            np.uint64(view.key),
            self._weight(history.count, history.seen),
            net.theta,
        )

    def learn(
        self,
        net: Net,
        walk: Walk,
        history: History,
        memory: Memory,
        batch: Batch,
        likelihood: Likelihood,
        ridge: float,
        view: View,
        push: float,
        D: Parameters,
    ) -> None:
        """Remember each observation, take J steps if it is to be fitted, and add push · g² to 1/D."""
        rows = batch.contexts.rows
        n, begun = len(batch), history.seen
        slots = memory.slots(begun, n)
        keys, weights = np.zeros(n, np.uint64), np.zeros(n)
        for i in range(n) if memory.is_random else batch.is_fitted.nonzero()[0].tolist():
            rng, seen = batch.rng(i), begun + i + 1
            slots[i] = memory.slot(begun + i, rng)
            if batch.is_fitted[i]:
                keys[i], weights[i] = key_of(rng), self._weight(memory.count(seen), seen)
        moved = Walk(net.theta, net.ages, net.clock) if self.average == 0 else walk
        done = 0
        while True:
            sizes = history.sizes
            done = learn(
                net,
                moved,
                history.past,
                sizes,
                done,
                rows,
                batch.rewards,
                slots,
                memory.listed,
                batch.is_fitted,
                keys,
                weights,
                self.steps,
                self.rate,
                ridge,
                scalar(likelihood.mean),
                view.noise,
                view.share,
                np.uint64(view.key),
                push,
                D,
            )
            history.resize(sizes)
            if done == n:
                return
            history.make_room(int(slots[done]), rows, done)

    def _weight(self, count: int, seen: int) -> float:
        """Return the weight of the walk's newest point in θ̂, which has POINTS in a window of rounds.

        Far on in a run it is mostly 0: a pass over all parameters costs as much as a few steps.
        """
        window = self.average * count  # of the rounds that are remembered
        apart = max(1, int(window / POINTS))
        return min(1.0, apart / window) if window > 0 and seen % apart == 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBatch:
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
        """Raise SettingError for steps, a rate or an objective that cannot be."""
        _check(self.steps, self.rate)
        if self.objective not in ("mean", "sum"):
            raise SettingError(f"objective={self.objective!r} is unknown; use 'mean' or 'sum'")

    def walk(self, net: Net) -> Walk:
        """Return no walk: θ̂ is the last point."""
        return no_walk(net)

    def step_size(self, count: int) -> float:
        """Return the step on ℓ_λ itself."""
        return self.rate / max(count, 1) if self.objective == "mean" else self.rate

    def fit(
        self,
        net: Net,
        walk: Walk,
        history: History,
        likelihood: Likelihood,
        ridge: float,
        view: View,
        key: np.uint64,
    ) -> None:
        """Take J steps on what is seen of the history; ridge is mλ."""
        if not self.warm:
            for part, start in zip(net.theta, net.start, strict=True):
                part[:] = start
        rows, rewards, count = history.rows, history.rewards, history.count
        if view.noise > 0:
            rewards = np.empty_like(rewards)
            perturb(history.rewards, history.serials, count, view.noise, key, rewards)
        if view.share < 1:
            seen = np.zeros(count, bool)
            kept(history.serials, count, view.share, np.uint64(view.key), seen)
            at = np.flatnonzero(seen)
            rows = rows_at(rows, at)
            rewards, count = rewards[at], len(at)
        full_batch(
            net,
            rows,
            rewards,
            count,
            self.steps,
            self.step_size(count),
            ridge,
            scalar(likelihood.mean),
            nobody(net),
            0,
            0.0,
        )


Training = Replay | FullBatch


def no_walk(net: Net) -> Walk:
    """Return the walk of a network that is trained itself."""
    return Walk(Parameters(*(part[:0] for part in net.theta)), net.ages[:0], net.clock[:0])


def _walker(net: Net, walk: Walk) -> Net:
    """Return the network that training moves."""
    theta, ages, clock = walk
    return Net(theta, net.start, ages, clock, net.features, net.scale, net.biased)


def grown(walk: Walk, net: Net) -> Walk:
    """Return a walk with the blocks that its network has grown by, at their start."""
    if len(walk.ages) == 0:
        return walk
    new = net.start.first[len(walk.ages) :]
    theta = walk.theta._replace(first=np.concatenate([walk.theta.first, new]))
    ages = np.concatenate([walk.ages, np.full(len(new), walk.clock[0])])
    return Walk(theta, ages, walk.clock)


def nobody(net: Net) -> Rows:
    """Return a context for a bias of zero, which nothing reads."""
    return NOBODY._replace(values=NOBODY.values.astype(net.theta.first.dtype))


def _check(steps: int, rate: float) -> None:
    if steps < 0 or not 0 < rate < float("inf"):
        raise SettingError(
            f"training with steps={steps} and rate={rate} cannot work; "
            "steps must be 0 or more, and the rate a positive number"
        )
