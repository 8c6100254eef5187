"""D = 1/diag(Z) of Z = λI + Σ g gᵀ/m, in the shape of the parameters.

The inverse is kept because it is read for every arm and written for one: dividing costs ten products.
"""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Net, Parameters, Rows
from rbmle.engine.network import climb, descend, enter

# Contexts that go through W_1 before they go through D: each of the two fits the first cache, both do not.
TILE = 8

Units = Float[np.ndarray, " width"]
Layers = Float[np.ndarray, "depth-1 width"]


@inlined
def spread(rows: Rows, i: int, D: Parameters, sums: Units) -> None:
    """Write Σ_k x_k² D_k over the rows D_k of W_1's part that context i of block 0 touches.

    δ_1 is the same for every k, so rows can be summed before units, four of them in a pass. Only networks
    of one block do so, whose arms come in thousands; elsewhere sums keep the order that published figures
    were made with. Which of the two it is never depends on the other contexts of a call.
    """
    indices, values, first = rows.indices, rows.values, D.first
    width = sums.shape[0]
    for u in range(width):
        sums[u] = 0
    k, end = rows.starts[i], rows.starts[i] + rows.lengths[i]
    while k + 4 <= end:
        a, b, c, d = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
        va, vb, vc, vd = values[k], values[k + 1], values[k + 2], values[k + 3]
        va, vb, vc, vd = va * va, vb * vb, vc * vc, vd * vd
        for u in range(width):
            sums[u] += (va * first[a, u] + vb * first[b, u]) + (vc * first[c, u] + vd * first[d, u])
        k += 4
    while k < end:
        a, va = indices[k], values[k] * values[k]
        for u in range(width):
            sums[u] += va * first[a, u]
        k += 1


@inlined
def weighted_norm(
    net: Net, rows: Rows, i: int, h: Layers, delta: Layers, D: Parameters, sums: Units
) -> float:
    """Return Σ g_i² D."""
    last, width = h.shape[0] - 1, h.shape[1]
    zero = h.dtype.type(0)
    total = 0.0
    base = rows.blocks[i] * net.features
    if D.first.shape[0] == net.features:  # one block
        spread(rows, i, D, sums)
        part = zero
        for u in range(width):
            part += delta[0, u] * delta[0, u] * sums[u]
        total += np.float64(part)
    else:
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            row = base + rows.indices[k]
            part = zero
            for u in range(width):
                part += delta[0, u] * delta[0, u] * D.first[row, u]
            total += np.float64(part) * rows.values[k] * rows.values[k]
    for layer in range(last):
        for v in range(width):
            part = zero
            for u in range(width):
                part += delta[layer + 1, u] * delta[layer + 1, u] * D.hidden[layer, v, u]
            total += np.float64(part) * h[layer, v] * h[layer, v]
    for layer in range(last + 1):
        part = zero
        for u in range(width):
            part += delta[layer, u] * delta[layer, u] * D.biases[layer, u]
        total += np.float64(part) * net.biased
    part = zero
    for u in range(width):
        part += h[last, u] * h[last, u] * D.output[u]
    return total + net.scale * net.scale * (np.float64(part) + net.biased * D.shift[0])


@kernel
def diagonal_estimates(
    net: Net,
    rows: Rows,
    D: Parameters,
    f: Float[np.ndarray, " n"],
    norms: Float[np.ndarray, " n"],
) -> None:
    """Write f(x_i; θ) and ‖g_i‖²_{Z⁻¹} for every context."""
    layers, width = net.theta.biases.shape
    hiddens = np.empty((TILE, layers, width), net.theta.biases.dtype)
    deltas = np.empty_like(hiddens)
    sums = np.empty_like(net.theta.output)
    n = rows.blocks.shape[0]
    for begin in range(0, n, TILE):
        for t in range(min(TILE, n - begin)):
            enter(net, rows, begin + t, hiddens[t])
            f[begin + t] = climb(net, hiddens[t])
            descend(net, 0.0, hiddens[t], deltas[t])
        for t in range(min(TILE, n - begin)):
            norms[begin + t] = weighted_norm(net, rows, begin + t, hiddens[t], deltas[t], D, sums)


@inlined
def add_gradient(
    net: Net, rows: Rows, i: int, weight: float, h: Layers, delta: Layers, D: Parameters
) -> None:
    """Z ← Z + weight · diag(g_i g_iᵀ), that is D ← D/(1 + weight · g_i² D)."""
    enter(net, rows, i, h)
    climb(net, h)
    descend(net, 0.0, h, delta)
    last, width = h.shape[0] - 1, h.shape[1]
    kind = h.dtype.type
    one = kind(1)
    base = rows.blocks[i] * net.features
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        push = kind(weight * rows.values[k] * rows.values[k])
        for u in range(width):
            D.first[row, u] /= one + push * delta[0, u] * delta[0, u] * D.first[row, u]
    for layer in range(last):
        for v in range(width):
            push = kind(weight * h[layer, v] * h[layer, v])
            for u in range(width):
                square = delta[layer + 1, u] * delta[layer + 1, u]
                D.hidden[layer, v, u] /= one + push * square * D.hidden[layer, v, u]
    push = kind(weight * net.biased)
    for layer in range(last + 1):
        for u in range(width):
            D.biases[layer, u] /= (
                one + push * delta[layer, u] * delta[layer, u] * D.biases[layer, u]
            )
    push = kind(weight * net.scale * net.scale)
    for u in range(width):
        D.output[u] /= one + push * h[last, u] * h[last, u] * D.output[u]
    D.shift[0] /= one + push * kind(net.biased) * D.shift[0]


@kernel
def diagonal_add(net: Net, rows: Rows, weight: float, D: Parameters) -> None:
    """Add the gradient of a single context to Z."""
    h = np.empty_like(net.theta.biases)
    add_gradient(net, rows, 0, weight, h, np.empty_like(h), D)


@kernel
def diagonal_corrected(
    net: Net, rows: Rows, D: Parameters, amount: float, f: Float[np.ndarray, " n"]
) -> None:
    """Write f(x_i; θ + amount · D g_i) for every context."""
    layers, width = net.theta.biases.shape
    hiddens = np.empty((TILE, layers, width), net.theta.biases.dtype)
    deltas = np.empty_like(hiddens)
    corrected = np.empty_like(hiddens)  # h at the corrected parameters
    sums = np.empty_like(net.theta.output)
    last = layers - 1
    kind = hiddens.dtype.type
    trained, scaled = kind(amount * net.biased), kind(amount * net.scale)
    zero = kind(0)
    n = rows.blocks.shape[0]
    for begin in range(0, n, TILE):
        for t in range(min(TILE, n - begin)):
            h = hiddens[t]
            enter(net, rows, begin + t, h)
            for u in range(width):
                corrected[t, 0, u] = h[0, u]
            climb(net, h)
            descend(net, 0.0, h, deltas[t])
        for t in range(min(TILE, n - begin)):
            i = begin + t
            h, delta, moved = hiddens[t], deltas[t], corrected[t]
            if D.first.shape[0] == net.features:  # one block
                spread(rows, i, D, sums)
                push = kind(amount)
                for u in range(width):
                    moved[0, u] += push * delta[0, u] * sums[u]
            else:
                base = rows.blocks[i] * net.features
                for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
                    row = base + rows.indices[k]
                    push = kind(amount * rows.values[k] * rows.values[k])
                    for u in range(width):
                        moved[0, u] += push * delta[0, u] * D.first[row, u]
            for u in range(width):
                moved[0, u] += trained * delta[0, u] * D.biases[0, u]
            for layer in range(last):
                for u in range(width):
                    moved[layer, u] = max(moved[layer, u], zero)
                    correction = trained * delta[layer + 1, u] * D.biases[layer + 1, u]
                    moved[layer + 1, u] = net.theta.biases[layer + 1, u] + correction
                for v in range(width):
                    push = kind(amount * h[layer, v])
                    for u in range(width):
                        correction = push * delta[layer + 1, u] * D.hidden[layer, v, u]
                        weight = net.theta.hidden[layer, v, u] + correction
                        moved[layer + 1, u] += moved[layer, v] * weight
            total = np.float64(net.theta.shift[0] + scaled * net.biased * D.shift[0])
            part = zero
            for u in range(width):
                weight = net.theta.output[u] + scaled * h[last, u] * D.output[u]
                part += max(moved[last, u], zero) * weight
            f[i] = net.scale * (total + part)
