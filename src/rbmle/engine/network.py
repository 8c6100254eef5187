"""The network f(x; θ), its gradient in factors, and one step along it.

Loops are plain and branch-free inside, so that the compiler turns them into vector code. A loop that sums does
not write: in a loop that does both, the order of the sum would depend on how far apart the arrays lie.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel, part
from rbmle.engine.layout import Factors, Net, Rows

# A row of W_1 that owes less shrinkage (relative) than this is used as it is.
TOLERANCE = 1e-3
UNTOUCHED = 1.0  # the age in a walk of a row that no step has touched; clocks are never above 0

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
        if owed < -TOLERANCE and net.ages[row] == UNTOUCHED:  # at its start, it owes nothing
            net.ages[row] = net.clock[1]
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
    clock = net.clock[0] + TOLERANCE
    first, start, biases = net.theta.first, net.start.first, net.theta.biases
    indices, values, ages = rows.indices, rows.values, net.ages
    for u in range(h.shape[1]):
        h[0, u] = biases[0, u]
    k, end = rows.starts[i], rows.starts[i] + rows.lengths[i]
    while k < end:
        a = base + indices[k]
        if k + 4 <= end:  # four rows in one pass, if none of them owes a pull
            b, c, d = base + indices[k + 1], base + indices[k + 2], base + indices[k + 3]
            if max(ages[a], ages[b], ages[c], ages[d]) <= clock:
                va, vb, vc, vd = values[k], values[k + 1], values[k + 2], values[k + 3]
                for u in range(h.shape[1]):
                    h[0, u] += (va * first[a, u] + vb * first[b, u]) + (
                        vc * first[c, u] + vd * first[d, u]
                    )
                k += 4
                continue
        v = values[k]
        if ages[a] <= clock:
            for u in range(h.shape[1]):
                h[0, u] += v * first[a, u]
        else:
            keep = first.dtype.type(math.exp(net.clock[0] - ages[a]))
            for u in range(h.shape[1]):
                h[0, u] += v * (start[a, u] + keep * (first[a, u] - start[a, u]))
        k += 1


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
    for u in range(width):
        h[last, u] = max(h[last, u], zero)
    f = net.theta.shift[0]
    for u in range(width):
        f += output[u] * h[last, u]
    return net.scale * f


@inlined
def descend(net: Net, square: float, h: Layers, delta: Layers) -> float:
    """Write δ_l = ∂f/∂(input of layer l) for h_1 … h_{L−1} as `climb` left them, and return ‖g‖².

    ‖g‖² = Σ_l ‖δ_l‖² (‖h_{l−1}‖² + 1) + scale² (‖h_{L−1}‖² + 1) with h_0 = x and ‖x‖² = square, where
    the ones are those of the biases, if there are any.
    """
    last, width = h.shape[0] - 1, h.shape[1]
    zero, scale = h.dtype.type(0), h.dtype.type(net.scale)
    hidden, output = net.theta.hidden, net.theta.output
    for u in range(width):
        delta[last, u] = scale * output[u] if h[last, u] > zero else zero
    hh, dd = zero, zero
    for u in range(width):
        dd += delta[last, u] * delta[last, u]
        hh += h[last, u] * h[last, u]
    total = net.scale * net.scale * (np.float64(hh) + net.biased)
    for layer in range(last - 1, -1, -1):
        above = np.float64(dd)
        hh, dd = zero, zero
        for v in range(width):
            d = zero
            for u in range(width):
                d += hidden[layer, v, u] * delta[layer + 1, u]
            d = d if h[layer, v] > zero else zero
            delta[layer, v] = d
            dd += d * d
            hh += h[layer, v] * h[layer, v]
        total += above * (np.float64(hh) + net.biased)
    return total + np.float64(dd) * (square + net.biased)


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


@inlined
def value(net: Net, rows: Rows, i: int, h: Layers) -> float:
    """Return f(x_i; θ), for kernels that need it in several places: each inlined copy takes time to compile."""
    enter(net, rows, i, h)
    return climb(net, h)


@part
def value_and_gradient(
    net: Net, rows: Rows, i: int, h: Layers, delta: Layers
) -> tuple[float, float]:
    """Return f(x_i; θ) and ‖g‖²; h and delta become the factors of g."""
    enter(net, rows, i, h)
    f = np.float64(climb(net, h))
    return f, descend(net, square(rows, i), h, delta)


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
        descend(net, 0.0, h, factors.deltas[i])


@kernel
def last_hidden(net: Net, rows: Rows, phi: Float[np.ndarray, "n width+1"]) -> None:
    """Write φ(x_i) = (h_{L−1}, 1) for every context; without the 1 where the network has no biases."""
    h = np.empty_like(net.theta.biases)
    last, width = h.shape[0] - 1, h.shape[1]
    for i in range(rows.blocks.shape[0]):
        enter(net, rows, i, h)
        climb(net, h)
        for u in range(width):
            phi[i, u] = h[last, u]
        phi[i, width] = net.biased


TINY = 1e-300
GRID = 2.0**16


@inlined
def on_grid(x: float) -> float:
    """Round x to 16 binary places: the sum of squares of such numbers does not depend on their order."""
    return math.floor(x * GRID + 0.5) / GRID


@kernel
def gradient_contexts(net: Net, rows: Rows, f: Float[np.ndarray, " n"], out: Rows) -> None:
    """Write f(x_i; θ) and z_i = √n (∇_x f/‖∇_x f‖, x/‖x‖) over the n features that x_i has, for every context.

    Feature k of x has the places k and features + k of z. `out` has the starts, lengths and blocks of the z_i.
    """
    first, start, clock = net.theta.first, net.start.first, net.clock[0]
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    for i in range(rows.blocks.shape[0]):
        enter(net, rows, i, h)
        f[i] = climb(net, h)
        descend(net, 0.0, h, delta)
        base, n = rows.blocks[i] * net.features, rows.lengths[i]
        slopes, norms = 0.0, 0.0
        for k in range(n):
            at, to = rows.starts[i] + k, out.starts[i] + k
            feature = rows.indices[at]
            row = base + feature
            keep = first.dtype.type(math.exp(clock - net.ages[row]))
            slope = first.dtype.type(0)
            for u in range(first.shape[1]):
                slope += delta[0, u] * (start[row, u] + keep * (first[row, u] - start[row, u]))
            out.indices[to], out.indices[to + n] = feature, net.features + feature
            out.values[to], out.values[to + n] = slope, rows.values[at]
            slopes += out.values[to] ** 2
            norms += out.values[to + n] ** 2
        slopes = math.sqrt(n / (slopes + TINY))
        norms = math.sqrt(n / (norms + TINY))
        for k in range(n):
            to = out.starts[i] + k
            out.values[to] = on_grid(slopes * out.values[to])
            out.values[to + n] = on_grid(norms * out.values[to + n])
