"""The arm-specific ascent of NeuralRBMLE-GA: from the shared base, in the span of its contexts."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import call_scalar, kernel, part
from rbmle.engine.context_span import (
    begin_block,
    distance_squared,
    empty_span,
    include,
    local_copy,
    pull_all,
    pull_row,
)
from rbmle.engine.exponential_family import natural
from rbmle.engine.hashing import below, mix
from rbmle.engine.layout import Fit, Net, Past, Rows, Samples
from rbmle.engine.network import (
    TOLERANCE,
    climb,
    descend,
    differentiated,
    enter,
    move,
    square,
    value,
)
from rbmle.engine.replay import ascend

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
    their bounds in the place of indices, and no ascent.

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
        f, norm = differentiated(net, contexts, a, h, delta)
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
