"""All that IPS and SNIPS of one policy need of any number of rounds.

An arm a that was played with probability p(a) and paid r counts for a policy π with the weight
w = π(a) / p(a). Both estimates are ratios: IPS is Σ w r / n, and SNIPS is Σ w r / Σ w.
"""

import msgspec
import numpy as np
from jaxtyping import Float

from rbmle.evaluation.ratio import Ratio

SMALLEST = 1e-6  # a probability below it is no chance: one weight would be most of the sum


class WeightSums(msgspec.Struct, array_like=True):
    """Sums of weights, of weighted rewards and of their products."""

    plays: int = 0  # n
    unsupported: int = 0  # plays that tell nothing: what the policy would play had no chance
    w: float = 0.0  # Σ w
    wr: float = 0.0
    ww: float = 0.0
    wwr: float = 0.0
    wwrr: float = 0.0

    def add(self, weight: float | None, reward: float) -> None:
        """Count a play; a weight of None says that it tells nothing of the policy."""
        if weight is None:
            self.unsupported += 1
            return
        self.plays += 1
        self.w += weight
        self.wr += weight * reward
        self.ww += weight * weight
        self.wwr += weight * weight * reward
        self.wwrr += weight * weight * reward * reward

    def add_all(
        self, weights: Float[np.ndarray, " rounds"], rewards: Float[np.ndarray, " rounds"]
    ) -> None:
        """Count some plays."""
        weighted = weights * rewards
        self.plays += len(weights)
        self.w += float(weights.sum())
        self.wr += float(weighted.sum())
        self.ww += float((weights * weights).sum())
        self.wwr += float((weights * weighted).sum())
        self.wwrr += float((weighted * weighted).sum())

    def merged(self, later: "WeightSums") -> "WeightSums":
        """Return both together."""
        return WeightSums(*(getattr(self, f) + getattr(later, f) for f in self.__struct_fields__))

    @property
    def effective(self) -> float:
        """Return (Σ w)² / Σ w², how many plays of weight 1 these are worth (Kish 1965)."""
        return self.w * self.w / self.ww if self.ww else 0.0

    @property
    def ips(self) -> Ratio:
        """Return the estimate by inverse propensity, N = w r and D = 1.

        >>> sums = WeightSums()
        >>> sums.add_all(np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))
        >>> sums.ips.value, sums.snips.value
        (0.5, 0.5)
        """
        return Ratio(self.wr, self.plays, self.wwrr, self.wr, self.plays)

    @property
    def snips(self) -> Ratio:
        """Return the self-normalised estimate, N = w r and D = w."""
        return Ratio(self.wr, self.w, self.wwrr, self.wwr, self.ww)
