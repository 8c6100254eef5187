"""The exact Z⁻¹ of Z = λI + GᵀG/m without a p × p matrix, by the Gram matrix of the gradients.

With K = λI + GGᵀ/m = LLᵀ and k = G g/√m, Woodbury's identity gives
Z⁻¹g = (g − Gᵀ K⁻¹ k/√m)/λ and ‖g‖²_{Z⁻¹} = (‖g‖² − ‖L⁻¹k‖²)/λ. Inner products of gradients need
their factors only: ⟨g, g′⟩ = Σ_l ⟨δ_l, δ′_l⟩ (⟨h_{l−1}, h′_{l−1}⟩ + 1), the ones for biases.

L is packed by rows: row i has i + 1 entries from i(i + 1)/2 on.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Factors, Net

ARMS_AT_ONCE = 4  # columns that share one reading of a row of L


@inlined
def inner(
    net: Net,
    past: Factors,
    s: int,
    now: Factors,
    i: int,
    x: Float[np.ndarray, " features"],
) -> float:
    """Return ⟨g_s, g_i⟩ of two gradients in factors; x is context i of `now`, dense."""
    last, width = now.hiddens.shape[1] - 1, now.hiddens.shape[2]
    below = np.float64(0.0)
    if past.rows.blocks[s] == now.rows.blocks[i]:
        for k in range(past.rows.starts[s], past.rows.starts[s] + past.rows.lengths[s]):
            below += past.rows.values[k] * x[past.rows.indices[k]]
    total = 0.0
    for layer in range(last + 1):
        delta, up = 0.0, 0.0
        for u in range(width):
            delta += np.float64(past.deltas[s, layer, u]) * now.deltas[i, layer, u]
            up += np.float64(past.hiddens[s, layer, u]) * now.hiddens[i, layer, u]
        total += delta * (below + net.biased)
        below = up
    return total + net.scale * net.scale * (below + net.biased)


@inlined
def spread(now: Factors, i: int, x: Float[np.ndarray, " features"]) -> None:
    """Write context i as a dense vector."""
    x[:] = 0.0
    for k in range(now.rows.starts[i], now.rows.starts[i] + now.rows.lengths[i]):
        x[now.rows.indices[k]] += now.rows.values[k]


@kernel
def gram(
    net: Net,
    past: Factors,
    count: int,
    now: Factors,
    k: Float[np.ndarray, "n count"],
    squares: Float[np.ndarray, " n"],
) -> None:
    """Write ⟨g_s, g_i⟩ for the past gradients s < count, and ‖g_i‖²."""
    x = np.empty(net.features)
    for i in range(now.rows.blocks.shape[0]):
        spread(now, i, x)
        for s in range(count):
            k[i, s] = inner(net, past, s, now, i, x)
        squares[i] = inner(net, now, i, now, i, x)


@kernel
def forward_solve(
    L: Float[np.ndarray, " packed"], count: int, y: Float[np.ndarray, "n count"]
) -> None:
    """y_i ← L⁻¹ y_i for every i, reading each row of L once for several of them."""
    n = y.shape[0]
    for i in range(0, n, ARMS_AT_ONCE):
        a, b, c, d = i, min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        at = 0
        for row in range(count):
            sa, sb, sc, sd = 0.0, 0.0, 0.0, 0.0
            for s in range(row):
                entry = L[at + s]
                sa += entry * y[a, s]
                sb += entry * y[b, s]
                sc += entry * y[c, s]
                sd += entry * y[d, s]
            pivot = L[at + row]
            # At the end of the list b, c and d may be one arm: all are read before any is written.
            ya, yb = (y[a, row] - sa) / pivot, (y[b, row] - sb) / pivot
            yc, yd = (y[c, row] - sc) / pivot, (y[d, row] - sd) / pivot
            y[a, row] = ya
            y[b, row] = yb
            y[c, row] = yc
            y[d, row] = yd
            at += row + 1


@kernel
def backward_solve(
    L: Float[np.ndarray, " packed"], count: int, y: Float[np.ndarray, "n count"]
) -> None:
    """y_i ← L⁻ᵀ y_i for every i."""
    for i in range(y.shape[0]):
        at = count * (count + 1) // 2
        for row in range(count - 1, -1, -1):
            at -= row + 1
            y[i, row] /= L[at + row]
            c = y[i, row]
            for s in range(row):
                y[i, s] -= c * L[at + s]


@kernel
def gram_corrected(
    net: Net,
    past: Factors,
    count: int,
    coefficients: Float[np.ndarray, "n count"],
    now: Factors,
    amount: float,
    f: Float[np.ndarray, " n"],
) -> None:
    """Write f(x_i; θ + amount · (g_i − Σ_s c_{i,s} g_s)) for every context, by factors alone.

    A layer's correction applied to an input v is a sum of δ ⟨h, v⟩ over gradients.
    """
    last, width = now.hiddens.shape[1] - 1, now.hiddens.shape[2]
    x = np.empty(net.features)
    h = np.empty((last + 1, width))
    for i in range(now.rows.blocks.shape[0]):
        spread(now, i, x)
        base = now.rows.blocks[i] * net.features
        for u in range(width):
            h[0, u] = net.theta.biases[0, u]
        for k in range(now.rows.starts[i], now.rows.starts[i] + now.rows.lengths[i]):
            row = base + now.rows.indices[k]
            keep = math.exp(net.clock[0] - net.ages[row])
            for u in range(width):
                start = np.float64(net.start.first[row, u])
                weight = start + keep * (net.theta.first[row, u] - start)
                h[0, u] += now.rows.values[k] * weight
        for layer in range(last + 1):
            if layer > 0:
                for u in range(width):
                    h[layer, u] = net.theta.biases[layer, u]
                for v in range(width):
                    for u in range(width):
                        h[layer, u] += h[layer - 1, v] * net.theta.hidden[layer - 1, v, u]
            for s in range(-1, count):
                size = amount if s < 0 else -amount * coefficients[i, s]
                g, j = (now, i) if s < 0 else (past, s)
                along = 0.0
                if layer > 0:
                    for v in range(width):
                        along += g.hiddens[j, layer - 1, v] * h[layer - 1, v]
                elif g.rows.blocks[j] == now.rows.blocks[i]:
                    for k in range(g.rows.starts[j], g.rows.starts[j] + g.rows.lengths[j]):
                        along += g.rows.values[k] * x[g.rows.indices[k]]
                size *= along + net.biased
                for u in range(width):
                    h[layer, u] += size * g.deltas[j, layer, u]
            for u in range(width):
                h[layer, u] = max(h[layer, u], 0.0)
        total = np.float64(net.theta.shift[0])
        for u in range(width):
            total += h[last, u] * net.theta.output[u]
        for s in range(-1, count):
            size = amount if s < 0 else -amount * coefficients[i, s]
            g, j = (now, i) if s < 0 else (past, s)
            along = net.biased
            for u in range(width):
                along += g.hiddens[j, last, u] * h[last, u]
            total += size * net.scale * along
        f[i] = net.scale * total


@kernel
def flatten_gradient(net: Net, now: Factors, i: int, g: Float[np.ndarray, " p"]) -> None:
    """Write g_i as one vector: output bias, W_L, biases, W_{L−1} … W_2, then W_1 block by block."""
    rows, hiddens, deltas = now
    last, width = hiddens.shape[1] - 1, hiddens.shape[2]
    g[:] = 0.0
    g[0] = net.scale * net.biased
    at = 1
    for u in range(width):
        g[at + u] = net.scale * hiddens[i, last, u]
    at += width
    for layer in range(last + 1):
        for u in range(width):
            g[at + u] = net.biased * deltas[i, layer, u]
        at += width
    for layer in range(last):
        for v in range(width):
            for u in range(width):
                g[at + u] = hiddens[i, layer, v] * deltas[i, layer + 1, u]
            at += width
    at += rows.blocks[i] * net.features * width
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        for u in range(width):
            g[at + rows.indices[k] * width + u] += rows.values[k] * deltas[i, 0, u]
