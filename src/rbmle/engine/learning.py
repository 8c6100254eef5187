"""A batch of observations, kept and fitted one after the other in one call."""

import numpy as np

from rbmle.engine.compiled import kernel, part
from rbmle.engine.history import Sizes, keep
from rbmle.engine.layout import Arrivals, Fit, Net, Past, Push, Walk
from rbmle.engine.precision_diagonal import add_gradient
from rbmle.engine.replay import replay

keep_one, replay_one = part(keep), part(replay)


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
) -> int:
    """Keep each observation from `begin` on, fit to the history if it is to be, and add g² to Z.

    Return where the history had no room, or n. What training moves is the walk, which may be the
    network itself; see `replay`.
    """
    trained = Net(walk.theta, net.start, walk.ages, walk.clock, net.features, net.scale, net.biased)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    rows, rewards, slots, listed, is_fitted, keys, weights = arrivals
    for i in range(begin, slots.shape[0]):
        if not keep_one(past, sizes, rows, i, rewards[i], slots[i], listed):
            return i
        if is_fitted[i]:
            replay_one(trained, past, sizes, fit, keys[i], weights[i], net.theta)
        if push.weight > 0.0:
            add_gradient(net, past.rows, slots[i], push.weight, h, delta, push.D)
    return slots.shape[0]
