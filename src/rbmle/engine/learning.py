"""A batch of observations, kept and fitted one after the other in one call."""

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from rbmle.engine.compiled import kernel
from rbmle.engine.history import COUNT, NEWEST, Past, Sizes, keep
from rbmle.engine.layout import Net, Parameters, Rows, Walk
from rbmle.engine.precision_diagonal import add_gradient
from rbmle.engine.replay import replay


@kernel
def learn(
    net: Net,
    walk: Walk,
    past: Past,
    sizes: Sizes,
    begin: int,
    rows: Rows,
    rewards: Float[np.ndarray, " n"],
    slots: Int[np.ndarray, " n"],
    listed: int,
    is_fitted: Bool[np.ndarray, " n"],
    keys: UInt64[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    steps: int,
    rate: float,
    ridge: float,
    mean: int,
    noise: float,
    share: float,
    share_key: np.uint64,
    push: float,
    D: Parameters,
) -> int:
    """Keep each observation from `begin` on, fit to the history if it is to be, and add g² to Z.

    Return where the history had no room, or n. With a `push` of 0 there is no Z. What training moves is
    the walk, which may be the network itself; see `replay`.
    """
    trained = Net(walk.theta, net.start, walk.ages, walk.clock, net.features, net.scale, net.biased)
    h = np.empty_like(net.theta.biases)
    delta = np.empty_like(h)
    for i in range(begin, slots.shape[0]):
        if not keep(past, sizes, rows, i, rewards[i], slots[i], listed):
            return i
        if is_fitted[i]:
            replay(
                trained,
                past.rows,
                past.squares,
                past.rewards,
                past.serials,
                sizes[COUNT],
                sizes[NEWEST],
                steps,
                rate,
                ridge,
                mean,
                keys[i],
                noise,
                share,
                share_key,
                weights[i],
                net.theta,
            )
        if push > 0.0:
            add_gradient(net, past.rows, slots[i], push, h, delta, D)
    return slots.shape[0]
