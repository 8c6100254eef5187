"""A copy of the part of a network that an ascent touches, and what is done to it as a whole."""

import math

import numpy as np
from jaxtyping import Int

from rbmle.engine.compiled import part
from rbmle.engine.layout import Net, Parameters, Rows
from rbmle.engine.network import TOLERANCE
from rbmle.engine.replay import pull


@part
def gather(
    net: Net,
    rows: Rows,
    i: int,
    used: int,
    places: Int[np.ndarray, " features"],
    features: Int[np.ndarray, " most"],
    local: Net,
    out: Rows,
    j: int,
) -> int:
    """Copy context i as local context j, and the rows of W_1 it touches; return how many are copied.

    Local row p holds feature `features[p]` of the block; `places` is its inverse, −1 where absent.
    """
    base = rows.blocks[i] * net.features
    at = out.starts[j]
    for k in range(rows.lengths[i]):
        feature = rows.indices[rows.starts[i] + k]
        place = places[feature]
        if place < 0:
            place = used
            used += 1
            places[feature] = place
            features[place] = feature
            row = base + feature
            keep = local.theta.first.dtype.type(math.exp(net.clock[0] - net.ages[row]))
            for u in range(local.theta.first.shape[1]):
                start = net.start.first[row, u]
                local.start.first[place, u] = start
                local.theta.first[place, u] = start + keep * (net.theta.first[row, u] - start)
        out.indices[at + k] = place
        out.values[at + k] = rows.values[rows.starts[i] + k]
    out.lengths[j] = rows.lengths[i]
    out.starts[j + 1] = at + rows.lengths[i]
    return used


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
        pull_row(net, row, keep)


@part
def pull_row(net: Net, row: int, keep: float) -> None:
    """θ − θ₀ ← keep · (θ − θ₀) for a row of W_1."""
    for u in range(net.theta.first.shape[1]):
        start = net.start.first[row, u]
        net.theta.first[row, u] = start + keep * (net.theta.first[row, u] - start)


@part
def take_over(
    twin: Net,
    known: Net,
    places: Int[np.ndarray, " features"],
    features: Int[np.ndarray, " most"],
    used: int,
    steps: int,
    pull_of_step: float,
) -> None:
    """Bring a twin to where the twin of another arm of the block is: the same steps, taken once.

    `places` says where the other has a feature; rows that it does not have are pulled as in `biased_steps`.
    """
    first, hidden, output, biases, shift = twin.theta
    shift[0] = known.theta.shift[0]
    for u in range(output.shape[0]):
        output[u] = known.theta.output[u]
    for layer in range(biases.shape[0]):
        for u in range(biases.shape[1]):
            biases[layer, u] = known.theta.biases[layer, u]
    for layer in range(hidden.shape[0]):
        for v in range(hidden.shape[1]):
            for u in range(hidden.shape[2]):
                hidden[layer, v, u] = known.theta.hidden[layer, v, u]
    for row in range(used):
        place = places[features[row]]
        if place >= 0:
            for u in range(first.shape[1]):
                first[row, u] = known.theta.first[place, u]
            continue
        put_off = 0.0
        for j in range(steps + 1):
            put_off += pull_of_step if j < steps else 0.0
            if put_off > TOLERANCE or j == steps:
                pull_row(twin, row, first.dtype.type(math.exp(-put_off)))
                put_off = 0.0


@part
def local_copy(net: Net) -> Net:
    """Return a network with parameters of its own."""
    first, hidden, output, biases, shift = net.theta
    theta = Parameters(first.copy(), hidden.copy(), output.copy(), biases.copy(), shift.copy())
    return Net(theta, net.start, net.ages, net.clock, net.features, net.scale, net.biased)
