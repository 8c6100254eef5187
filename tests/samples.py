"""Small networks, contexts and histories for tests, in double precision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbmle import Bandit
from rbmle.core.encoding import disjoint, per_arm
from rbmle.core.trees import leaves
from rbmle.core.types import Contexts, Observation
from rbmle.engine.layout import Net, Parameters
from rbmle.models.network import Network
from rbmle.models.regression import Regression, RegressionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """A user's own: b(z) = eᶻ, cut at z = 20."""

    @staticmethod
    def b(z: float) -> float:
        return math.exp(min(z, 20.0))

    @staticmethod
    def mean(z: float) -> float:
        return math.exp(min(z, 20.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """A user's own: b(z) = eᶻ, not cut anywhere."""

    @staticmethod
    def b(z: float) -> float:
        return math.exp(z)

    @staticmethod
    def mean(z: float) -> float:
        return math.exp(z)


def bytes_of(bandit: Bandit) -> bytes:
    """Return all that a bandit has learned, to compare two bit by bit."""
    arrays, numbers = leaves(bandit.state)
    return b"".join(array.tobytes() for array in arrays.values()) + repr(numbers).encode()


def rng(seed: int = 0) -> np.random.Generator:
    """Return a generator for a test."""
    return np.random.default_rng(seed)


def double(width: int = 6, depth: int = 2, start: str = "standard") -> Network:
    """Return a small network in double precision."""
    return Network(width=width, depth=depth, start=start, dtype="float64")  # type: ignore[arg-type]  # either start


def context(x: Sequence[float] | np.ndarray, block: int = 0) -> Contexts:
    """Return the context of one arm."""
    return disjoint(x, np.array([block]), len(x))


def rows(X: np.ndarray) -> Contexts:
    """Return a context for each row, all in one block."""
    return per_arm(X, X.shape[1])


def net_of(network: Network, blocks: int, features: int, seed: int = 0) -> Net:
    """Return a network away from its start, so that no part of it is zero by chance."""
    net = network.init(blocks, features, rng(seed))
    for part in net.theta:
        part += 0.3 * rng(seed + 1).normal(size=part.shape)
    if network.start == "paired":
        net.theta.biases[:] = 0
        net.theta.shift[:] = 0
    return net


def flat(theta: Parameters) -> np.ndarray:
    """Return θ as one vector: output bias, W_L, biases, hidden layers, W_1."""
    first, hidden, output, biases, shift = theta
    return np.concatenate([part.ravel() for part in (shift, output, biases, hidden, first)])


def unflat(vector: np.ndarray, like: Parameters) -> Parameters:
    """Return the parameters that `flat` made a vector of."""
    first, hidden, output, biases, shift = like
    parts, at = [], 0
    for part in (shift, output, biases, hidden, first):
        parts.append(vector[at : at + part.size].reshape(part.shape).copy())
        at += part.size
    shift, output, biases, hidden, first = parts
    return Parameters(first, hidden, output, biases, shift)


def value(network: Network, net: Net, vector: np.ndarray, contexts: Contexts) -> np.ndarray:
    """Return f(x; θ) at θ = vector, of which no part owes a pull."""
    theta = unflat(vector, net.theta)
    settled = net._replace(theta=theta, ages=np.zeros_like(net.ages), clock=np.zeros(1))
    return network.predict(settled, contexts)


def slow_f(network: Network, theta: Parameters, x: np.ndarray, block: int) -> float:
    """Return f(x; θ) by the formula, on the dK-long context."""
    features, blocks = len(x), len(theta.first) // len(x)
    long = np.zeros(features * blocks)
    long[block * features : (block + 1) * features] = x
    h = np.maximum(long @ theta.first + theta.biases[0], 0)
    for W, b in zip(theta.hidden, theta.biases[1:], strict=True):
        h = np.maximum(h @ W + b, 0)
    scale = network.m**0.5
    return float(scale * (h @ theta.output + theta.shift[0]))


def slow_gradient(network: Network, net: Net, contexts: Contexts, step: float = 1e-6) -> np.ndarray:
    """Return g(x; θ) of each context by central differences."""
    theta = flat(net.theta)
    columns = []
    for i in range(len(theta)):
        e = np.zeros_like(theta)
        e[i] = step
        up, down = (
            value(network, net, theta + e, contexts),
            value(network, net, theta - e, contexts),
        )
        columns.append((up - down) / (2 * step))
    return np.array(columns).T


def learned(
    model: Regression, X: np.ndarray, rewards: Sequence[float], blocks: Sequence[int] | None = None
) -> RegressionState:
    """Return a model whose history has some observations, and whose network is at its start."""
    places = [0] * len(X) if blocks is None else list(blocks)
    state = model.init(max(places) + 1, X.shape[1], rng())
    for x, reward, block in zip(X, rewards, places, strict=True):
        seen = Observation(context=context(x, block), reward=reward)
        state.history.append(seen, model.memory, rng())
    return state
