"""How much of a log tells of a policy, and what to say where that is little."""

import math

from rbmle.evaluation.weight_sums import WeightSums

FEW = 100.0  # rounds of equal weight below which no estimate by weights is worth much
LITTLE, SMALL_PART = 0.5, 0.01  # of the rounds; the first where they are few
DEVIATIONS = 5.0  # by which the mean weight may differ from 1


def overlap_warnings(policy: str, sums: WeightSums) -> list[str]:
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
    mean = sums.w / n
    deviation = math.sqrt(max(sums.ww / n - mean**2, 0.0) / n)
    if abs(mean - 1) > DEVIATIONS * deviation + 1e-9 and n >= FEW:
        found.append(
            f"{policy}: THE PROPENSITIES DO NOT FIT. The mean weight is {mean:.3g}, but it is 1 where "
            "propensities are those with which arms were drawn and every arm could be played. ips is "
            "off by about that factor; snips less so."
        )
    return found
