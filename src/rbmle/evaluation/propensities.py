"""Propensities that a log does not have, estimated from how often each arm was played."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

from rbmle.evaluation.rounds import Rounds


class Propensities(Protocol):
    """What fills in the propensities that a log does not have."""

    @property
    def smallest(self) -> float:
        """Return what no propensity of an arm that was played is below; 1 if there is none."""
        ...

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        """Return the propensities of a log, estimated where they are not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShares:
    """p(a) = s_a / Σ_b s_b over the arms b of a round, with s_a = plays of a / offers of a.

    It is right where the logging policy did not look at the context.
    """

    shares: Mapping[str, float]  # s

    @staticmethod
    def counted(every: Iterable[Rounds]) -> "ArmShares":
        """Return the shares of the arms in some rounds."""
        offered, played = Counter[str](), Counter[str]()
        for rounds in every:
            most = int(rounds.sizes.max())
            counts = np.bincount(rounds.offered * most + rounds.played)
            for code in np.flatnonzero(counts).tolist():
                ids, count = rounds.offers[code // most].ids, int(counts[code])
                played[ids[code % most]] += count
                offered.update(dict.fromkeys(ids, count))
        return ArmShares(shares={id: played[id] / count for id, count in offered.items()})

    @property
    def smallest(self) -> float:
        """Return what no propensity of an arm that was played is below; 1 if there is none."""
        found = [share for share in self.shares.values() if share]
        return min(found) / sum(found) if found else 1.0

    def fill(self, rounds: Rounds) -> Float[np.ndarray, " rounds"]:
        """Return the propensities of a log, estimated where they are not known."""
        missing = np.isnan(rounds.propensities)
        if not missing.any():
            return rounds.propensities
        tables = {
            k: _normalised([self.shares[id] for id in rounds.offers[k].ids])
            for k in np.unique(rounds.offered[missing]).tolist()
        }
        pairs = zip(rounds.offered[missing].tolist(), rounds.played[missing].tolist(), strict=True)
        filled = rounds.propensities.copy()
        filled[missing] = [tables[k][place] for k, place in pairs]
        return filled


def _normalised(values: list[float]) -> Float[np.ndarray, " arms"]:
    found = np.array(values)
    return found / found.sum()
