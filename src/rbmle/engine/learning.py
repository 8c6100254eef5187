"""A batch of observations, kept and fitted one after the other in one call."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import call_scalar, inlined, kernel, part
from rbmle.engine.history import Sizes, keep
from rbmle.engine.layout import Arrivals, Fit, Net, Past, Push, Rows, Walk
from rbmle.engine.network import climb, enter
from rbmle.engine.precision_diagonal import add_gradient
from rbmle.engine.replay import replay
from rbmle.engine.watching import Watch, notice, units_of


@kernel
def expected(net: Net, rows: Rows, i: int, mean: int) -> float:
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
notice_one, expected_one = part(notice), part(expected)


@kernel
def learn(
    net: Net,
    walk: Walk,
    past: Past,
    sizes: Sizes,
    arrivals: Arrivals,
    begin: int,
    fit: Fit,
    push: Push,
    watch: Watch,
    forecasts: Float[np.ndarray, "n 3"],
) -> int:
    """Keep each observation from `begin` on, fit to the history if it is to be, and add g² to Z.

    If there is room for them, write what was expected before a reward was learned, and the units of rewards
    after it.

    Return where the history had no room, or n, or what comes after an observation that set off the
    alarm. What training moves is the walk, which may be the network itself; see `replay`.
    """
    trained = Net(walk.theta, net.start, walk.ages, walk.clock, net.features, net.scale, net.biased)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    rows, rewards, slots, listed, is_fitted, keys, weights = arrivals
    for i in range(begin, slots.shape[0]):
        if not keep_one(past, sizes, rows, i, rewards[i], slots[i], listed):
            return i
        f = expected_one(net, past.rows, slots[i], fit.mean)
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
