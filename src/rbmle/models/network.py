"""The network f(x; θ): its shape, its start, and its growth by blocks."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rbmle.core.checks import Settings, whole_number
from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Rows
from rbmle.engine.layout import Net, Parameters
from rbmle.engine.network import predict


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(Settings):
    """A ReLU network of L layers with m units in each hidden one.

    `start="zero"`: biases and uniform weights in ±1/√(inputs), f = W_L h; units come in pairs with equal
    weights before them and opposite ones behind, so that f(x; θ₀) = 0 for every x. `start="standard"`: the
    same without pairs, as published code in this field does. `start="paired"`: the paper's,
    f = √m W_L h without biases, W_l of two equal diagonal blocks with entries N(0, 2/m), and
    W_L = (wᵀ, −wᵀ) with entries N(0, 1/m), so that f(x; θ₀) = 0 for every x whose second half
    equals its first.
    """

    width: int = 100  # m
    depth: int = 2  # L
    start: Literal["standard", "zero", "paired"] = "zero"
    dtype: Literal["float32", "float64"] = "float32"
    fan_in: int | None = None  # number of inputs by which the start of W_1 is scaled; None: all

    def __post_init__(self) -> None:
        whole_number("width", self.width)
        whole_number("depth", self.depth)
        if self.width < 1:
            raise SettingError(f"`width` must be at least 1, got {self.width}")
        if self.depth < 2:
            raise SettingError(
                f"`depth` must be at least 2, got {self.depth}; a depth of 2 is one hidden layer"
            )
        if self.start not in ("standard", "zero", "paired"):
            raise SettingError(
                f"`start` must be 'standard', 'zero' or 'paired', got {self.start!r}"
            )
        if self.dtype not in ("float32", "float64"):
            raise SettingError(f"`dtype` must be 'float32' or 'float64', got {self.dtype!r}")
        if self.start == "paired" and self.width % 2:
            raise SettingError(
                f"`width` must be even for a paired start, got {self.width}; use {self.width + 1}"
            )

    @property
    def m(self) -> float:
        """The m in mλ, 1/m and α/m: the width if f has the factor √m, else 1."""
        return float(self.width) if self.start == "paired" else 1.0

    def init(self, blocks: int, features: int, rng: np.random.Generator) -> Net:
        if self.start == "paired" and features % 2:
            raise SettingError(
                f"the number of features must be even for a paired start, got {features}; "
                "give each context twice, as (x, x)/√2, or use Network(start='standard')"
            )
        m, dtype = self.width, np.dtype(self.dtype)
        theta = Parameters(
            self._first(blocks, features, rng),
            np.zeros((self.depth - 2, m, m), dtype),
            np.zeros(m, dtype),
            np.zeros((self.depth - 1, m), dtype),
            np.zeros(1, dtype),
        )
        if self.start == "paired":
            half = m // 2
            for W in theta.hidden:
                block = rng.normal(scale=(2 / m) ** 0.5, size=(half, half))
                W[:half, :half] = W[half:, half:] = block
            w = rng.normal(scale=(1 / m) ** 0.5, size=half)
            theta.output[:] = np.concatenate([w, -w])
        else:
            theta.hidden[:] = _uniform(m, theta.hidden.shape, rng)
            theta.output[:] = _uniform(m, theta.output.shape, rng)
            theta.biases[0] = _uniform(self.fan_in or features, (m,), rng)
            theta.biases[1:] = _uniform(m, (self.depth - 2, m), rng)
            theta.shift[:] = _uniform(m, (1,), rng)
        if self.start == "zero":
            half = m // 2
            for part in (theta.hidden, theta.biases):
                part[..., half : 2 * half] = part[..., :half]
            theta.output[half:] = 0  # also of the unit that is left over if the width is odd
            theta.output[half : 2 * half] = -theta.output[:half]
            theta.shift[:] = 0
        start = Parameters(*(part.copy() for part in theta))
        ages, clock = np.zeros(len(theta.first)), np.zeros(1)
        biased = float(self.start != "paired")
        return Net(theta, start, ages, clock, features, self.m**0.5, biased)

    def grow(self, net: Net, blocks: int, rng: np.random.Generator) -> Net:
        """Return the network with more blocks, whose weights are at their start."""
        new = self._first(blocks - len(net.ages) // net.features, net.features, rng)
        theta = net.theta._replace(first=np.concatenate([net.theta.first, new]))
        start = net.start._replace(first=np.concatenate([net.start.first, new]))
        ages = np.concatenate([net.ages, np.full(len(new), net.clock[0])])
        return net._replace(theta=theta, start=start, ages=ages)

    def predict(self, net: Net, contexts: Contexts) -> np.ndarray:
        f = np.empty(len(contexts))
        predict(net, self.rows(contexts), f)
        return f

    def rows(self, contexts: Contexts) -> Rows:
        """Return the contexts in the precision of the network."""
        starts, lengths, blocks, indices, values = contexts.rows
        return Rows(starts, lengths, blocks, indices, values.astype(self.dtype, copy=False))

    def _first(self, blocks: int, features: int, rng: np.random.Generator) -> np.ndarray:
        """Return W_1 of some blocks at its start."""
        m = self.width
        shape = (blocks, features, m)
        if self.start == "paired":
            first = np.zeros(shape)
            half, d = m // 2, features // 2
            block = rng.normal(scale=(2 / m) ** 0.5, size=(blocks, d, half))
            first[:, :d, :half] = first[:, d:, half:] = block
        else:
            first = _uniform(self.fan_in or features, shape, rng)
        if self.start == "zero":
            half = m // 2
            first[..., half : 2 * half] = first[..., :half]
        return first.reshape(blocks * features, m).astype(self.dtype)


def _uniform(inputs: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1, 1, shape) / inputs**0.5
