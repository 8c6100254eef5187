"""Observations in sparse arrays, and gradient ascent on single samples drawn from them.

The cost of a round does not grow with the rounds.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, Int

from rbmle.engine.compiled import call_scalar, in_order, inlined, kernel, part, prefetch
from rbmle.engine.drift import Watch, notice, units_of
from rbmle.engine.hashing import below, mix, normal, unit
from rbmle.engine.layout import Arrivals, Fit, Net, Parameters, Past, Push, Rows, TrainingWalk
from rbmle.engine.network import TOLERANCE, UNTOUCHED, climb, descend, enter, move, settle
from rbmle.engine.precision import add_gradient

COUNT, SEEN, NEWEST, POOLED, SLABBED = range(5)  # places in `Sizes`
FEWEST = 4  # members in a slab

Sizes = Int[np.ndarray, " 5"]


@kernel
def keep(
    past: Past, sizes: Sizes, rows: Rows, i: int, reward: float, slot: int, listed: int
) -> bool:
    """Store row i in a slot; return False, without a change, if there is no room.

    The first `listed` slots are those of the memory; the next one is for the newest observation only.
    """
    is_listed = slot < listed
    length, block = rows.lengths[i], rows.blocks[i]
    is_taken = slot < sizes[COUNT]
    if slot >= past.squares.shape[0] or sizes[POOLED] + length > past.rows.indices.shape[0]:
        return False
    count, limit = past.member_counts[block], past.member_limits[block]
    if is_taken and past.rows.blocks[slot] == block:
        count -= 1
    is_full = is_listed and count == limit
    if is_full and sizes[SLABBED] + max(FEWEST, 2 * limit) > past.members.shape[0]:
        return False
    if is_taken:
        leave_block(past, slot)
    start, at = sizes[POOLED], rows.starts[i]
    for k in range(length):
        past.rows.indices[start + k] = rows.indices[at + k]
        past.rows.values[start + k] = rows.values[at + k]
    past.rows.starts[slot], past.rows.lengths[slot], past.rows.blocks[slot] = start, length, block
    past.squares[slot], past.rewards[slot] = _squared_length(rows, i), reward
    past.serials[slot] = sizes[SEEN]
    sizes[POOLED] += length
    if is_listed:
        join_block(past, sizes, slot, block)
        sizes[COUNT] = max(sizes[COUNT], slot + 1)
    sizes[NEWEST] = slot
    sizes[SEEN] += 1
    return True


@in_order
def _squared_length(rows: Rows, i: int) -> float:
    """Return ‖x_i‖², summed in order: vectorised, its last bit would depend on the alignment of arrays."""
    square = 0.0
    for k in range(rows.starts[i], rows.starts[i] + rows.lengths[i]):
        square += np.float64(rows.values[k]) * np.float64(rows.values[k])
    return square


@inlined
def join_block(past: Past, sizes: Sizes, slot: int, block: int) -> None:
    """Add an observation to the list of its block, which moves to a larger slab if it is full."""
    count, limit = past.member_counts[block], past.member_limits[block]
    if count == limit:
        limit = max(FEWEST, 2 * limit)
        start, to = past.member_starts[block], sizes[SLABBED]
        for k in range(count):
            past.members[to + k] = past.members[start + k]
        past.member_starts[block], past.member_limits[block] = to, limit
        sizes[SLABBED] += limit
    past.members[past.member_starts[block] + count] = slot
    past.places[slot] = count
    past.member_counts[block] = count + 1


@inlined
def leave_block(past: Past, slot: int) -> None:
    """Take an observation out of its block's list; the last one takes its place."""
    block, place = past.rows.blocks[slot], past.places[slot]
    last, start = past.member_counts[block] - 1, past.member_starts[block]
    moved = past.members[start + last]
    past.members[start + place] = moved
    past.places[moved] = place
    past.member_counts[block] = last


BEND = 2.0**-10  # the distance of the two points by which b″ is estimated
TINY = 1e-300
ATTEMPTS = 64  # with a share of 0.8, all fail once in 10⁴⁴
AHEAD = 3  # steps between asking for a sample and using it
LINE = 16  # indices or values in a cache line
CACHED = 4096  # as many samples are mostly in a cache, so they are not prefetched


@inlined
def ascend(
    net: Net,
    rows: Rows,
    i: int,
    square: float,
    reward: float,
    mean: int,
    rate: float,
    h: Float[np.ndarray, "depth-1 width"],
    delta: Float[np.ndarray, "depth-1 width"],
) -> None:
    """θ ← θ + η (r − b′(f)) g / (1 + η b″(f) ‖g‖²): a step on the log-likelihood of one sample.

    The denominator is that of the implicit step (Toulis and Airoldi 2017), to first order: however
    large the features are, a step does not overshoot its own sample. At η ‖g‖² ≪ 1 it is the plain one.
    """
    enter(net, rows, i, h)
    f = np.float64(climb(net, h))
    norm = descend(net, square, h, delta)
    expect_reward = call_scalar(mean, f)
    bend = (call_scalar(mean, f + BEND) - expect_reward) / BEND  # b″(f)
    amount = rate * (reward - expect_reward) / (1.0 + rate * bend * norm)
    # Where b′ is flat, the denominator does not limit the step: let f move by at most 1 + |f| + |r|.
    reach = (1.0 + abs(f) + abs(reward)) / (norm + TINY)
    move(net, rows, i, h, delta, min(max(amount, -reach), reach))


@part
def pull(net: Net, log_keep: float) -> None:
    """θ − θ₀ ← e^log_keep · (θ − θ₀), at once except for W_1, whose rows follow when they are touched."""
    net.clock[0] += log_keep
    keep = net.theta.output.dtype.type(math.exp(log_keep))
    theta, start = net.theta, net.start
    for u in range(theta.output.shape[0]):
        theta.output[u] = start.output[u] + keep * (theta.output[u] - start.output[u])
    theta.shift[0] = start.shift[0] + keep * (theta.shift[0] - start.shift[0])
    b, b0 = theta.biases, start.biases
    for layer in range(b.shape[0]):
        for u in range(b.shape[1]):
            b[layer, u] = b0[layer, u] + keep * (b[layer, u] - b0[layer, u])
    w, w0 = theta.hidden, start.hidden
    for layer in range(w.shape[0]):
        for v in range(w.shape[1]):
            for u in range(w.shape[2]):
                w[layer, v, u] = w0[layer, v, u] + keep * (w[layer, v, u] - w0[layer, v, u])


@inlined
def is_kept(fit: Fit, serial: int) -> bool:
    """Return whether an observation is among the share that a learner sees."""
    return fit.share >= 1.0 or unit(mix(fit.share_key, serial)) < fit.share


@inlined
def pick(serials: Int[np.ndarray, " n"], count: int, fit: Fit, bits: int) -> int:
    """Return a random observation of those that the learner sees, or −1 after too many attempts."""
    i = below(bits, count)
    for attempt in range(ATTEMPTS):
        if is_kept(fit, serials[i]):
            return i
        i = below(mix(bits, attempt), count)
    return -1


@inlined
def foresee(past: Past, drawn: Int[np.ndarray, " steps"], j: int) -> None:
    """Prefetch what the next steps read, because a long history is not in a cache."""
    if j + 2 * AHEAD < drawn.shape[0]:
        i = max(drawn[j + 2 * AHEAD], 0)
        prefetch(past.rows.starts, i)
        prefetch(past.rows.lengths, i)
        prefetch(past.rows.blocks, i)
        prefetch(past.squares, i)
        prefetch(past.rewards, i)
    if j + AHEAD < drawn.shape[0]:
        i = max(drawn[j + AHEAD], 0)
        start = past.rows.starts[i]
        for k in range(start, start + past.rows.lengths[i], LINE):
            prefetch(past.rows.indices, k)
            prefetch(past.rows.values, k)


@part
def follow(net: Net, weight: float, mean: Parameters) -> None:
    """Update an average: mean ← mean + weight · (θ − mean). Afterwards no row of W_1 owes a pull.

    A row that no step has touched is at θ₀, and so is its mean: arms that were never played cost one look at
    their ages.
    """
    theta, start = net.theta, net.start.first
    w = theta.output.dtype.type(weight)
    last, keep = 0.0, theta.output.dtype.type(1)
    for row in range(theta.first.shape[0]):
        if net.ages[row] == UNTOUCHED:
            continue
        owed = net.clock[0] - net.ages[row]
        if owed < 0.0:
            if owed != last:  # most rows owe the same
                last, keep = owed, theta.output.dtype.type(math.exp(owed))
            for u in range(start.shape[1]):
                theta.first[row, u] = start[row, u] + keep * (theta.first[row, u] - start[row, u])
            net.ages[row] = net.clock[0]
        for u in range(start.shape[1]):
            mean.first[row, u] += w * (theta.first[row, u] - mean.first[row, u])
    hidden, biases, output = theta.hidden, theta.biases, theta.output
    for layer in range(hidden.shape[0]):
        for v in range(hidden.shape[1]):
            for u in range(hidden.shape[2]):
                mean.hidden[layer, v, u] += w * (hidden[layer, v, u] - mean.hidden[layer, v, u])
    for layer in range(biases.shape[0]):
        for u in range(biases.shape[1]):
            mean.biases[layer, u] += w * (biases[layer, u] - mean.biases[layer, u])
    for u in range(output.shape[0]):
        mean.output[u] += w * (output[u] - mean.output[u])
    mean.shift[0] += w * (theta.shift[0] - mean.shift[0])
    net.clock[1] = net.clock[0]


@kernel
def replay(
    net: Net,
    past: Past,
    sizes: Sizes,
    fit: Fit,
    key: np.uint64,
    weight: float,
    average: Parameters,
) -> None:
    """Take J steps on ℓ_λ/n: the newest sample once, the others drawn with replacement.

    The ridge's gradient is −(mλ/n)(θ − θ₀) in each step; its pulls are applied several steps at a time.
    With noise, sample s has the reward r_s + noise · ε(key, s): one draw for a sample and a key.
    With a share below 1, only the samples that belong to the share of its key are seen.
    With `weight`, the average follows θ at the end; one call does both, because passing the arguments is slow.
    """
    rows, serials = past.rows, past.serials
    count, newest = sizes[COUNT], sizes[NEWEST]
    pull_of_step = math.log1p(fit.rate * fit.ridge / count)
    put_off = 0.0
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    drawn = np.empty(fit.steps, np.int64)
    for j in range(fit.steps):
        drawn[j] = newest
        if j > 0 or not is_kept(fit, serials[newest]):
            drawn[j] = pick(serials, count, fit, mix(key, j))
    for j in range(fit.steps):
        if count > CACHED:
            foresee(past, drawn, j)
        i = drawn[j]
        if i < 0:
            continue
        settle(net, rows, i)
        reward = (past.rewards[i] - fit.centre) * fit.gain
        if fit.noise > 0.0:
            reward += fit.noise * normal(key, -1 - serials[i])
        ascend(net, rows, i, past.squares[i], reward, fit.mean, fit.rate, h, delta)
        put_off += pull_of_step
        if put_off > TOLERANCE:
            pull(net, -put_off)
            put_off = 0.0
    pull(net, -put_off)
    if weight > 0.0:
        follow(net, weight, average)


@kernel
def perturb(
    rewards: Float[np.ndarray, " n"],
    serials: Int[np.ndarray, " n"],
    count: int,
    noise: float,
    key: np.uint64,
    out: Float[np.ndarray, " n"],
) -> None:
    """Write r_s + noise · ε(key, s), the rewards by which `replay` trains."""
    for i in range(count):
        out[i] = rewards[i] + noise * normal(key, -1 - serials[i])


@kernel
def select_share(
    serials: Int[np.ndarray, " n"], count: int, fit: Fit, out: Bool[np.ndarray, " n"]
) -> None:
    """Write which observations are among the share that a learner sees."""
    for i in range(count):
        out[i] = is_kept(fit, serials[i])


@kernel
def expect_reward(net: Net, rows: Rows, i: int, mean: int) -> float:
    """Return b′(f(x_i; θ))."""
    h = np.empty_like(net.theta.biases)
    enter(net, rows, i, h)
    return call_scalar(mean, np.float64(climb(net, h)))


@inlined
def in_units_of(fit: Fit, watch: Watch) -> Fit:
    """Return a fit to rewards in units of those so far."""
    steps, rate, ridge, mean, noise, share, share_key, alarm, is_standardised, _, _ = fit
    centre, gain = units_of(watch)
    return Fit(
        steps, rate, ridge, mean, noise, share, share_key, alarm, is_standardised, centre, gain
    )


keep_one, replay_one = part(keep), part(replay)
notice_one, expect_one = part(notice), part(expect_reward)


@kernel
def learn(
    net: Net,
    walk: TrainingWalk,
    past: Past,
    sizes: Sizes,
    arrivals: Arrivals,
    begin: int,
    fit: Fit,
    push: Push,
    watch: Watch,
    forecasts: Float[np.ndarray, "n 3"],
) -> int:
    """Store each observation from `begin` on, fit to the history if `is_fitted`, and add g² to Z.

    If `forecasts` has rows, write the expected reward before it was learned, and the units of rewards after it.

    Return the place of an observation for which the history had no room, or the place after one that set off
    the alarm, or n. Training moves the walk, which may be the network itself; see `replay`.
    """
    trained = Net(walk.theta, net.start, walk.ages, walk.clock, net.features, net.scale, net.biased)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    rows, rewards, slots, listed, is_fitted, keys, weights = arrivals
    for i in range(begin, slots.shape[0]):
        if not keep_one(past, sizes, rows, i, rewards[i], slots[i], listed):
            return i
        f = expect_one(net, past.rows, slots[i], fit.mean)
        if notice_one(watch, rewards[i], fit.centre + f / fit.gain, fit.alarm):
            return i + 1
        if fit.is_standardised:
            fit = in_units_of(fit, watch)
        if forecasts.shape[0] > 0:
            forecasts[i, 0], forecasts[i, 1], forecasts[i, 2] = f, fit.centre, fit.gain
        if is_fitted[i]:
            replay_one(trained, past, sizes, fit, keys[i], weights[i], net.theta)
        if push.weight > 0.0:
            add_gradient(net, past.rows, slots[i], push.weight, h, delta, push.D)
    return slots.shape[0]
