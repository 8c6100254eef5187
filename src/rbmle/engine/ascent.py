"""The arm-specific ascent of NeuralRBMLE-GA: from the shared base, in the span of its contexts.

The span of a few contexts is all of W_1 that steps on these contexts can see or move.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import call_scalar, inlined, kernel, part
from rbmle.engine.exponential_family import natural
from rbmle.engine.hashing import below, mix
from rbmle.engine.layout import Fit, Net, Parameters, Past, Rows, Samples
from rbmle.engine.network import (
    TOLERANCE,
    climb,
    descend,
    enter,
    move,
    square,
    value,
    value_and_gradient,
)
from rbmle.engine.replay import BEND, ascend, pull

FEW_FEATURES = 28  # of a block: steps over all of them are as fast as steps over a span
NEGLIGIBLE = 1e-6  # of ‖x‖²: with less than that outside a span, a context is taken to be inside


@part
def local_net(net: Net, most: int) -> Net:
    """Return a network with upper layers of its own, and room for `most` directions."""
    theta, start, shape = net.theta, net.start, (most, net.theta.first.shape[1])
    hidden, output, biases = theta.hidden.copy(), theta.output.copy(), theta.biases.copy()
    first, first_start = np.empty(shape, theta.first.dtype), np.empty(shape, theta.first.dtype)
    return Net(
        Parameters(first, hidden, output, biases, theta.shift.copy()),
        Parameters(first_start, start.hidden, start.output, start.biases, start.shift),
        np.zeros(most),
        np.zeros(1),
        np.int64(0),
        net.scale,
        net.biased,
    )


class Span(NamedTuple):
    """Contexts by their coordinates along orthonormal directions q, and a network whose W_1 is W_1 q."""

    net: Net
    rows: Rows
    coordinates: Float[np.ndarray, "contexts most"]  # those of `rows`, in double precision
    sources: Int[np.ndarray, " most"]  # of each direction: the past context that it is of,
    places: Int[np.ndarray, " most"]  # and where that is among `rows`
    scattered: Float[np.ndarray, " features"]  # zeros, for products of contexts


@part
def empty_span(net: Net, past_rows: Rows, count: int) -> Span:
    """Return a span with room for some contexts, and for as many directions as these have."""
    most = net.features if net.features <= FEW_FEATURES else count
    rows = Rows(
        np.empty(count + 1, past_rows.starts.dtype),
        np.zeros(count, past_rows.lengths.dtype),
        np.zeros(count, past_rows.blocks.dtype),
        np.empty(count * most, past_rows.indices.dtype),
        np.empty(count * most, past_rows.values.dtype),
    )
    for j in range(count + 1):
        rows.starts[j] = j * most
    sources, places = np.empty(most, np.int64), np.empty(most, np.int64)
    scattered = np.zeros(net.features, past_rows.values.dtype)
    return Span(local_net(net, most), rows, np.empty((count, most)), sources, places, scattered)


@inlined
def pull_row(net: Net, from_net: Net, row: int, keep: float) -> None:
    """Write θ₀ + keep · (θ − θ₀) to a row of W_1, with θ of another network or of this one."""
    for u in range(net.theta.first.shape[1]):
        start = from_net.start.first[row, u]
        net.theta.first[row, u] = start + keep * (from_net.theta.first[row, u] - start)


@part
def begin_block(net: Net, block: int, span: Span) -> int:
    """Return how many directions a span has before any context: none, or all features where these are few."""
    if net.features > FEW_FEATURES:
        return 0
    theta, start = span.net.theta.first, span.net.start.first
    for feature in range(net.features):
        row = block * net.features + feature
        owed = net.clock[0] - net.ages[row]
        keep = theta.dtype.type(math.exp(owed) if owed < 0.0 else 1.0)
        for u in range(theta.shape[1]):
            start[feature, u] = net.start.first[row, u]
        for u in range(theta.shape[1]):
            theta[feature, u] = net.theta.first[row, u]
        if keep < 1:
            pull_row(span.net, span.net, feature, keep)
    return net.features


@part
def include(
    net: Net,
    rows: Rows,
    chosen: Int[np.ndarray, " chosen"],
    past_rows: Rows,
    is_pulled: bool,
    span: Span,
    used: int,
    place: int,
) -> int:
    """Write contexts as those of a span from `place` on, and return how many directions are used then.

    `used` are so before; and `is_pulled` says whether the ridge will move W_1.
    """
    for k in range(chosen.shape[0]):
        used = include_one(net, rows, chosen[k], past_rows, is_pulled, span, used, place + k)
    return used


@inlined
def include_one(
    net: Net, rows: Rows, i: int, past_rows: Rows, is_pulled: bool, span: Span, used: int, j: int
) -> int:
    """Write context i as context j of a span, and return how many directions are used then.

    Its coordinates are c_k = x_iᵀq_k. What of x_i lies outside of all q_k is one more direction,
    q = (x_i − Σ c_k q_k)/c. No q is written down: c_k comes from the product with the context that q_k is of.
    """
    starts, lengths, _, indices, values = span.rows
    first, end, at = rows.starts[i], rows.starts[i] + rows.lengths[i], starts[j]
    if net.features <= FEW_FEATURES:  # these are the directions
        for e in range(first, end):
            indices[at + e - first] = rows.indices[e]
            values[at + e - first] = rows.values[e]
        lengths[j] = rows.lengths[i]
        return used
    scattered = span.scattered
    for e in range(first, end):
        scattered[rows.indices[e]] = rows.values[e]
    c, norm = span.coordinates[j], square(rows, i)
    rest = norm
    for k in range(used):
        source, known = span.sources[k], span.coordinates[span.places[k]]
        product = 0.0
        for e in range(
            past_rows.starts[source], past_rows.starts[source] + past_rows.lengths[source]
        ):
            product += np.float64(past_rows.values[e]) * scattered[past_rows.indices[e]]
        for q in range(k):
            product -= known[q] * c[q]
        c[k] = product / known[k]
        rest -= c[k] * c[k]
    for e in range(first, end):
        scattered[rows.indices[e]] = 0
    if rest > NEGLIGIBLE * norm:
        c[used], span.sources[used], span.places[used] = math.sqrt(rest), i, j
        add_direction(net, rows, i, is_pulled, c, span.net, used)
        used += 1
    for k in range(used):
        indices[at + k], values[at + k] = k, c[k]
    lengths[j] = used
    return used


@part
def add_direction(
    net: Net,
    rows: Rows,
    i: int,
    is_pulled: bool,
    c: Float[np.ndarray, " most"],
    local: Net,
    used: int,
) -> None:
    """Write W_1 q = (W_1 x_i − Σ c_k W_1 q_k)/c to local row `used`, and the same of its start.

    A row that is not pulled has its start where it is.
    """
    theta, start = local.theta.first, local.start.first
    width = theta.shape[1]
    h = np.empty_like(net.theta.biases)
    enter(net, rows, i, h)
    for u in range(width):
        theta[used, u] = h[0, u] - net.theta.biases[0, u]
    orthogonalise(theta, c, used)
    for u in range(width):
        start[used, u] = 0 if is_pulled else theta[used, u]
    if is_pulled:
        for e in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
            row = rows.blocks[i] * net.features + rows.indices[e]
            for u in range(width):
                start[used, u] += rows.values[e] * net.start.first[row, u]
        orthogonalise(start, c, used)


@part
def orthogonalise(
    first: Float[np.ndarray, "most width"], c: Float[np.ndarray, " most"], used: int
) -> None:
    """Turn row `used` from W_1 x into W_1 q, given those of the other directions."""
    kind = first.dtype.type
    for k in range(used):
        for u in range(first.shape[1]):
            first[used, u] -= kind(c[k]) * first[k, u]
    for u in range(first.shape[1]):
        first[used, u] /= kind(c[used])


@part
def distance_squared(net: Net, twin: Net, used: int) -> float:
    """Return ‖θ − θ°‖² over the upper layers and the first `used` rows of W_1."""
    theta, other = net.theta, twin.theta
    total = np.float64(0.0)
    for row in range(used):
        for u in range(theta.first.shape[1]):
            total += (theta.first[row, u] - other.first[row, u]) ** 2
    for layer in range(theta.hidden.shape[0]):
        for v in range(theta.hidden.shape[1]):
            for u in range(theta.hidden.shape[2]):
                total += (theta.hidden[layer, v, u] - other.hidden[layer, v, u]) ** 2
    for u in range(theta.output.shape[0]):
        total += (theta.output[u] - other.output[u]) ** 2
    for layer in range(theta.biases.shape[0]):
        for u in range(theta.biases.shape[1]):
            total += (theta.biases[layer, u] - other.biases[layer, u]) ** 2
    return total + (theta.shift[0] - other.shift[0]) ** 2


@part
def pull_all(net: Net, used: int, log_keep: float) -> None:
    """θ − θ₀ ← e^log_keep · (θ − θ₀), the first `used` rows of W_1 included."""
    pull(net, log_keep)
    net.clock[0] = 0.0
    keep = net.theta.first.dtype.type(math.exp(log_keep))
    for row in range(used):
        pull_row(net, net, row, keep)


@part
def local_copy(net: Net) -> Net:
    """Return a network with parameters of its own."""
    first, hidden, output, biases, shift = net.theta
    theta = Parameters(first.copy(), hidden.copy(), output.copy(), biases.copy(), shift.copy())
    return Net(theta, net.start, net.ages, net.clock, net.features, net.scale, net.biased)


# Places in a span. A plain 0 is of a type of its own, and every function would be compiled once more for it.
ZERO, FIRST_SAMPLE = np.int64(0), np.int64(1)


@part
def at_least(f: float, least: float, mean: int) -> float:
    """Return f, or the z with b′(z) = least if f promises less than that."""
    return f if call_scalar(mean, f) >= least else natural(mean, least)


@part
def divergence(
    net: Net,
    twins: Float[np.ndarray, " steps"],
    rows: Rows,
    count: int,
    mean: int,
    potential: int,
) -> float:
    """Return the sum of b(f) − b(f°) − b′(f°)(f − f°) over local contexts 1 … count; `twins` are f°."""
    h = np.empty_like(net.theta.biases)
    total = 0.0
    for j in range(1, count + 1):
        f = np.float64(value(net, rows, j, h))
        f_twin = twins[j - 1]
        rise = call_scalar(potential, f) - call_scalar(potential, f_twin)
        total += rise - call_scalar(mean, f_twin) * (f - f_twin)
    return total


@part
def biased_steps(
    net: Net, samples: Samples, fit: Fit, bias: float, pull_of_step: float, used: int
) -> None:
    """Take `steps` times a step on a sample, if there are any, and one along the bias, if there is one.

    The ridge's pulls are put off until they are worth it, as in `replay`.
    """
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    rows, rewards, count = samples
    rate = fit.rate
    x_square = square(rows, ZERO)
    put_off = 0.0
    for j in range(fit.steps):
        if count > 0:
            x = j + 1
            ascend(net, rows, x, square(rows, x), rewards[x], fit.mean, rate, h, delta)
        if bias > 0.0:
            enter(net, rows, ZERO, h)
            climb(net, h)
            norm = descend(net, x_square, h, delta)
            # At most one unit of reward in a step, as `ascend` never overshoots its sample.
            move(net, rows, ZERO, h, delta, rate * bias / (1.0 + rate * bias * norm))
        put_off += pull_of_step
        if put_off > TOLERANCE:
            pull_all(net, used, -put_off)
            put_off = 0.0
    pull_all(net, used, -put_off)


@kernel
def biased_ascent(
    net: Net,
    past: Past,
    contexts: Rows,
    fit: Fit,
    potential: int,
    worth: float,
    reach: float,
    least: float,
    offsets: Float[np.ndarray, " arms"],
    bias_weights: Float[np.ndarray, " arms"],
    pull_weights: Float[np.ndarray, " arms"],
    key: np.uint64,
    estimates: Float[np.ndarray, " arms"],
    gains: Float[np.ndarray, " arms"],
) -> None:
    """Write f(x_a; θ̃_a), and by how much ℓ_λ at θ̃_a differs from ℓ_λ at the base, for every arm.

    An index is the first plus `worth` times the second, which is never above 0, plus what `offsets` says
    that the arm has from elsewhere; neither number includes it. A step along the bias β
    raises f(x_a) by ηβ‖g‖²/(1 + ηβ‖g‖²) at most, to first order. As gradients grow on the way, an index is
    at most f(x_a; θ̂) + R (`reach` + R), with R the sum of these rises. Arms take their turns by this bound,
    the largest first, until it is below the index of an arm that was played: no other arm can win. Those have
    bounds instead of indices, and no ascent.

    θ̃_a is `steps` times a step on a sample of the arm's own block and one along the bias, from
    the base. Samples of other blocks would move the upper layers only, which have settled in the
    base, so they are left out. Arms of one block see the same samples.

    A twin θ° takes the same steps without the bias, so that what sampling does to both cancels out:
    f(x_a; θ̃_a) is f(x_a; θ̂) + f(x_a; θ̃_a) − f(x_a; θ°), and ℓ_λ falls by the sum of
    b(f̃) − b(f°) − b′(f°)(f̃ − f°) and (mλ/2)‖θ̃_a − θ°‖²: from a maximiser θ°, where the terms of first
    order are nought, that is its change but for the network's own curvature times r − b′(f°).
    The sum is estimated on the samples that were replayed. An f(x_a; θ̂) that promises less than `least` is
    raised to it: no sample has put it there.
    """
    rows, member_counts, steps = past.rows, past.member_counts, fit.steps
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    twins = np.empty(steps)  # f° of the samples
    # Context 0 of the span is x_a, the others are the samples in the order of the steps.
    span = empty_span(net, rows, steps + 1)
    rewards = np.zeros(steps + 1)
    picks, arm = np.empty(steps, np.int64), np.empty(1, np.int64)
    twin, block, used = span.net, -1, 0
    n = contexts.blocks.shape[0]
    bounds = np.empty(n)
    for a in range(n):
        f, norm = value_and_gradient(net, contexts, a, h, delta)
        rise = fit.rate * bias_weights[a] * norm
        rises = steps * rise / (1.0 + rise)
        estimates[a] = at_least(f, least, fit.mean) + rises * (reach + rises)
        bounds[a], gains[a] = estimates[a] + offsets[a], 0.0
    order = np.argsort(-bounds)
    bar = -np.inf  # the largest index so far of an arm that was played
    for a in order:
        if bounds[a] < bar:
            return
        count = steps if member_counts[contexts.blocks[a]] > 0 else 0
        pull_of_step = math.log1p(fit.rate * fit.ridge * pull_weights[a])
        is_pulled = steps * pull_of_step > TOLERANCE
        samples = Samples(span.rows, rewards, count)
        if contexts.blocks[a] != block:
            block = contexts.blocks[a]
            used = begin_block(net, block, span)
            for j in range(count):
                bits = mix(mix(key, block), j)
                at = past.member_starts[block] + below(bits, member_counts[block])
                picks[j] = past.members[at]
                rewards[j + 1] = (past.rewards[picks[j]] - fit.centre) * fit.gain
            used = include(net, rows, picks[:count], rows, is_pulled, span, used, FIRST_SAMPLE)
            twin = local_copy(span.net)
            biased_steps(twin, samples, fit, 0.0, pull_of_step, used)
            for j in range(count if potential != 0 else 0):
                twins[j] = value(twin, span.rows, j + 1, h)
        arm[0] = a
        size = include(net, contexts, arm, rows, is_pulled, span, used, ZERO)
        if size > used:  # a direction of x_a alone, along which the twin takes no step
            keep = net.theta.first.dtype.type(math.exp(-steps * pull_of_step))
            pull_row(twin, span.net, used, keep)
        local = local_copy(span.net)
        f_base = at_least(np.float64(value(local, span.rows, ZERO, h)), least, fit.mean)
        biased_steps(local, samples, fit, bias_weights[a], pull_of_step, size)
        if potential != 0:
            weight = member_counts[block] / max(count, 1)
            gains[a] = -weight * divergence(local, twins, span.rows, count, fit.mean, potential)
            gains[a] -= fit.ridge / 2 * distance_squared(local, twin, size)
        rise = value(local, span.rows, ZERO, h) - value(twin, span.rows, ZERO, h)
        estimates[a] = f_base + rise
        # No more than its bound, so that arms with equal contexts are treated alike; and not by an arm that was
        # never played, so that a new one leaves the indices of the others as they were.
        if count > 0:
            index = estimates[a] + worth * gains[a] + offsets[a]
            bar = max(bar, min(bounds[a], index))


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
        f, norm = value_and_gradient(net, rows, i, hiddens[j], deltas[j])
        bends[j] = (call_scalar(fit.mean, f + BEND) - call_scalar(fit.mean, f)) / BEND  # b″(f)
        damping[j] = rate * bends[j] / (1.0 + rate * bends[j] * norm)
    for j in range(count):
        products(net, samples[j], hiddens[j], deltas[j], samples, hiddens, deltas, grams[j])

    x = np.zeros(used, dtype)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    overlaps, rises, moves = np.empty(count), np.empty(count), np.empty(count)
    for a in range(contexts.blocks.shape[0]):
        f_base, norm = value_and_gradient(net, contexts, a, h, delta)
        first, end = contexts.starts[a], contexts.starts[a] + contexts.lengths[a]
        for k in range(first, end):
            if columns[contexts.indices[k]] >= 0:
                x[columns[contexts.indices[k]]] = contexts.values[k]
        products(net, x, h, delta, samples, hiddens, deltas, overlaps)
        for k in range(first, end):
            if columns[contexts.indices[k]] >= 0:
                x[columns[contexts.indices[k]]] = 0
        push = rate * bias / (1.0 + rate * bias * norm)
        rises[:] = 0.0
        rise = steps * push * norm
        for j in range(count):
            move = damping[j] * rises[j]
            moves[j] = move
            rise -= move * overlaps[j]
            for i in range(count):
                rises[i] += push * overlaps[i] - move * grams[j, i]
        # ‖φ‖² = φᵀ(steps · s g_a − Σ moves_j g_j), and b(f̃) − b(f°) − b′(f°)(f̃ − f°) ≈ b″ e²/2.
        length, bent = steps * push * rise, 0.0
        for j in range(count):
            length -= moves[j] * rises[j]
            bent += bends[j] * rises[j] * rises[j] / 2
        estimates[a] = at_least(f_base, least, fit.mean) + rise
        gains[a] = -(seen / max(count, 1) * bent + fit.ridge / 2 * length)
