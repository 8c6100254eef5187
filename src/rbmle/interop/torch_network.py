"""A network of PyTorch as f(x; θ): any nn.Module with one output, its gradients by torch.func."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices, Rows

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
    """All parameters of a module in one vector, those it started with, and the shape of its contexts."""

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

    Where arms share their features, x stands in the block of its arm, (0, …, x, …, 0), and there are as many
    inputs as arms times features. `make` is a function, or a frozen dataclass that can be called, whose
    `repr` then says all. The module is in its evaluation mode, and has no state but its parameters.
    """

    make: Callable[[int], nn.Module] = field(default_factory=Perceptron)
    m: float = 1.0  # as it stands in mλ, 1/m and α/m: the square of the output's scale
    dtype: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        """Raise SettingError for a module instead of a function that makes one, or an unknown dtype."""
        if isinstance(self.make, nn.Module) or not callable(self.make):
            raise SettingError(
                f"`make` must be a function from the number of inputs to an nn.Module, got {self.make!r}; "
                "write make=lambda inputs: nn.Linear(inputs, 1)"
            )
        if self.dtype not in ("float32", "float64"):
            raise SettingError(f"`dtype` must be 'float32' or 'float64', got {self.dtype!r}")

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> TorchNet:
        """Return the network at θ₀."""
        module = _made(self, blocks * features, int(rng.integers(LARGEST_SEED)))
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
        """Return the contexts, with the network that is asked about them."""
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
        """Return f(x; θ) for every context."""
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
        """Return a module of this thread, whose own parameters are not read."""
        return _template(self, inputs, threading.get_ident())


def put(
    shapes: list[np.ndarray], vector: np.ndarray, old_shapes: list[np.ndarray], old: np.ndarray
) -> None:
    """Write what a smaller network had for each parameter into the same places of a larger one."""
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
    return _made(network, inputs, 0)


def _made(network: TorchNetwork, inputs: int, seed: int) -> nn.Module:
    """Return a new module; PyTorch's own random numbers are as they were afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: Any = network.make(inputs)
    if not isinstance(module, nn.Module) or not list(module.parameters()):
        raise SettingError(
            f"`make` returned {module!r} for {inputs} inputs; expected an nn.Module with parameters"
        )
    return module.to(getattr(torch, network.dtype)).eval()
