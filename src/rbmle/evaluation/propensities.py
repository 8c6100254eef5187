"""Propensities that a log does not have, estimated from how often each arm was played."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.evaluation.rounds import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmShares:
    """p(a) = s_a / Σ_b s_b over the arms b of a round, with s_a = plays of a / offers of a.

    It is right where the logging policy did not look at the context.
    """

    shares: Mapping[str, float]  # s

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
