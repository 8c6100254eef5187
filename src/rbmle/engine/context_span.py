"""A network over the span of a few contexts: all of W_1 that steps on these contexts can see or move."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rbmle.engine.compiled import inlined, part
from rbmle.engine.layout import Net, Parameters, Rows
from rbmle.engine.network import enter, square
from rbmle.engine.replay import pull

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
