"""How much of a log tells of a policy, and what to say where that is little."""

import math

import numpy as np
from jaxtyping import Float

FEW = 100.0  # rounds of equal weight below which no estimate by weights is worth much
LITTLE, SMALL_PART = 0.5, 0.01  # of the rounds; the first where they are few
DEVIATIONS = 5.0  # by which the mean weight may differ from 1


class Overlap:
    """Sums of the weights w = π(a)/p of one policy."""

    def __init__(self) -> None:
        self.rounds = 0
        self._w = self._ww = 0.0

    def add(self, weights: Float[np.ndarray, " rounds"]) -> None:
        """Count some rounds."""
        self.rounds += len(weights)
        self._w += float(weights.sum())
        self._ww += float((weights * weights).sum())

    @property
    def effective(self) -> float:
        """Return (Σ w)² / Σ w², how many rounds of weight 1 these are worth (Kish 1965)."""
        return self._w**2 / self._ww if self._ww else 0.0

    def warnings(self, policy: str) -> list[str]:
        """Return what a reader must know before the numbers of a policy are used."""
        n = self.rounds
        if not n:
            return [
                f"{policy}: no round is left to judge it on; give a longer log, or freeze it earlier."
            ]
        if not self._w:
            return [
                f"{policy}: NO OVERLAP. In none of {n:,} rounds was an arm played that it would play, so "
                "ips, snips, clipped and replay know nothing of it, and dm, dr and switch are the reward "
                "model alone."
            ]
        found = []
        worth = f"{n:,} rounds are worth {self.effective:,.1f} ({self.effective / n:.2%})"
        if self.effective < min(FEW, LITTLE * n) or self.effective < SMALL_PART * n:
            found.append(
                f"{policy}: POOR OVERLAP. {worth}, because it seldom plays what the log has. Estimates by "
                "weights hang on a few rounds, and their intervals may be too narrow."
            )
        elif self.effective < FEW:
            found.append(f"{policy}: FEW ROUNDS. {worth}; intervals may be too narrow.")
        mean = self._w / n
        deviation = math.sqrt(max(self._ww / n - mean**2, 0.0) / n)
        if abs(mean - 1) > DEVIATIONS * deviation + 1e-9 and n >= FEW:
            found.append(
                f"{policy}: THE PROPENSITIES DO NOT FIT. The mean weight is {mean:.3g}, but it is 1 where "
                "propensities are those with which arms were drawn and every arm could be played. ips is "
                "off by about that factor; snips less so."
            )
        return found
