"""The network f(x; θ), its gradient in factors, and one step along it.

Loops are plain and branch-free inside, so that the compiler turns them into vector code.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Factors, Net, Rows

# A row of W_1 that owes less than this much (relative) shrinkage is taken as it is.
TOLERANCE = 1e-3

Units = Float[np.ndarray, " width"]
Layers = Float[np.ndarray, "depth-1 width"]


@inlined
def settle(net: Net, rows: Rows, i: int) -> None:
    """Bring the rows of W_1 that context i touches up to date with the ridge's pull."""
    base = rows.blocks[i] * net.features
    clock = net.clock[0]
    first, start = net.theta.first, net.start.first
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        owed = clock - net.ages[row]
        if owed < -TOLERANCE:
            keep = first.dtype.type(math.exp(owed))
            for u in range(first.shape[1]):
                first[row, u] = start[row, u] + keep * (first[row, u] - start[row, u])
            net.ages[row] = clock


@inlined
def enter(net: Net, rows: Rows, i: int, h: Layers) -> None:
    """Write W_1 x_i + b_1 to h[0]; rows that owe a pull are read as if they had been settled."""
    base = rows.blocks[i] * net.features
    clock = net.clock[0]
    first, start, biases = net.theta.first, net.start.first, net.theta.biases
    for u in range(h.shape[1]):
        h[0, u] = biases[0, u]
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        v = rows.values[k]
        owed = clock - net.ages[row]
        if owed < -TOLERANCE:
            keep = first.dtype.type(math.exp(owed))
            for u in range(h.shape[1]):
                h[0, u] += v * (start[row, u] + keep * (first[row, u] - start[row, u]))
        else:
            for u in range(h.shape[1]):
                h[0, u] += v * first[row, u]


@inlined
def climb(net: Net, h: Layers) -> float:
    """Return f from the input of the first layer in h[0]; h becomes h_1 … h_{L−1}."""
    last, width = h.shape[0] - 1, h.shape[1]
    zero = h.dtype.type(0)
    hidden, biases, output = net.theta.hidden, net.theta.biases, net.theta.output
    for layer in range(last):
        for u in range(width):
            h[layer, u] = max(h[layer, u], zero)
            h[layer + 1, u] = biases[layer + 1, u]
        for v in range(width):
            activation = h[layer, v]
            for u in range(width):
                h[layer + 1, u] += activation * hidden[layer, v, u]
    f = net.theta.shift[0]
    for u in range(width):
        h[last, u] = max(h[last, u], zero)
        f += output[u] * h[last, u]
    return net.scale * f


@inlined
def descend(net: Net, h: Layers, delta: Layers) -> None:
    """Write δ_l = ∂f/∂(input of layer l) for h_1 … h_{L−1} as `climb` left them."""
    last, width = h.shape[0] - 1, h.shape[1]
    zero, scale = h.dtype.type(0), h.dtype.type(net.scale)
    hidden, output = net.theta.hidden, net.theta.output
    for u in range(width):
        delta[last, u] = scale * output[u] if h[last, u] > zero else zero
    for layer in range(last - 1, -1, -1):
        for v in range(width):
            total = zero
            for u in range(width):
                total += hidden[layer, v, u] * delta[layer + 1, u]
            delta[layer, v] = total if h[layer, v] > zero else zero


@inlined
def norm_squared(net: Net, square: float, h: Layers, delta: Layers) -> float:
    """Return ‖g‖² = Σ_l ‖δ_l‖² (‖h_{l−1}‖² + 1) + scale² (‖h_{L−1}‖² + 1), with h_0 = x, ‖x‖² = square.

    The ones are those of the biases, if there are any.
    """
    total = 0.0
    below = square
    for layer in range(h.shape[0]):
        d = h.dtype.type(0)
        up = h.dtype.type(0)
        for u in range(h.shape[1]):
            d += delta[layer, u] * delta[layer, u]
            up += h[layer, u] * h[layer, u]
        total += d * (below + net.biased)
        below = up
    return total + net.scale * net.scale * (below + net.biased)


@inlined
def move(net: Net, rows: Rows, i: int, h: Layers, delta: Layers, amount: float) -> None:
    """θ ← θ + amount · g(x_i; θ), given the factors of the gradient."""
    first, hidden, output, biases, shift = net.theta
    step = h.dtype.type(amount)
    scaled = h.dtype.type(amount * net.scale)
    trained = h.dtype.type(amount * net.biased)
    last, width = h.shape[0] - 1, h.shape[1]
    shift[0] += scaled * net.biased
    for u in range(width):
        output[u] += scaled * h[last, u]
    for layer in range(last + 1):
        for u in range(width):
            biases[layer, u] += trained * delta[layer, u]
    for layer in range(last):
        for v in range(width):
            push = step * h[layer, v]
            for u in range(width):
                hidden[layer, v, u] += push * delta[layer + 1, u]
    base = rows.blocks[i] * net.features
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        push = step * rows.values[k]
        for u in range(width):
            first[row, u] += push * delta[0, u]


@inlined
def square(rows: Rows, i: int) -> float:
    """Return ‖x_i‖²."""
    total = 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        total += np.float64(rows.values[k]) * rows.values[k]
    return total


@kernel
def predict(net: Net, rows: Rows, f: Float[np.ndarray, " n"]) -> None:
    """Write f(x_i; θ) for every context."""
    h = np.empty_like(net.theta.biases)
    for i in range(rows.blocks.shape[0]):
        enter(net, rows, i, h)
        f[i] = climb(net, h)


@kernel
def differentiate(net: Net, factors: Factors, f: Float[np.ndarray, " n"]) -> None:
    """Write f(x_i; θ) and the factors of g(x_i; θ) for every context."""
    for i in range(factors.rows.blocks.shape[0]):
        h = factors.hiddens[i]
        enter(net, factors.rows, i, h)
        f[i] = climb(net, h)
        descend(net, h, factors.deltas[i])
