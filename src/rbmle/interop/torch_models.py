"""Networks of PyTorch as models of policies: parameters, training and precision."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from rbmle.core.checks import check_positive
from rbmle.core.errors import SettingError
from rbmle.core.types import Batch, Contexts, Indices, Observation, Rows, rows_at
from rbmle.engine.compiled import scalar
from rbmle.engine.drift import Watch, notice
from rbmle.engine.exponential_family import expectations
from rbmle.likelihoods import Gaussian, Likelihood, rewards_of
from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.drift import RAW, check_alarm, complete, count_observed, fresh_watch, units
from rbmle.models.history import History, Memory, usual_memory
from rbmle.models.regression import FullBatch

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Perceptron:
    """Makes a ReLU network of L layers with m units in each hidden one, as PyTorch starts it."""

    width: int = 100  # m
    depth: int = 2  # L

    def __call__(self, inputs: int) -> nn.Module:
        """Return the network."""
        layers: list[nn.Module] = []
        for _ in range(self.depth - 1):
            layers += [nn.Linear(inputs, self.width), nn.ReLU()]
            inputs = self.width
        return nn.Sequential(*layers, nn.Linear(inputs, 1))


@dataclass(slots=True, kw_only=True)
class TorchNet:
    """The parameters of a module in one vector, their start, and the shape of its contexts."""

    theta: Float[np.ndarray, " p"]
    start: Float[np.ndarray, " p"]  # θ₀
    shapes: list[Int[np.ndarray, " dimensions"]]  # of the module's parameters, in their order
    blocks: int
    features: int  # of a block


class TorchRows(NamedTuple):
    """Sparse contexts, and the network that is asked about them."""

    network: "TorchNetwork"
    rows: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchNetwork:
    """f(x; θ) of the module that `make(inputs)` returns, for a batch of shape (n, inputs).

    If arms share their features, x is in the block of its arm, (0, …, x, …, 0), and the number of inputs is
    arms times features. `make` is a function, or a callable frozen dataclass, whose `repr` then has every
    setting. The module is in its evaluation mode, and has no state but its parameters.
    """

    make: Callable[[int], nn.Module] = field(default_factory=Perceptron)
    m: float = 1.0  # as it stands in mλ, 1/m and α/m: the square of the output's scale
    dtype: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        if isinstance(self.make, nn.Module) or not callable(self.make):
            raise SettingError(
                f"`make` must be a function from the number of inputs to an nn.Module, got {self.make!r}; "
                "write make=lambda inputs: nn.Linear(inputs, 1)"
            )
        if self.dtype not in ("float32", "float64"):
            raise SettingError(f"`dtype` must be 'float32' or 'float64', got {self.dtype!r}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TorchNet:
        module = _make(self, blocks * features, int(rng.integers(LARGEST_SEED)))
        parts = [part.detach().numpy() for part in module.parameters()]
        theta = np.concatenate([part.ravel() for part in parts])
        shapes = [np.array(part.shape, np.int64) for part in parts]
        return TorchNet(
            theta=theta, start=theta.copy(), shapes=shapes, blocks=blocks, features=features
        )

    def grow(self, net: TorchNet, blocks: int, rng: np.random.Generator) -> TorchNet:
        """Return the network with more inputs; new parameters are at their start."""
        grown = self.init(blocks, net.features, rng)
        put(grown.shapes, grown.theta, net.shapes, net.theta)
        put(grown.shapes, grown.start, net.shapes, net.start)
        return grown

    def rows(self, contexts: Contexts) -> TorchRows:
        return TorchRows(self, contexts.rows)

    def inputs(self, net: TorchNet, rows: Rows) -> torch.Tensor:
        """Return each context as a row of all inputs."""
        starts, lengths, blocks, indices, values = rows
        X = np.zeros((len(blocks), net.blocks * net.features), self.dtype)
        line = np.repeat(np.arange(len(blocks)), lengths)
        begun = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        entries = begun + np.arange(len(line))
        X[line, np.repeat(blocks * net.features, lengths) + indices[entries]] = values[entries]
        return torch.from_numpy(X)

    def f(self, net: TorchNet, theta: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
        """Return f(x; θ) of every row, as a function that torch.func differentiates."""
        module = self._module(net.blocks * net.features)
        parts, at = {}, 0
        for name, part in module.named_parameters():
            parts[name] = theta[at : at + part.numel()].reshape(part.shape)
            at += part.numel()
        f = torch.func.functional_call(module, parts, (X,))
        if f.shape not in ((len(X),), (len(X), 1)):
            raise SettingError(
                f"the module returned the shape {tuple(f.shape)} for {len(X)} contexts; expected one number "
                "for each, as of a last layer nn.Linear(…, 1)"
            )
        return f.reshape(-1)

    def predict(self, net: TorchNet, contexts: Contexts) -> Indices:
        with torch.no_grad():
            f = self.f(net, torch.from_numpy(net.theta), self.inputs(net, contexts.rows))
        return f.numpy().astype(np.float64)

    def gradients(self, net: TorchNet, rows: Rows) -> tuple[Indices, Float[np.ndarray, "n p"]]:
        """Return f(x_i; θ) and g(x_i; θ) for every context."""

        def f_of_one(theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return self.f(net, theta, x[None])[0]

        theta, X = torch.from_numpy(net.theta), self.inputs(net, rows)
        self._module(net.blocks * net.features)  # nothing random is allowed inside vmap
        both = torch.func.grad_and_value(f_of_one)
        g, f = torch.func.vmap(both, in_dims=(None, 0))(theta, X)
        return f.numpy().astype(np.float64), g.numpy()

    def _module(self, inputs: int) -> nn.Module:
        return _template(self, inputs, threading.get_ident())


def put(
    shapes: list[np.ndarray], vector: np.ndarray, old_shapes: list[np.ndarray], old: np.ndarray
) -> None:
    """Copy the parameters of a smaller network to the same places of a larger one."""
    parts = zip(_parts(shapes, vector), _parts(old_shapes, old), strict=True)
    for part, smaller in parts:
        part[tuple(slice(n) for n in smaller.shape)] = smaller


def _parts(shapes: list[np.ndarray], vector: np.ndarray) -> list[np.ndarray]:
    """Return views of a vector, one in the shape of each parameter."""
    ends = np.cumsum([shape.prod() for shape in shapes])
    cut = np.split(vector, ends[:-1])
    return [part.reshape(shape) for part, shape in zip(cut, shapes, strict=True)]


@lru_cache(maxsize=64)
def _template(network: TorchNetwork, inputs: int, thread: int) -> nn.Module:
    """Return a module for one thread: torch.func puts other parameters in for the time of a call."""
    return _make(network, inputs, 0)


def _make(network: TorchNetwork, inputs: int, seed: int) -> nn.Module:
    """Return a new module; the state of PyTorch's random numbers does not change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: Any = network.make(inputs)
    if not isinstance(module, nn.Module) or not list(module.parameters()):
        raise SettingError(
            f"`make` returned {module!r} for {inputs} inputs; expected an nn.Module with parameters"
        )
    return module.to(getattr(torch, network.dtype)).eval()


TINY = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """J steps a round on ℓ_λ/n, each on some observations drawn from the history, the newest among them.

    Gradients longer than `clip` are shortened to it, so that large features do no harm.
    """

    steps: int = 20  # J
    rate: float = 0.1  # η
    size: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
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
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
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
    alarm: float = 40.0  # as in `Regression`
    is_standardised: bool = True  # as in `Regression`

    def __post_init__(self) -> None:
        check_alarm(self.alarm)
        if not isinstance(self.training, Minibatch | FullBatch):
            raise SettingError(
                f"`training` must be Minibatch(…) or FullBatch(…), got {self.training!r}; others are for "
                "networks of rbmle"
            )
        check_positive("ridge", self.ridge)

    @property
    def pull(self) -> float:
        return self.network.m * self.ridge  # mλ

    @property
    def rewards(self) -> tuple[float, float]:
        return rewards_of(self.likelihood)

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TorchState:
        history = History.empty(blocks, self.network.dtype)
        watch = fresh_watch(self.standardises)
        net = self.network.init(blocks, features, rng)
        return TorchState(net=net, history=history, watch=watch)

    @property
    def standardises(self) -> bool:
        return self.is_standardised and isinstance(self.likelihood, Gaussian)

    def predict(self, state: TorchState, contexts: Contexts) -> Indices:
        return self.in_rewards(state.watch, self.scores(state, contexts))

    def scores(self, state: TorchState, contexts: Contexts) -> Indices:
        return self.network.predict(state.net, contexts)

    def in_rewards(self, watch: Watch, values: Indices) -> Indices:
        """Convert values from the units in which rewards are learned to those in which they come."""
        centre, gain = units(watch) if self.standardises else RAW
        return centre + values / gain

    def expected(self, state: TorchState, contexts: Contexts) -> Indices:
        """Return the expected reward b′(f(x; θ̂)) of every context, in the units of learning."""
        return _each(self.likelihood.mean, self.scores(state, contexts))

    def update_all(self, state: TorchState, batch: Batch) -> list[int]:
        """Do as `Regression.update_all` does."""
        restarts = []
        for i in range(len(batch)):
            seen, rng = batch.observation(i), batch.rng(i)
            (hope,) = self.in_rewards(state.watch, self.expected(state, seen.context))
            if notice(state.watch, seen.reward, float(hope), float(self.alarm)):
                restarts.append(i + 1)
                batch.restarted(i, count_observed(state.watch))
                self.restart(state)
                continue
            state.history.append(self._round(seen), self.memory, rng)
            if batch.is_fitted[i]:
                net, training = state.net, self.training
                is_cold = isinstance(training, FullBatch) and not training.warm
                theta = net.start if is_cold else net.theta
                net.theta[:] = self._climb(state, theta, training.steps, training.rate, rng)
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
            moved = self._climb(state, theta, steps, rate, rng, x, alpha)
            with torch.no_grad():
                estimates[arm] = float(self.network.f(net, torch.from_numpy(moved), x)[0])
            gains[arm] = self._log_likelihood(state, moved) - base
        return estimates, gains

    def restart(self, state: TorchState) -> None:
        """Return to the state before any data, with the same θ₀."""
        state.net.theta[:] = state.net.start
        state.history = History.empty(state.net.blocks, self.network.dtype)
        state.watch = fresh_watch(self.standardises)

    def grow(self, state: TorchState, blocks: int, rng: np.random.Generator) -> None:
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

    frozen_with_history = frozen

    def _climb(
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
            missed = self._rewards_of(state, at) - _each(
                self.likelihood.mean, _doubles(f)[: len(at)]
            )
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
        explained = self._rewards_of(state, slice(history.count)) * f - _each(self.likelihood.b, f)
        return float(explained.sum() - self.pull / 2 * distance)

    def _rewards_of(self, state: TorchState, at: Any) -> Float[np.ndarray, " n"]:
        """Return some of the rewards, in the units in which they are learned."""
        centre, gain = units(state.watch) if self.standardises else RAW
        return (state.history.rewards[at] - centre) * gain

    def _round(self, seen: Observation) -> Observation:
        """Return an observation in the precision of the network."""
        rows = seen.context.rows
        rows = rows._replace(values=rows.values.astype(self.network.dtype))
        context = Contexts(rows=rows, features=seen.context.features)
        return Observation(context=context, reward=seen.reward)


def _each(function: Any, z: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return a compiled function from float to float of every number."""
    values = np.empty(len(z))
    expectations(np.asarray(z, np.float64), scalar(function), values)
    return values


def _doubles(f: torch.Tensor) -> Float[np.ndarray, " n"]:
    return f.detach().numpy().astype(np.float64)


@dataclass(slots=True, kw_only=True)
class TorchDiagonalState:
    """diag(Z), and the shapes of the parameters that it is for."""

    Z: Float[np.ndarray, " p"]
    shapes: list[Int[np.ndarray, " dimensions"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDiagonal:
    """The inverse of diag(Z) instead of Z⁻¹, as `Diagonal` is for networks of rbmle."""

    def init(self, net: TorchNet, ridge: float) -> TorchDiagonalState:
        return TorchDiagonalState(Z=np.full_like(net.theta, ridge), shapes=list(net.shapes))

    def estimates(
        self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, m: float
    ) -> tuple[Indices, Indices]:
        """Return f(x_i; θ) and Σ g_i²/diag(Z) for every context."""
        f, g = rows.network.gradients(net, rows.rows)
        return f, (g * g / state.Z).sum(axis=1, dtype=np.float64)

    def corrected(
        self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, amount: float, m: float
    ) -> Indices:
        """Return f(x_i; θ + amount · g_i/diag(Z)) for every context."""
        network = rows.network
        _, g = network.gradients(net, rows.rows)
        moved = torch.from_numpy((net.theta + amount * g / state.Z).astype(network.dtype))
        X = network.inputs(net, rows.rows)
        with torch.no_grad():
            outputs = [network.f(net, moved[i], X[i : i + 1])[0] for i in range(len(X))]
        return np.array(outputs, np.float64)

    def add(self, state: TorchDiagonalState, net: TorchNet, rows: TorchRows, m: float) -> None:
        """diag(Z) ← diag(Z) + g²/m."""
        _, (g,) = rows.network.gradients(net, rows.rows)
        state.Z += g * g / m

    def grow(self, state: TorchDiagonalState, net: TorchNet, ridge: float) -> None:
        """Give new parameters the precision λ."""
        Z = np.full_like(net.theta, ridge)
        put(net.shapes, Z, state.shapes, state.Z)
        state.Z, state.shapes = Z, list(net.shapes)

    def frozen(self, state: TorchDiagonalState) -> TorchDiagonalState:
        return TorchDiagonalState(Z=state.Z.copy(), shapes=state.shapes)
