"""How much of a log tells of a policy, and what to say where that is little."""

import math

import numpy as np
from jaxtyping import Float

from rbmle.evaluation.estimators import Offered
from rbmle.evaluation.rounds import Rounds
from rbmle.evaluation.weight_sums import WeightSums

FEW = 100.0  # rounds of equal weight below which no estimate by weights is worth much
LITTLE, SMALL_PART = 0.5, 0.01  # of the rounds; the first where they are few
UNSEEN = 4.0  # times that Σ w² should be what it is
ROUNDING = 1e-9  # of probabilities
DEVIATIONS = 5.0  # by which the mean weight may differ from 1


class Reach:
    """Which weights a policy could have had, whatever was played."""

    def __init__(self) -> None:
        self.unknown = 0  # rounds that do not tell
        self.lost = 0  # rounds where it may play what had no chance
        self.largest = 0.0  # weight there could have been
        self.squares = 0.0  # the mean of Σ w²

    def add(
        self,
        rounds: Rounds,
        chances: Float[np.ndarray, " arms"],
        predictions: Float[np.ndarray, " arms"],
        floor: float | None,
    ) -> Offered | None:
        """Take some rounds, and return all of their arms; None if some weights are not known."""
        p = rounds.logged
        if p is None:
            p = np.full(len(chances), np.nan)
        is_unknown = np.isnan(p)
        unknown = int((rounds.totals(is_unknown.astype(float)) > 0).sum())
        if unknown and floor is None:
            self.unknown += unknown
            return None
        p = np.where(is_unknown, floor or 0.0, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(chances > 0, chances / p, 0.0)
        is_lost = (p == 0) & (chances > 0)
        if is_lost.any():
            self.lost += int((rounds.totals(np.where(is_lost, chances, 0.0)) > ROUNDING).sum())
        seen = np.where(is_lost, 0.0, weights)
        self.largest = max(self.largest, float(seen.max(initial=0.0)))
        self.squares += float((seen * np.where(is_unknown, 0.0, chances)).sum())
        return Offered(
            sizes=rounds.sizes,
            at=rounds.at,
            chances=chances,
            falls=np.maximum(weights - chances, 0.0),
            predictions=predictions,
        )


def overlap_warnings(policy: str, sums: WeightSums, reach: Reach | None = None) -> list[str]:
    """Return what a reader must know before the numbers of a policy are used."""
    n = sums.plays
    if not n:
        return [
            f"{policy}: no round is left to judge it on; give a longer log, or freeze it earlier."
        ]
    if not sums.w:
        return [
            f"{policy}: NO OVERLAP. In none of {n:,} rounds was an arm played that it would play, so "
            "ips, snips, clipped and replay know nothing of it, and dm, dr and switch are the reward "
            "model alone."
        ]
    found = []
    worth = f"{n:,} rounds are worth {sums.effective:,.1f} ({sums.effective / n:.2%})"
    if sums.effective < min(FEW, LITTLE * n) or sums.effective < SMALL_PART * n:
        found.append(
            f"{policy}: POOR OVERLAP. {worth}, because it seldom plays what the log has. Estimates by "
            "weights hang on a few rounds, and their intervals may be too narrow."
        )
    elif sums.effective < FEW:
        found.append(f"{policy}: FEW ROUNDS. {worth}; intervals may be too narrow.")
    if reach is not None and reach.squares > UNSEEN * sums.ww:
        found.append(
            f"{policy}: UNSEEN WEIGHTS. Weights could have been as large as {reach.largest:,.0f}, and such "
            "rounds hardly came, but the value depends on them as on others. snips, dr and replay are those "
            "of the other rounds, and intervals by the bootstrap or the normal distribution know nothing of it."
        )
    mean = sums.w / n
    deviation = math.sqrt(max(sums.ww / n - mean**2, 0.0) / n)
    if abs(mean - 1) > DEVIATIONS * deviation + 1e-9 and n >= FEW:
        found.append(
            f"{policy}: THE PROPENSITIES DO NOT FIT. The mean weight is {mean:.3g}, but it is 1 where "
            "propensities are those with which arms were drawn and every arm could be played. ips is "
            "off by about that factor; snips less so."
        )
    return found
