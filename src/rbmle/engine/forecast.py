"""What the arm-specific ascent comes to, to first order: cheap enough to be asked of thousands of arms."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.ascent import at_least
from rbmle.engine.compiled import call_scalar, kernel, part
from rbmle.engine.hashing import below, mix
from rbmle.engine.layout import Fit, Net, Past, Rows
from rbmle.engine.network import differentiated
from rbmle.engine.replay import BEND

Layers = Float[np.ndarray, "depth-1 width"]


@part
def products(
    net: Net,
    x: Float[np.ndarray, " features"],
    h: Layers,
    delta: Layers,
    samples: Float[np.ndarray, "count features"],
    hiddens: Float[np.ndarray, "count depth-1 width"],
    deltas: Float[np.ndarray, "count depth-1 width"],
    out: Float[np.ndarray, " count"],
) -> None:
    """Write gᵀg_j for the gradients of some samples, which are given by their factors as g is."""
    zero = h.dtype.type(0)
    for j in range(out.shape[0]):
        below_layer = zero
        for k in range(x.shape[0]):
            below_layer += x[k] * samples[j, k]
        total = 0.0
        for layer in range(h.shape[0]):
            hh, dd = zero, zero
            for u in range(h.shape[1]):
                hh += h[layer, u] * hiddens[j, layer, u]
                dd += delta[layer, u] * deltas[j, layer, u]
            total += np.float64(dd) * (np.float64(below_layer) + net.biased)
            below_layer = hh
        out[j] = total + net.scale * net.scale * (np.float64(below_layer) + net.biased)


@kernel
def forecast(
    net: Net,
    past: Past,
    contexts: Rows,
    fit: Fit,
    bias: float,
    least: float,
    key: np.uint64,
    estimates: Float[np.ndarray, " arms"],
    gains: Float[np.ndarray, " arms"],
) -> None:
    """Write what `biased_ascent` would write for the arms of block 0, if gradients stayed as they are in θ̂.

    Then φ = θ̃_a − θ° stays in the span of g_a and the samples' g_j. A step along the bias adds s g_a to it,
    with s = ηβ/(1 + ηβ‖g_a‖²); a step on sample j takes c_j e_j g_j away, where e_j = φᵀg_j is by how much
    f(x_j) has risen, and c_j = η b″/(1 + η b″‖g_j‖²). So the products of gradients are all that is needed.
    """
    width = net.theta.first.shape[1]
    layers = net.theta.biases.shape[0]
    dtype = net.theta.first.dtype
    rows, steps, rate = past.rows, fit.steps, fit.rate
    seen, first_member = past.member_counts[0], past.member_starts[0]
    count = steps if seen > 0 else 0
    # Columns are the features that samples have; to the products of gradients no other contributes.
    columns = np.full(net.features, -1, np.int32)
    picks = np.empty(count, np.int64)
    used = 0
    for j in range(count):
        picks[j] = past.members[first_member + below(mix(mix(key, 0), j), seen)]
        start = rows.starts[picks[j]]
        for k in range(start, start + rows.lengths[picks[j]]):
            if columns[rows.indices[k]] < 0:
                columns[rows.indices[k]] = used
                used += 1
    samples = np.zeros((count, used), dtype)
    hiddens = np.empty((count, layers, width), dtype)
    deltas = np.empty((count, layers, width), dtype)
    grams, damping, bends = np.empty((count, count)), np.empty(count), np.empty(count)
    for j in range(count):
        i = picks[j]
        for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            samples[j, columns[rows.indices[k]]] = rows.values[k]
        f, norm = differentiated(net, rows, i, hiddens[j], deltas[j])
        bends[j] = (call_scalar(fit.mean, f + BEND) - call_scalar(fit.mean, f)) / BEND  # b″(f)
        damping[j] = rate * bends[j] / (1.0 + rate * bends[j] * norm)
    for j in range(count):
        products(net, samples[j], hiddens[j], deltas[j], samples, hiddens, deltas, grams[j])

    x = np.zeros(used, dtype)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    own, rises, moves = np.empty(count), np.empty(count), np.empty(count)
    for a in range(contexts.blocks.shape[0]):
        f_base, norm = differentiated(net, contexts, a, h, delta)
        first, end = contexts.starts[a], contexts.starts[a] + contexts.lengths[a]
        for k in range(first, end):
            if columns[contexts.indices[k]] >= 0:
                x[columns[contexts.indices[k]]] = contexts.values[k]
        products(net, x, h, delta, samples, hiddens, deltas, own)
        for k in range(first, end):
            if columns[contexts.indices[k]] >= 0:
                x[columns[contexts.indices[k]]] = 0
        push = rate * bias / (1.0 + rate * bias * norm)
        rises[:] = 0.0
        rise = steps * push * norm
        for j in range(count):
            move = damping[j] * rises[j]
            moves[j] = move
            rise -= move * own[j]
            for i in range(count):
                rises[i] += push * own[i] - move * grams[j, i]
        # ‖φ‖² = φᵀ(steps · s g_a − Σ moves_j g_j), and b(f̃) − b(f°) − b′(f°)(f̃ − f°) ≈ b″ e²/2.
        length, bent = steps * push * rise, 0.0
        for j in range(count):
            length -= moves[j] * rises[j]
            bent += bends[j] * rises[j] * rises[j] / 2
        estimates[a] = at_least(f_base, least, fit.mean) + rise
        gains[a] = -(seen / max(count, 1) * bent + fit.ridge / 2 * length)
