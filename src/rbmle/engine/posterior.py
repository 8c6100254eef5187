"""Training steps of sampling policies: Langevin dynamics, and redrawn noise in rewards."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel
from rbmle.engine.hashing import below, mix, normal
from rbmle.engine.layout import FeelGood, Net, Rows
from rbmle.engine.network import TOLERANCE, climb, descend, enter, move, square, value

BITS = 64  # of a hash
CANDIDATES = 64  # blocks of which the best is taken, drawn at random if there are more
# numba gives a literal 0 its own type, for which every function would be compiled again.
ZERO = np.int64(0)


@kernel
def feel_good(net: Net, rows: Rows, count: int, good: FeelGood, key: np.uint64) -> None:
    """Take steps on min(cap, max_a f(x_s in block a; θ)), s drawn among the first `count` contexts.

    Afterwards no row of W_1 owes a pull.
    """
    first, start = net.theta.first, net.start.first
    for row in range(first.shape[0]):
        owed = net.clock[0] - net.ages[row]
        if owed < -TOLERANCE:
            keep = first.dtype.type(math.exp(owed))
            for u in range(start.shape[1]):
                first[row, u] = start[row, u] + keep * (first[row, u] - start[row, u])
            net.ages[row] = net.clock[0]
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    at, length, block = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    context = Rows(at, length, block, rows.indices, rows.values)
    blocks = first.shape[0] // net.features
    for j in range(good.steps):
        bits = mix(key, j)
        s = below(bits, count)
        at[0], length[0] = rows.starts[s], rows.lengths[s]
        best, f_best = rows.blocks[s], -np.inf
        for c in range(min(blocks, CANDIDATES)):
            block[0] = c if blocks <= CANDIDATES else below(mix(bits, c), blocks)
            f = value(net, context, ZERO, h)
            if f > f_best:
                best, f_best = block[0], np.float64(f)
        if f_best >= good.cap:
            continue
        block[0] = best
        enter(net, context, ZERO, h)
        climb(net, h)
        norm = descend(net, square(context, ZERO), h, delta)
        # A step changes f by at most one unit of reward, as a step on a sample never overshoots it.
        move(net, context, ZERO, h, delta, good.amount / (1.0 + good.amount * norm))


@kernel
def jolt(W: Float[np.ndarray, "rows width"], deviation: float, key: np.uint64) -> None:
    """Add ±deviation to every number.

    Signs are enough: the weak Euler scheme with two-point increments (Kloeden and Platen 1992, section 14.1)
    has the moments of one with normal noise, and 64 of them need one hash.
    """
    size, width = W.dtype.type(deviation), W.shape[1]
    for row in range(W.shape[0]):
        for begin in range(0, width, BITS):
            bits = mix(mix(key, row), begin)
            for u in range(begin, min(begin + BITS, width)):
                is_up = (bits >> np.uint64(u - begin)) & np.uint64(1)
                W[row, u] += size if is_up else -size


@kernel
def redraw(
    rewards: Float[np.ndarray, " slots"],
    count: int,
    times: int,
    noise: float,
    key: np.uint64,
    perturbed: Float[np.ndarray, " slots"],
) -> None:
    """Write r_s + noise · ε, with ε ~ N(0, 1), for some of the first `count` rewards, drawn at random."""
    for j in range(times):
        bits = mix(key, j)
        s = below(bits, count)
        perturbed[s] = rewards[s] + noise * normal(bits, j)
