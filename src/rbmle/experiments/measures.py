"""Measures that compare policies: over many problems, by ranks, and over the seeds of one problem.

Bietti, Agarwal and Langford (2021), "A contextual bandit bake-off", JMLR 22.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.core.errors import SettingError
from rbmle.experiments.summary import Cell, Problem, Summary

SIGNIFICANT = 0.05  # with a smaller p, a difference is a win or a loss
# The level of earlier tables, which lacked a √2: 1 − erf(z) < 0.05 is p < 0.1658, as 1 − erf(z) is p of z√2.
LOOSE = 0.1657763
STUCK = 2.0  # times the median of all policies' mean regrets
LEAST = 1.0  # smaller regrets count as this, so that ratios are finite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measures:
    """Policies on problems; NaN where a policy was not played, or where a loss is not known."""

    policies: tuple[str, ...]
    problems: tuple[Problem, ...]
    losses: Float[np.ndarray, "policies problems"] = field(repr=False)
    regrets: Float[np.ndarray, "policies problems"] = field(repr=False)  # means over seeds
    wins: Int[np.ndarray, "policies policies"] = field(repr=False)  # of a row over a column
    loose_wins: Int[np.ndarray, "policies policies"] = field(repr=False)  # at the level LOOSE
    trials: Int[np.ndarray, " policies"]
    stuck: Int[np.ndarray, " policies"]  # how many of the trials
    milliseconds: Float[np.ndarray, " policies"]  # of CPU time, for a round

    @property
    def net(self) -> Int[np.ndarray, " policies"]:
        """Significant wins − losses over all other policies and problems."""
        return self.wins.sum(axis=1) - self.wins.sum(axis=0)

    @property
    def loose_net(self) -> Int[np.ndarray, " policies"]:
        return self.loose_wins.sum(axis=1) - self.loose_wins.sum(axis=0)

    def relative_to(
        self, at: int
    ) -> tuple[Float[np.ndarray, " policies"], Float[np.ndarray, " policies"]]:
        """Return the geometric mean of each policy's regret over that of another, and its standard error.

        Variants of a dataset are not independent, so the error is that of a mean over datasets, each with the
        mean logarithm of its variants. It is NaN if fewer than two datasets are shared.
        """
        counted = np.log(np.maximum(self.regrets, LEAST))
        logs = counted - counted[at]
        datasets = np.array([problem.dataset.partition("+")[0] for problem in self.problems])
        ratios, errors = [], []
        for row in logs:
            is_known = ~np.isnan(row)
            means = [
                row[is_known & (datasets == name)].mean() for name in np.unique(datasets[is_known])
            ]
            ratio = math.exp(row[is_known].mean()) if is_known.any() else math.nan
            ratios.append(ratio)
            few = len(means) < 2
            errors.append(math.nan if few else ratio * np.std(means, ddof=1) / len(means) ** 0.5)
        return np.array(ratios), np.array(errors)

    @property
    def ratios(self) -> Float[np.ndarray, "policies problems"]:
        """Return each mean regret relative to the best of its problem."""
        counted = np.maximum(self.regrets, LEAST)
        return counted / np.nanmin(counted, axis=0, initial=np.inf)

    @property
    def relative(self) -> Float[np.ndarray, " policies"]:
        return np.exp(np.nanmean(np.log(self.ratios), axis=1))

    @property
    def stuck_share(self) -> Float[np.ndarray, " policies"]:
        return self.stuck / self.trials

    @property
    def order(self) -> list[int]:
        """The places of policies by wins − losses, the most first; ties go to the smaller regret."""
        keys = list(zip(-self.net, self.relative, strict=True))
        return sorted(range(len(self.policies)), key=keys.__getitem__)


def measure(summary: Summary) -> Measures:
    """Return how the policies of a summary compare; a pair is compared where both were played."""
    policies, problems = summary.policies, summary.problems
    by_name = {(cell.policy, cell.problem): cell for cell in summary.cells}
    cells = [[by_name.get((policy, problem)) for problem in problems] for policy in policies]
    regrets = _numbers(cells, lambda cell: cell.mean)
    losses = _numbers(cells, loss)
    rounds = np.array([problem.horizon for problem in problems])
    limits = STUCK * np.nanmedian(regrets, axis=0) if cells else np.empty(0)
    played = [[(c, limit) for c, limit in zip(row, limits, strict=True) if c] for row in cells]
    return Measures(
        policies=policies,
        problems=problems,
        losses=losses,
        regrets=regrets,
        wins=significant_wins(losses, rounds),
        loose_wins=significant_wins(losses, rounds, LOOSE),
        trials=np.array([sum(len(cell.seeds) for cell, _ in row) for row in played], np.int64),
        stuck=np.array([sum(_stuck(*pair) for pair in row) for row in played], np.int64),
        milliseconds=np.array([_milliseconds([cell for cell, _ in row]) for row in played]),
    )


def loss(cell: Cell) -> float:
    """Return the progressive validation loss: 1 − the mean reward of the arms that were played.

    It is the mean regret of a round plus the loss of the best arm; NaN if the latter is not known.
    """
    return 1 - best_mean(cell.problem) + cell.mean / cell.problem.horizon


def best_mean(problem: Problem) -> float:
    """Return the mean reward of the right choice; NaN if it is not one number, or not in [0, 1]."""
    if not problem.preprocessing:  # not from labelled data
        return math.nan
    mean = 1.0
    for change in problem.details.get("changes", []):
        mean = change["wrong"] + (change["right"] - change["wrong"]) * mean
        if (change["scale"], change["offset"]) != (1, 0):
            return math.nan
    return mean


def loss_p_value(x: float, y: float, n: int) -> float:
    """Return the two-sided p of z = |x − y| / √((x(1 − x) + y(1 − y)) / n), of mean losses over n rounds.

    p = 1 − erf(z/√2): |z| is above 1.96 with probability 0.05 if the two are equally good.
    """
    if x == y:
        return 1.0
    variance = (x * (1 - x) + y * (1 - y)) / n
    return math.erfc(abs(x - y) / (2 * variance) ** 0.5) if variance > 0 else 0.0


def significant_wins(
    losses: Float[np.ndarray, "policies problems"],
    rounds: Int[np.ndarray, " problems"],
    level: float = SIGNIFICANT,
) -> Int[np.ndarray, "policies policies"]:
    """Return on how many problems the row's loss is significantly smaller than the column's."""
    wins = np.zeros((len(losses), len(losses)), np.int64)
    for row, ours in enumerate(losses):
        for column, theirs in enumerate(losses):
            for x, y, n in zip(ours, theirs, rounds, strict=True):
                wins[row, column] += bool(x < y and loss_p_value(x, y, int(n)) < level)
    return wins


def _numbers(cells: list[list[Cell | None]], number: Any) -> Float[np.ndarray, "policies problems"]:
    rows = [[math.nan if cell is None else number(cell) for cell in row] for row in cells]
    return np.array(rows, np.float64).reshape(len(cells), -1 if cells else 0)


def _stuck(cell: Cell, limit: float) -> int:
    return int((cell.regrets[:, -1] > limit).sum())


def _milliseconds(cells: list[Cell]) -> float:
    """Return the CPU time of a round, over all rounds of all runs."""
    seconds = sum(len(cell.seeds) * cell.cpu_seconds for cell in cells)
    return 1000 * seconds / sum(len(cell.seeds) * cell.problem.horizon for cell in cells)


FEW = 6  # with fewer seeds no p is below 0.05
CLOSE = 0.01  # "within 1% performance difference are regarded as equally competitive", table 1


def is_level(cell: Cell, best: Cell, rounds: int) -> bool:
    """Return whether a policy is statistically tied with the best after some rounds.

    The signed-rank test (Wilcoxon 1945) is over the seeds that both have played: a seed is an order of the
    data, which makes a problem easy or hard for all policies, and a trial that is stuck is one sign, however
    much it lost. With fewer than FEW seeds, a difference of at most 1 % is a tie.
    """
    p = seed_p_value(cell, best, rounds)
    return cell.at(rounds)[0] <= best.at(rounds)[0] * (1 + CLOSE) if p is None else p >= SIGNIFICANT


def seed_p_value(cell: Cell, other: Cell, rounds: int) -> float | None:
    """Return the p-value of the signed-rank test on shared seeds; None if there are fewer than FEW."""
    from scipy.stats import wilcoxon

    shared = sorted(set(cell.seeds) & set(other.seeds))
    if len(shared) < FEW:
        return None
    first, second = (_seed_regrets(run, shared, rounds) for run in (cell, other))
    return float(wilcoxon(first, second).pvalue) if (first != second).any() else 1.0


def _seed_regrets(cell: Cell, seeds: list[int], rounds: int) -> np.ndarray:
    return np.array([cell.regrets[cell.seeds.index(seed), rounds - 1] for seed in seeds])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranks:
    """Mean ranks of policies; the best of a problem has rank 1 there, and ties share the mean rank."""

    policies: tuple[str, ...]
    problems: int  # on which all policies were played
    means: Float[np.ndarray, " policies"] = field(repr=False)
    difference: float  # CD: mean ranks that differ by less are tied
    p: float  # of Friedman's test that all policies are equal

    @property
    def cliques(self) -> list[tuple[int, ...]]:
        """The largest groups of policies whose mean ranks are tied, best first."""
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
    by_problem = np.array([rankdata(column) for column in whole.T])
    p = float(friedmanchisquare(*whole).pvalue) if k > 2 else float("nan")
    return Ranks(
        policies=policies,
        problems=n,
        means=by_problem.mean(axis=0),
        difference=critical_difference(k, n),
        p=p,
    )


def critical_difference(k: int, n: int) -> float:
    """Return CD = q √(k (k + 1) / (6 n)) of k policies on n problems.

    q is the quantile of the studentised range with infinite degrees of freedom, over √2.
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - SIGNIFICANT, k, np.inf)) / 2**0.5
    return q * (k * (k + 1) / (6 * n)) ** 0.5
