"""The weight w = π(a)/p(a) of a play for the baseline action and for uniform play."""

from typing import NamedTuple

from rbmle.evaluation.weight_sums import SMALLEST
from rbmle.service.log.records import Play


class Weight(NamedTuple):
    """The weight of a play, and the largest that it could have had, whatever was chosen."""

    weight: float
    largest: float


class Weights(NamedTuple):
    """The weights of a play for the baseline action and for uniform play; None: it tells nothing of one."""

    baseline: Weight | None
    uniform: Weight | None


def weights_of(play: Play) -> Weights:
    """Return the weights of a play."""
    return Weights(_of_baseline(play), _of_uniform(play))


def _of_baseline(play: Play) -> Weight | None:
    """Return the weight for always showing the baseline action; None if that one had no chance."""
    chance = probability(play, play.baseline)
    if chance < SMALLEST:
        return None
    return Weight(1 / chance if play.chosen == play.baseline else 0.0, 1 / chance)


def _of_uniform(play: Play) -> Weight | None:
    """Return the weight for showing any action alike; None if one of them had no chance."""
    smallest, share = min(play.probabilities), 1 / len(play.eligible)
    if smallest < SMALLEST:
        return None
    return Weight(share / probability(play, play.chosen), share / smallest)


def probability(play: Play, action: int) -> float:
    """Return with which probability an action was to be chosen; 0 if it was not eligible."""
    if action not in play.eligible:
        return 0.0
    return play.probabilities[play.eligible.index(action)]
