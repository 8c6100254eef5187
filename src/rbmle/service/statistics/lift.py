"""The sums behind lifts: how much more is earned than by another policy.

A play with the reward r has the weight w = π(a)/p(a) for another policy π. With m and q, which are known
before the play (the mean reward and the mean of π so far),

    b = q + w (r − q)

has the mean V_π whatever q is, and a small variance if q is near to V_π. `lift_intervals` has the rest.
"""

from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from rbmle.service.log.records import CELLS, Assignment
from rbmle.service.statistics.estimates import Weight

if TYPE_CHECKING:
    from rbmle.evaluation.rounds import Rounds

LEAST, MOST = -1.0, 1.0  # rewards; sums of several rewards may be beyond
MOST_WEIGHT = 4_096.0  # a play that could have a larger one is left out
PRIOR = 8  # plays that means begin with, so that the first few do not swing them


class Sums(msgspec.Struct, array_like=True):
    """Numbers, and parts that can be merged, which are added field by field."""

    def merged(self, later: Self) -> Self:
        pairs = [(getattr(self, name), getattr(later, name)) for name in self.__struct_fields__]
        return type(self)(*(a.merged(b) if hasattr(a, "merged") else a + b for a, b in pairs))


class Means(msgspec.Struct, array_like=True):
    """The mean reward so far of the plays, and of another policy."""

    plays: int = 0
    reward: float = 0.0  # Σ r
    w: float = 0.0  # Σ w
    wr: float = 0.0

    @property
    def played(self) -> float:
        """Return m."""
        return self.reward / (self.plays + PRIOR)

    def other(self, largest: float) -> float:
        """Return q, which is near to m while Σ w is no more than a few of the largest weights."""
        prior = PRIOR * largest
        return (self.wr + prior * self.played) / (self.w + prior)

    def add(self, weight: float, reward: float) -> None:
        """Count a play."""
        self.plays += 1
        self.reward += reward
        self.w += weight
        self.wr += weight * reward


class LiftSums(Sums, array_like=True):
    """The sums over any number of plays for a lift and its confidence sequence."""

    plays: int = 0  # n
    beyond: int = 0  # plays with a reward beyond −1 to 1, which are left out
    unlikely: int = 0  # plays whose weight has no bound, or one that is too large, also left out
    reward: float = 0.0  # Σ r
    other: float = 0.0  # Σ b
    rr: float = 0.0  # Σ (r − m)²
    rb: float = 0.0  # Σ (r − m) w (r − q)
    bb: float = 0.0  # Σ w² (r − q)²
    above: float = 0.0  # the largest w (1 − q) there could have been
    below: float = 0.0  # the largest w (q + 1) there could have been

    def add(self, weight: Weight | None, reward: float, means: Means) -> None:
        """Count a play, and add it to the means, which are of all earlier plays.

        >>> sums = LiftSums()
        >>> sums.add(Weight(2.0, 2.0), 1.0, Means(plays=8, reward=8.0, w=16.0, wr=8.0))
        >>> sums.reward, sums.other, sums.rr, sums.rb, sums.bb  # m = q = 0.5
        (1.0, 1.5, 0.25, 0.5, 1.0)
        """
        if weight is None or weight.largest > MOST_WEIGHT:
            self.unlikely += 1
            return
        if not LEAST <= reward <= MOST:
            self.beyond += 1
            return
        w, largest = weight
        q = means.other(largest)
        r, b = reward - means.played, w * (reward - q)
        self.plays += 1
        self.reward += reward
        self.other += q + b
        self.rr += r * r
        self.rb += r * b
        self.bb += b * b
        self.above = max(self.above, largest * (MOST - q))
        self.below = max(self.below, largest * (q - LEAST))
        means.add(w, reward)

    def merged(self, later: Self) -> Self:
        sums = super().merged(later)
        sums.above, sums.below = max(self.above, later.above), max(self.below, later.below)
        return sums


class RewardSums(Sums, array_like=True):
    """The sums over any number of plays for a mean reward and its confidence sequence."""

    plays: int = 0
    beyond: int = 0  # plays with a reward beyond −1 to 1
    reward: float = 0.0  # Σ r
    squares: float = 0.0  # Σ (r − m)²

    def add(self, reward: float) -> None:
        """Count a reward."""
        mean = self.reward / self.plays if self.plays else 0.0
        self.plays += 1
        self.beyond += not LEAST <= reward <= MOST
        self.reward += reward
        self.squares += (reward - mean) ** 2


class ArmSums(msgspec.Struct, array_like=True):
    """The sums over the plays of one arm of the holdout experiment, as a whole and by cells of units."""

    plays: int = 0
    beyond: int = 0  # plays with a reward beyond −1 to 1, which are left out
    reward: float = 0.0  # Σ r
    squares: float = 0.0  # Σ (r − m)², where m is the mean of all earlier plays
    cell_plays: list[int] = msgspec.field(default_factory=lambda: [0] * CELLS)
    cell_rewards: list[float] = msgspec.field(default_factory=lambda: [0.0] * CELLS)

    def add(self, cell: int, reward: float) -> None:
        if not LEAST <= reward <= MOST:
            self.beyond += 1
            return
        self.squares += (reward - self.reward / (self.plays + PRIOR)) ** 2
        self.plays += 1
        self.reward += reward
        self.cell_plays[cell] += 1
        self.cell_rewards[cell] += reward

    @property
    def mean(self) -> float:
        return self.reward / self.plays if self.plays else 0.0

    @property
    def cells(self) -> int:
        """Return how many cells have a play."""
        return sum(map(bool, self.cell_plays))

    @property
    def variance(self) -> float:
        """Return the variance of Σ r: that between cells, but not less than that of independent plays.

        Σ_c (R_c − m N_c)² G/(G − 1), for G cells of whole units with rewards R_c in N_c plays: plays of one
        unit may depend on each other, and units do not.
        """
        mean, cells = self.mean, self.cells
        pairs = zip(self.cell_rewards, self.cell_plays, strict=True)
        between = sum((rewards - mean * plays) ** 2 for rewards, plays in pairs)
        return max(self.squares, between * cells / max(cells - 1, 1))


class HoldoutSums(msgspec.Struct, kw_only=True):
    """The plays of the policy and of the holdout since the holdout got its share and its play."""

    share: float = 0.0  # 0: there was no holdout
    play: str = ""
    policy: ArmSums = msgspec.field(default_factory=ArmSums)
    held: ArmSums = msgspec.field(default_factory=ArmSums)

    def is_of(self, assignment: Assignment) -> bool:
        return (self.share, self.play) == (assignment.share, assignment.play)

    def add(self, assignment: Assignment, reward: float) -> None:
        """Count a play whose reward is final; one from before the holdout was changed does not count."""
        if self.is_of(assignment):
            arm = self.held if assignment.is_held else self.policy
            arm.add(assignment.cell, reward)


class LoggedLift:
    """Sums of the lift over the baseline action, of rounds in the order in which they were settled.

    As in the service, a round counts if the policy decided it and all probabilities were logged.
    """

    def __init__(self) -> None:
        self.sums, self._means = LiftSums(), Means()

    def add(self, rounds: "Rounds", weights: Any) -> None:
        """Count some rounds that have a baseline action, with its weights there."""
        assert rounds.logged is not None
        assert rounds.baselines is not None
        assert rounds.is_of_policy is not None
        chances = rounds.logged[rounds.starts + rounds.baselines]
        places = np.flatnonzero(rounds.is_of_policy & ~np.isnan(chances))
        largest = (1 / chances[places]).tolist()
        columns = weights[places].tolist(), largest, rounds.rewards[places].tolist()
        for weight, most, reward in zip(*columns, strict=True):
            self.sums.add(Weight(weight, most), reward, self._means)
