"""Where the names at the ends of lines stand, and how high a figure must be to tell lines apart."""

from collections.abc import Mapping, Sequence

REFERENCE = "uniform"  # plays at random: no contender, and so far above them that it hides them
CLIPPED = 1.5  # times the regret of the worst contender, above which the reference leaves the frame
ROOM = 1.1  # above the worst contender


def clipped_top(ends: Mapping[str, float]) -> float | None:
    """Return where a frame ends if the reference is to leave it; None if all fits."""
    others = [end for policy, end in ends.items() if policy != REFERENCE]
    if not others or ends.get(REFERENCE, 0.0) <= CLIPPED * max(others):
        return None
    return ROOM * max(others) or None


def spread(places: Sequence[float], gap: float, highest: float) -> list[float]:
    """Return the places moved as little as keeps neighbours a gap apart, at most `highest`.

    The order is kept, and the sum of squared moves is the least possible below the top.

    >>> spread([0.0, 5.0, 5.5], gap=1.0, highest=10.0)
    [0.0, 4.75, 5.75]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    blocks: list[list[float]] = []  # mean of place − rank · gap, and size: equal places in a block
    for rank, i in enumerate(order):
        blocks.append([places[i] - rank * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            before, others = blocks[-1]
            blocks[-1] = [(before * others + mean * size) / (others + size), others + size]
    means = [mean for mean, size in blocks for _ in range(int(size))]
    found = [0.0] * len(places)
    for rank, i in enumerate(order):
        below_top = (
            highest - (len(places) - 1) * gap
        )  # where the lowest is if the highest is on top
        found[i] = max(min(means[rank], below_top), 0.0) + rank * gap
    return found
