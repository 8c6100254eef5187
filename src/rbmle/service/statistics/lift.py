"""Sums of which lifts are made: what is earned above another policy.

A play with the reward r has the weight w = π(a)/p(a) for another policy π. With m and q, which are known
before the play (the mean reward and the mean of π so far),

    b = q + w (r − q)

has the mean V_π whatever q is, and a small variance if q is near to V_π. `lift_intervals` has the rest.
"""

import msgspec

from rbmle.service.statistics.weights import Weight

LEAST, MOST = -1.0, 1.0  # rewards; sums of several rewards may be beyond
MOST_WEIGHT = 4_096.0  # a play that could have a larger one is left out
PRIOR = 8  # plays that means begin with, so that the first few do not swing them


class Means(msgspec.Struct, array_like=True):
    """The mean reward of what is played, and of another policy, so far."""

    plays: int = 0
    reward: float = 0.0  # Σ r
    w: float = 0.0  # Σ w
    wr: float = 0.0

    @property
    def played(self) -> float:
        """Return m, which is 0 before any play."""
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


class LiftSums(msgspec.Struct, array_like=True):
    """All that a lift and its confidence sequence need of any number of plays."""

    plays: int = 0  # n
    beyond: int = 0  # plays with a reward beyond −1 to 1, which are left out
    unlikely: int = (
        0  # plays whose weight could have been too large or has no bound, which are left out
    )
    reward: float = 0.0  # Σ r
    other: float = 0.0  # Σ b
    rr: float = 0.0  # Σ (r − m)²
    rb: float = 0.0  # Σ (r − m) w (r − q)
    bb: float = 0.0  # Σ w² (r − q)²
    above: float = 0.0  # the largest w (1 − q) there could have been
    below: float = 0.0  # the largest w (q + 1) there could have been

    def add(self, weight: Weight | None, reward: float, means: Means) -> None:
        """Count a play, and take it into the means, which are of all before; None tells nothing.

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

    def merged(self, later: "LiftSums") -> "LiftSums":
        """Return both together."""
        sums = {name: getattr(self, name) + getattr(later, name) for name in self.__struct_fields__}
        largest = {
            "above": max(self.above, later.above),
            "below": max(self.below, later.below),
        }
        return LiftSums(**sums | largest)


class RewardSums(msgspec.Struct, array_like=True):
    """All that a mean reward and its confidence sequence need of any number of plays."""

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

    def merged(self, later: "RewardSums") -> "RewardSums":
        """Return both together."""
        return RewardSums(
            self.plays + later.plays,
            self.beyond + later.beyond,
            self.reward + later.reward,
            self.squares + later.squares,
        )
