"""Z = λI + GᵀG/m, the precision of a network's gradients: by its diagonal, or exactly.

For the diagonal, D = 1/diag(Z) is stored: it is read for every arm and written for one, and a division costs
as much as ten products.

The exact Z⁻¹ needs no p × p matrix. With K = λI + GGᵀ/m = LLᵀ and k = G g/√m, Woodbury's identity gives
Z⁻¹g = (g − Gᵀ K⁻¹ k/√m)/λ and ‖g‖²_{Z⁻¹} = (‖g‖² − ‖L⁻¹k‖²)/λ. Inner products of gradients need
their factors only: ⟨g, g′⟩ = Σ_l ⟨δ_l, δ′_l⟩ (⟨h_{l−1}, h′_{l−1}⟩ + 1), the ones for biases.
L is packed by rows: row i has i + 1 entries from i(i + 1)/2 on.
"""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Factors, Net, Parameters, Rows
from rbmle.engine.network import climb, descend, enter

# Contexts are multiplied with W_1 and then with D, so many at a time: either fits the first cache, both do not.
TILE = 8

Units = Float[np.ndarray, " width"]
Layers = Float[np.ndarray, "depth-1 width"]


@inlined
def spread(rows: Rows, i: int, D: Parameters, sums: Units) -> None:
    """Write Σ_k x_k² D_k over the rows D_k of W_1's part that context i of block 0 touches.

    δ_1 is the same for every k, so rows can be summed before units, four in a pass. Only networks of one block
    do so, which may have thousands of arms; elsewhere sums keep the order of published figures. The choice
    does not depend on the other contexts of a call.
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
    unity = kind(1)
    base = rows.blocks[i] * net.features
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        row = base + rows.indices[k]
        push = kind(weight * rows.values[k] * rows.values[k])
        for u in range(width):
            D.first[row, u] /= unity + push * delta[0, u] * delta[0, u] * D.first[row, u]
    for layer in range(last):
        for v in range(width):
            push = kind(weight * h[layer, v] * h[layer, v])
            for u in range(width):
                square = delta[layer + 1, u] * delta[layer + 1, u]
                D.hidden[layer, v, u] /= unity + push * square * D.hidden[layer, v, u]
    push = kind(weight * net.biased)
    for layer in range(last + 1):
        for u in range(width):
            D.biases[layer, u] /= (
                unity + push * delta[layer, u] * delta[layer, u] * D.biases[layer, u]
            )
    push = kind(weight * net.scale * net.scale)
    for u in range(width):
        D.output[u] /= unity + push * h[last, u] * h[last, u] * D.output[u]
    D.shift[0] /= unity + push * kind(net.biased) * D.shift[0]


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
def write_dense(now: Factors, i: int, x: Float[np.ndarray, " features"]) -> None:
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
        write_dense(now, i, x)
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
        write_dense(now, i, x)
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
