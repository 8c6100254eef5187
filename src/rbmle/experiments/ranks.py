"""Mean ranks of policies over problems, and how far apart they must be (Demšar 2006, JMLR 7).

Friedman's test says whether the policies differ at all, Nemenyi's which of them do.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError

LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranks:
    """The best policy of a problem has rank 1 there; equals share the middle of their ranks."""

    policies: tuple[str, ...]
    problems: int  # on which all policies were played
    means: Float[np.ndarray, " policies"] = field(repr=False)
    difference: float  # CD: mean ranks that differ by less are not told apart
    p: float  # of Friedman's test: how likely such ranks are if all policies are equal

    @property
    def cliques(self) -> list[tuple[int, ...]]:
        """Return the largest groups of policies whose mean ranks are not told apart, best first."""
        order = np.argsort(self.means, kind="stable")
        groups: list[tuple[int, ...]] = []
        for start, first in enumerate(order):
            near = [
                int(i) for i in order[start:] if self.means[i] - self.means[first] < self.difference
            ]
            if len(near) > 1 and not (groups and set(near) <= set(groups[-1])):
                groups.append(tuple(near))
        return groups


def ranks(policies: tuple[str, ...], numbers: Float[np.ndarray, "policies problems"]) -> Ranks:
    """Return the mean ranks by numbers of which the smallest is best; problems with a NaN are left out."""
    from scipy.stats import friedmanchisquare, rankdata

    whole = numbers[:, ~np.isnan(numbers).any(axis=0)]
    k, n = whole.shape
    if k < 2 or n < 2:
        raise SettingError(
            f"ranks need at least two policies and two problems that all were played on, got {k} and {n}"
        )
    found = np.array([rankdata(column) for column in whole.T])
    p = float(friedmanchisquare(*whole).pvalue) if k > 2 else float("nan")
    return Ranks(
        policies=policies,
        problems=n,
        means=found.mean(axis=0),
        difference=critical_difference(k, n),
        p=p,
    )


def critical_difference(k: int, n: int) -> float:
    """Return CD = q √(k (k + 1) / (6 n)) of k policies on n problems.

    q is the quantile of the studentised range with infinite degrees of freedom, over √2.
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / 2**0.5
    return q * (k * (k + 1) / (6 * n)) ** 0.5
