"""The gradient of a network by the features of a context, beside them."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import inlined, kernel
from rbmle.engine.layout import Net, Rows
from rbmle.engine.network import climb, descend, enter

TINY = 1e-300
GRID = 2.0**16


@inlined
def on_grid(x: float) -> float:
    """Return x to 16 binary places: squares of such numbers have one sum, in whichever order they are added."""
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
