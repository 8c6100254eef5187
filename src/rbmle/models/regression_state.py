"""What training moves: a network, the walk that it may be the average of, and their history."""

from dataclasses import dataclass, field

import numpy as np

from rbmle.engine.layout import Net, Parameters, Walk
from rbmle.engine.network import UNTOUCHED
from rbmle.engine.watching import Watch
from rbmle.models.history import History
from rbmle.models.watch import complete, fresh_watch


@dataclass(slots=True, kw_only=True)
class RegressionState:
    """A network, the walk that it is the average of, and the observations it was fitted to."""

    net: Net
    walk: Walk
    history: History
    watch: Watch = field(default_factory=fresh_watch)

    def __post_init__(self) -> None:
        """Complete what an earlier version saved."""
        self.watch = complete(self.watch)

    @property
    def round(self) -> int:
        """Return how many rounds were learned; the paper's t is one more."""
        return self.history.seen


def restarted(net: Net, walk: Walk) -> None:
    """Bring a network, and the walk that it is the average of, back to θ₀."""
    for moved in (net, walk):
        for part, start in zip(moved.theta, net.start, strict=True):
            part[:] = start[: len(part)]  # a walk may be none, and then is empty
        moved.clock[:] = 0.0
    net.ages[:], walk.ages[:] = 0.0, UNTOUCHED


def unmoved(net: Net) -> Net:
    """Return a network that training does not move; θ₀ is shared, as nothing writes to it."""
    theta = Parameters(*(part.copy() for part in net.theta))
    return net._replace(theta=theta, ages=net.ages.copy(), clock=net.clock.copy())


def settled(net: Net) -> Net:
    """Return a copy of a network of which no row owes a pull to its start."""
    copy = unmoved(net)
    keep = np.exp(np.minimum(net.clock[0] - net.ages, 0.0)).astype(net.theta.first.dtype)
    start = net.start.first
    copy.theta.first[:] = start + keep[:, None] * (net.theta.first - start)
    copy.ages[:], copy.clock[:] = 0.0, 0.0
    return copy


def no_walk(net: Net) -> Walk:
    """Return the walk of a network that is trained itself."""
    return Walk(Parameters(*(part[:0] for part in net.theta)), net.ages[:0], net.clock[:0])


def walk_from(net: Net) -> Walk:
    """Return a walk from the start of a network that is at θ₀."""
    theta = Parameters(*(part.copy() for part in net.theta))
    return Walk(theta, np.full_like(net.ages, UNTOUCHED), np.zeros(2))


def grown(walk: Walk, net: Net) -> Walk:
    """Return a walk with the blocks that its network has grown by, at their start."""
    if len(walk.ages) == 0:
        return walk
    new = net.start.first[len(walk.ages) :]
    theta = walk.theta._replace(first=np.concatenate([walk.theta.first, new]))
    ages = np.concatenate([walk.ages, np.full(len(new), UNTOUCHED)])
    return Walk(theta, ages, walk.clock)
