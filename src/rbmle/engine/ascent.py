"""The arm-specific ascent of NeuralRBMLE-GA: from the shared base, over a copy of what it touches."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import call_scalar, kernel, part
from rbmle.engine.exponential_family import natural
from rbmle.engine.hashing import below, mix
from rbmle.engine.layout import Fit, Net, Parameters, Past, Rows, Samples
from rbmle.engine.local_copy import (
    distance_squared,
    gather,
    local_copy,
    pull_all,
    take_over,
)
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

# A plain 0 is of a type of its own, and every function would be compiled once more for it.
ZERO = np.int64(0)


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
    bias_weights: Float[np.ndarray, " arms"],
    pull_weights: Float[np.ndarray, " arms"],
    key: np.uint64,
    estimates: Float[np.ndarray, " arms"],
    gains: Float[np.ndarray, " arms"],
) -> None:
    """Write f(x_a; θ̃_a), and by how much ℓ_λ at θ̃_a differs from ℓ_λ at the base, for every arm.

    An index is the first plus `worth` times the second, which is never above 0. A step along the bias β
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
    theta, rows, member_counts = net.theta, past.rows, past.member_counts
    steps, width = fit.steps, theta.first.shape[1]
    places = np.full(net.features, -1, np.int32)
    h = np.empty_like(theta.biases)
    delta = np.empty_like(h)
    picks = np.empty(steps, np.int64)
    twins = np.empty(steps)  # f° of the samples
    known, known_block = net, -1  # the twin of an arm, and its block
    known_places = np.full(net.features, -1, np.int32)
    known_features = places[:0]
    n = contexts.blocks.shape[0]
    bounds = np.empty(n)
    for a in range(n):
        base, norm = differentiated(net, contexts, a, h, delta)
        rise = fit.rate * bias_weights[a] * norm
        rises = steps * rise / (1.0 + rise)
        bounds[a] = at_least(base, least, fit.mean) + rises * (reach + rises)
        estimates[a], gains[a] = bounds[a], 0.0
    order = np.argsort(-bounds)
    bar = -np.inf  # the largest index so far of an arm that was played
    for a in order:
        if bounds[a] < bar:
            return
        block = contexts.blocks[a]
        count = steps if member_counts[block] > 0 else 0
        entries = np.int64(contexts.lengths[a])
        for j in range(count):
            bits = mix(mix(key, block), j)
            picks[j] = past.members[past.member_starts[block] + below(bits, member_counts[block])]
            entries += rows.lengths[picks[j]]
        most = min(entries, net.features)
        features = np.empty(most, np.int32)
        local = Net(
            Parameters(
                np.empty((most, width), theta.first.dtype),
                theta.hidden.copy(),
                theta.output.copy(),
                theta.biases.copy(),
                theta.shift.copy(),
            ),
            Parameters(
                np.empty((most, width), theta.first.dtype),
                net.start.hidden,
                net.start.output,
                net.start.biases,
                net.start.shift,
            ),
            np.zeros(most),
            np.zeros(1),
            ZERO,
            net.scale,
            net.biased,
        )
        # Local context 0 is x_a, the others are the samples in the order of the steps.
        out = Rows(
            np.zeros(count + 2, rows.starts.dtype),
            np.empty(count + 1, rows.lengths.dtype),
            np.zeros(count + 1, rows.blocks.dtype),
            np.empty(entries, rows.indices.dtype),
            np.empty(entries, rows.values.dtype),
        )
        local_rewards = np.empty(count + 1)
        used = gather(net, contexts, a, ZERO, places, features, local, out, ZERO)
        for j in range(count):
            used = gather(net, rows, picks[j], used, places, features, local, out, j + 1)
            local_rewards[j + 1] = past.rewards[picks[j]]
        for place in range(used):
            places[features[place]] = -1

        pull_of_step = math.log1p(fit.rate * fit.ridge * pull_weights[a])
        samples = Samples(out, local_rewards, count)
        f_base = at_least(np.float64(value(local, out, ZERO, h)), least, fit.mean)
        twin = local_copy(local)
        if block == known_block:
            take_over(twin, known, known_places, features, used, steps, pull_of_step)
        else:
            biased_steps(twin, samples, fit, 0.0, pull_of_step, used)
            for j in range(count if potential != 0 else 0):
                twins[j] = value(twin, out, j + 1, h)
            for feature in known_features:
                known_places[feature] = -1
            known, known_block, known_features = twin, block, features[:used]
            for place in range(used):
                known_places[features[place]] = place
        biased_steps(local, samples, fit, bias_weights[a], pull_of_step, used)
        if potential != 0:
            weight = member_counts[block] / max(count, 1)
            gains[a] = -weight * divergence(local, twins, out, count, fit.mean, potential)
            gains[a] -= fit.ridge / 2 * distance_squared(local, twin, used)
        rise = value(local, out, ZERO, h) - value(twin, out, ZERO, h)
        estimates[a] = f_base + rise
        # No more than its bound, so that arms with equal contexts are treated alike; and not by an arm that was
        # never played, so that a new one leaves the indices of the others as they were.
        if count > 0:
            bar = max(bar, min(bounds[a], estimates[a] + worth * gains[a]))
