"""The diagonal of Z = λI + Σ g gᵀ/m, kept in the shape of the parameters."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Factors, Net, Parameters
from rbmle.engine.network import enter


@inlined
def norm_one(net: Net, factors: Factors, i: int, Z: Parameters) -> float:
    """Return g_iᵀ Z⁻¹ g_i."""
    rows, hiddens, deltas = factors
    last, width = hiddens.shape[1] - 1, hiddens.shape[2]
    zero = hiddens.dtype.type(0)
    total = 0.0
    base = rows.blocks[i] * net.features
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        part = zero
        for u in range(width):
            part += deltas[i, 0, u] * deltas[i, 0, u] / Z.first[row, u]
        total += np.float64(part) * rows.values[k] * rows.values[k]
    for layer in range(last):
        for v in range(width):
            part = zero
            for u in range(width):
                part += deltas[i, layer + 1, u] * deltas[i, layer + 1, u] / Z.hidden[layer, v, u]
            total += np.float64(part) * hiddens[i, layer, v] * hiddens[i, layer, v]
    for layer in range(last + 1):
        part = zero
        for u in range(width):
            part += deltas[i, layer, u] * deltas[i, layer, u] / Z.biases[layer, u]
        total += np.float64(part) * net.biased
    part = zero
    for u in range(width):
        part += hiddens[i, last, u] * hiddens[i, last, u] / Z.output[u]
    return total + net.scale * net.scale * (np.float64(part) + net.biased / Z.shift[0])


@kernel
def diagonal_norms(
    net: Net, factors: Factors, Z: Parameters, norms: Float[np.ndarray, " n"]
) -> None:
    """Write ‖g_i‖²_{Z⁻¹} for every context."""
    for i in range(factors.rows.blocks.shape[0]):
        norms[i] = norm_one(net, factors, i, Z)


@kernel
def diagonal_add(net: Net, factors: Factors, i: int, weight: float, Z: Parameters) -> None:
    """Z ← Z + weight · diag(g_i g_iᵀ)."""
    rows, hiddens, deltas = factors
    last, width = hiddens.shape[1] - 1, hiddens.shape[2]
    kind = hiddens.dtype.type
    base = rows.blocks[i] * net.features
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        push = kind(weight * rows.values[k] * rows.values[k])
        for u in range(width):
            Z.first[row, u] += push * deltas[i, 0, u] * deltas[i, 0, u]
    for layer in range(last):
        for v in range(width):
            push = kind(weight * hiddens[i, layer, v] * hiddens[i, layer, v])
            for u in range(width):
                Z.hidden[layer, v, u] += push * deltas[i, layer + 1, u] * deltas[i, layer + 1, u]
    push = kind(weight * net.biased)
    for layer in range(last + 1):
        for u in range(width):
            Z.biases[layer, u] += push * deltas[i, layer, u] * deltas[i, layer, u]
    push = kind(weight * net.scale * net.scale)
    for u in range(width):
        Z.output[u] += push * hiddens[i, last, u] * hiddens[i, last, u]
    Z.shift[0] += push * net.biased


@kernel
def diagonal_corrected(
    net: Net, factors: Factors, Z: Parameters, amount: float, f: Float[np.ndarray, " n"]
) -> None:
    """Write f(x_i; θ + amount · Z⁻¹ g_i) for every context."""
    rows, hiddens, deltas = factors
    last, width = hiddens.shape[1] - 1, hiddens.shape[2]
    kind = hiddens.dtype.type
    trained, scaled = kind(amount * net.biased), kind(amount * net.scale)
    zero = kind(0)
    h = np.empty_like(net.theta.biases)
    for i in range(rows.blocks.shape[0]):
        enter(net, rows, i, h)
        base = rows.blocks[i] * net.features
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            row = base + rows.indices[k]
            push = kind(amount * rows.values[k] * rows.values[k])
            for u in range(width):
                h[0, u] += push * deltas[i, 0, u] / Z.first[row, u]
        for u in range(width):
            h[0, u] += trained * deltas[i, 0, u] / Z.biases[0, u]
        for layer in range(last):
            for u in range(width):
                h[layer, u] = max(h[layer, u], zero)
                h[layer + 1, u] = net.theta.biases[layer + 1, u]
                h[layer + 1, u] += trained * deltas[i, layer + 1, u] / Z.biases[layer + 1, u]
            for v in range(width):
                push = kind(amount * hiddens[i, layer, v])
                for u in range(width):
                    correction = push * deltas[i, layer + 1, u] / Z.hidden[layer, v, u]
                    weight = net.theta.hidden[layer, v, u] + correction
                    h[layer + 1, u] += h[layer, v] * weight
        total = np.float64(net.theta.shift[0]) + scaled * net.biased / Z.shift[0]
        for u in range(width):
            weight = net.theta.output[u] + scaled * hiddens[i, last, u] / Z.output[u]
            total += max(h[last, u], zero) * weight
        f[i] = net.scale * total
