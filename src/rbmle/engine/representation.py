"""What a network makes of contexts before its last layer."""

import numpy as np
from jaxtyping import Float

from rbmle.engine.compiled import kernel
from rbmle.engine.layout import Net, Rows
from rbmle.engine.network import climb, enter


@kernel
def last_hidden(net: Net, rows: Rows, phi: Float[np.ndarray, "n width+1"]) -> None:
    """Write φ(x_i) = (h_{L−1}, 1) for every context; without the 1 where the network has no biases."""
    h = np.empty_like(net.theta.biases)
    last, width = h.shape[0] - 1, h.shape[1]
    for i in range(rows.blocks.shape[0]):
        enter(net, rows, i, h)
        climb(net, h)
        for u in range(width):
            phi[i, u] = h[last, u]
        phi[i, width] = net.biased
