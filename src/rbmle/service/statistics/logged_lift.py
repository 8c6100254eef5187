"""The lift of the dashboard's headline, made of logged rounds: an export tells the same as the service."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rbmle.service.statistics.lift import LiftSums, Means
from rbmle.service.statistics.weights import Weight

if TYPE_CHECKING:
    from rbmle.evaluation.rounds import Rounds


class LoggedLift:
    """Sums of the lift over the baseline action, of rounds in the order in which they were settled.

    As in the service, rounds count that the policy decided and that tell of the baseline action. One
    without logged probabilities does not, be the baseline action played or not.
    """

    def __init__(self) -> None:
        self.sums, self._means = LiftSums(), Means()

    def add(self, rounds: "Rounds", weights: Any) -> None:
        """Take some rounds that have a baseline action, and its weights there."""
        assert rounds.logged is not None
        assert rounds.baselines is not None
        assert rounds.is_of_policy is not None
        chances = rounds.logged[rounds.starts + rounds.baselines]
        places = np.flatnonzero(rounds.is_of_policy & ~np.isnan(chances))
        largest = (1 / chances[places]).tolist()
        taken = weights[places].tolist(), largest, rounds.rewards[places].tolist()
        for weight, most, reward in zip(*taken, strict=True):
            self.sums.add(Weight(weight, most), reward, self._means)
