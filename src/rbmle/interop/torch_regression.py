"""A network of PyTorch, fitted to the history by regularised maximum likelihood, as `Regression` is."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.numbers import check_positive
from rbmle.core.types import Batch, Contexts, Indices, Observation, rows_at
from rbmle.engine.compiled import scalar
from rbmle.engine.expectation import expectations
from rbmle.engine.watching import Watch, notice
from rbmle.interop.torch_network import TorchNet, TorchNetwork
from rbmle.likelihoods.base import Likelihood, rewards_of
from rbmle.likelihoods.gaussian import Gaussian
from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.history import History, Memory, usual_memory
from rbmle.models.training import FullBatch
from rbmle.models.watch import RAW, check_alarm, complete, fresh_watch, observed, units

TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """J steps a round on ℓ_λ/n, each on some observations drawn from the history, the newest among them.

    A gradient that is longer than `clip` is shortened to it, so that large features do no harm.
    """

    steps: int = 20  # J
    rate: float = 0.1  # η
    size: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Raise SettingError for steps, a rate or a size out of range."""
        if self.steps < 0 or self.size < 1:
            raise SettingError(
                f"`steps` must be 0 or more and `size` at least 1, got {self.steps} and {self.size}"
            )
        check_positive("rate", self.rate)
        check_positive("clip", self.clip)


@dataclass(slots=True, kw_only=True)
class TorchState:
    """A network, and the observations it was fitted to."""

    net: TorchNet
    history: History
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        """Complete what an earlier version saved."""
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.history.seen


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRegression:
    """θ̂_t = argmax ℓ_λ(F_t; θ), as `Regression` has it, over a network of PyTorch.

    With `FullBatch` it takes the steps that `Regression` takes, and differs from it by rounding alone.
    """

    network: TorchNetwork = field(default_factory=TorchNetwork)
    likelihood: Likelihood = field(default_factory=Gaussian)
    ridge: float = 0.1  # λ
    training: Minibatch | FullBatch = field(default_factory=Minibatch)
    memory: Memory = field(default_factory=usual_memory)
    alarm: float = 40.0  # as of `Regression`
    is_standardised: bool = True  # as of `Regression`

    def __post_init__(self) -> None:
        """Raise SettingError for a training of another kind, a ridge or an alarm out of range."""
        check_alarm(self.alarm)
        if not isinstance(self.training, Minibatch | FullBatch):
            raise SettingError(
                f"`training` must be Minibatch(…) or FullBatch(…), got {self.training!r}; others are for "
                "networks of rbmle"
            )
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
    def fit(self) -> None:
        """Return None: all that a fit needs is in the settings."""
        return

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TorchState:
        """Return the network at θ₀ and an empty history."""
        history = History.empty(blocks, self.network.dtype)
        watch = fresh_watch(self.standardises)
        net = self.network.init(blocks, features, rng)
        return TorchState(net=net, history=history, watch=watch)

    @property
    def standardises(self) -> bool:
        """Whether rewards are learned in other units than they come."""
        return self.is_standardised and isinstance(self.likelihood, Gaussian)

    def predict(self, state: TorchState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units of rewards."""
        return self.in_rewards(state.watch, self.scores(state, contexts))

    def scores(self, state: TorchState, contexts: Contexts) -> Indices:
        """Return f(x; θ̂) for every context, in the units in which rewards are learned."""
        return self.network.predict(state.net, contexts)

    def in_rewards(self, watch: Watch, values: Indices) -> Indices:
        """Return values that are in the units in which rewards are learned, in those in which rewards come."""
        centre, gain = units(watch) if self.standardises else RAW
        return centre + values / gain

    def expected(self, state: TorchState, contexts: Contexts) -> Indices:
        """Return the expected reward b′(f(x; θ̂)) of every context, in the units of learning."""
        return _each(self.likelihood.mean, self.scores(state, contexts))

    def update_all(self, state: TorchState, batch: Batch) -> None:
        """Remember each observation, and fit to the history again if it is to be fitted."""
        self.learn(state, batch)

    def learn(self, state: TorchState, batch: Batch, fit: None = None) -> list[int]:
        """Do so; return after how many observations all was forgotten."""
        restarts = []
        for i in range(len(batch)):
            seen, rng = batch.observation(i), batch.rng(i)
            (hope,) = self.in_rewards(state.watch, self.expected(state, seen.context))
            if notice(state.watch, seen.reward, float(hope), float(self.alarm)):
                restarts.append(i + 1)
                batch.restarted(i, observed(state.watch))
                self.restart(state)
                continue
            state.history.append(self._rounded(seen), self.memory, rng)
            if batch.is_fitted[i]:
                net, training = state.net, self.training
                is_cold = isinstance(training, FullBatch) and not training.warm
                theta = net.start if is_cold else net.theta
                net.theta[:] = self._climbed(state, theta, training.steps, training.rate, rng)
        return restarts

    def ascend(
        self,
        state: TorchState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        ascent: ArmAscent,
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a) and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂) for every arm.

        θ̃_a ascends ℓ_λ(F_t; θ) + α f(x_a; θ): with `Minibatch` by the steps of `ascent`, all arms on the
        same observations, and with `FullBatch` by those of the training, as Algorithm 1 says.
        """
        net, training = state.net, self.training
        is_full = isinstance(training, FullBatch)
        steps, rate = (training.steps, training.rate) if is_full else (ascent.steps, ascent.rate)
        theta = net.start if isinstance(training, FullBatch) and not training.warm else net.theta
        X = self.network.inputs(net, contexts.rows)
        base = self._log_likelihood(state, net.theta)
        estimates, gains = np.empty(len(contexts)), np.empty(len(contexts))
        for arm in range(len(contexts)):
            rng = np.random.Generator(np.random.PCG64(int(key)))
            x = X[arm : arm + 1]
            moved = self._climbed(state, theta, steps, rate, rng, x, alpha)
            with torch.no_grad():
                estimates[arm] = float(self.network.f(net, torch.from_numpy(moved), x)[0])
            gains[arm] = self._log_likelihood(state, moved) - base
        return estimates, gains

    def restart(self, state: TorchState) -> None:
        """Forget all, so that the state is that before any data, with the same θ₀."""
        state.net.theta[:] = state.net.start
        state.history = History.empty(state.net.blocks, self.network.dtype)
        state.watch = fresh_watch(self.standardises)

    def grow(self, state: TorchState, blocks: int, rng: np.random.Generator) -> None:
        """Make room for more blocks."""
        state.net = self.network.grow(state.net, blocks, rng)
        state.history.grow(blocks)

    def frozen(self, state: TorchState) -> TorchState:
        """Return the network and the history, which an ascent reads."""
        net = state.net
        held = TorchNet(
            theta=net.theta.copy(),
            start=net.start,
            shapes=net.shapes,
            blocks=net.blocks,
            features=net.features,
        )
        history = state.history.frozen(self.memory)
        return TorchState(net=held, history=history, watch=state.watch.copy())

    def _climbed(
        self,
        state: TorchState,
        theta: Float[np.ndarray, " p"],
        steps: int,
        rate: float,
        rng: np.random.Generator,
        x: torch.Tensor | None = None,
        alpha: float = 0.0,
    ) -> Float[np.ndarray, " p"]:
        """Return θ + η ∇{ℓ_λ(F_t; θ) + α f(x; θ)}, J times; divided by n for a minibatch."""
        net, history, training = state.net, state.history, self.training
        n = max(history.count, 1)
        point, start = torch.from_numpy(theta.copy()), torch.from_numpy(net.start)
        is_mean = not (isinstance(training, FullBatch) and training.objective == "sum")
        at = np.arange(history.count)
        X = None
        for _ in range(steps):
            if isinstance(training, Minibatch) and history.count > training.size:
                at = rng.integers(history.count, size=training.size)
                at[-1] = min(history.newest, history.count - 1)
                X = None
            if X is None:  # the same in every step, where nothing is drawn
                X = self.network.inputs(net, rows_at(history.rows, at))
                X = X if x is None else torch.cat([X, x])
            f, pullback = torch.func.vjp(lambda th, X=X: self.network.f(net, th, X), point)
            missed = self._learned(state, at) - _each(self.likelihood.mean, _doubles(f)[: len(at)])
            weights = missed * (history.count / max(len(at), 1))  # a sample stands for all
            pulls = weights if x is None else np.append(weights, alpha)
            (gradient,) = pullback(torch.from_numpy(pulls.astype(self.network.dtype)))
            gradient = gradient - self.pull * (point - start)
            step = rate / n if is_mean else rate
            if isinstance(training, Minibatch):
                length = float(torch.linalg.vector_norm(gradient, dtype=torch.float64)) / n
                step *= min(1.0, training.clip / max(length, TINY))
            point = point + step * gradient
        return point.detach().numpy()

    def _log_likelihood(self, state: TorchState, theta: Float[np.ndarray, " p"]) -> float:
        """Return ℓ_λ(F_t; θ) = Σ_s (r_s f(x_s; θ) − b(f(x_s; θ))) − (mλ/2) ‖θ − θ₀‖²."""
        net, history = state.net, state.history
        X = self.network.inputs(net, rows_at(history.rows, slice(history.count)))
        with torch.no_grad():
            f = _doubles(self.network.f(net, torch.from_numpy(theta), X))
        distance = ((theta - net.start).astype(np.float64) ** 2).sum()
        explained = self._learned(state, slice(history.count)) * f - _each(self.likelihood.b, f)
        return float(explained.sum() - self.pull / 2 * distance)

    def _learned(self, state: TorchState, at: Any) -> Float[np.ndarray, " n"]:
        """Return some of the rewards, in the units in which they are learned."""
        centre, gain = units(state.watch) if self.standardises else RAW
        return (state.history.rewards[at] - centre) * gain

    def _rounded(self, seen: Observation) -> Observation:
        """Return an observation in the precision of the network."""
        rows = seen.context.rows
        rows = rows._replace(values=rows.values.astype(self.network.dtype))
        context = Contexts(rows=rows, features=seen.context.features)
        return Observation(context=context, reward=seen.reward)


def _each(function: Any, z: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return a compiled function from float to float of every number."""
    found = np.empty(len(z))
    expectations(np.asarray(z, np.float64), scalar(function), found)
    return found


def _doubles(f: torch.Tensor) -> Float[np.ndarray, " n"]:
    """Return a tensor as numbers in double precision."""
    return f.detach().numpy().astype(np.float64)
