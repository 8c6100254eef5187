"""How policies compare over many problems, by the measures of the contextual bandit bake-off.

Bietti, Agarwal and Langford (2021), "A contextual bandit bake-off", JMLR 22.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rbmle.experiments.summary import Cell, Problem, Summary

SIGNIFICANT = 0.05  # a smaller p is a win, or a loss
# The level of earlier tables, which left out a √2: 1 − erf(z) < 0.05 is p < 0.1658, as 1 − erf(z) is p of z√2.
LOOSE = 0.1657763
STUCK = 2.0  # times the median of all policies' mean regrets
LEAST = 1.0  # a smaller regret counts as this, so that every ratio is a number


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
        """Return significant wins − losses over all other policies and problems."""
        return self.wins.sum(axis=1) - self.wins.sum(axis=0)

    @property
    def loose_net(self) -> Int[np.ndarray, " policies"]:
        """Return wins − losses at the level of earlier tables."""
        return self.loose_wins.sum(axis=1) - self.loose_wins.sum(axis=0)

    def relative_to(
        self, at: int
    ) -> tuple[Float[np.ndarray, " policies"], Float[np.ndarray, " policies"]]:
        """Return the geometric mean of each policy's regret over that of another, and its standard error.

        Variants of one dataset are not independent: the error is that of the mean over datasets, each with
        the mean logarithm of its variants. It is NaN where fewer than two datasets are shared.
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
        """Return the geometric mean of each policy's ratios."""
        return np.exp(np.nanmean(np.log(self.ratios), axis=1))

    @property
    def stuck_share(self) -> Float[np.ndarray, " policies"]:
        """Return the share of trials that got stuck."""
        return self.stuck / self.trials

    @property
    def order(self) -> list[int]:
        """Return the policies' places: most wins − losses first, of equals the smaller regret."""
        keys = list(zip(-self.net, self.relative, strict=True))
        return sorted(range(len(self.policies)), key=keys.__getitem__)


def measure(summary: Summary) -> Measures:
    """Return how the policies of a summary compare; a pair is compared where both were played."""
    policies, problems = summary.policies, summary.problems
    found = {(cell.policy, cell.problem): cell for cell in summary.cells}
    cells = [[found.get((policy, problem)) for problem in problems] for policy in policies]
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
        stuck=np.array([sum(_stuck(*each) for each in row) for row in played], np.int64),
        milliseconds=np.array([_milliseconds([cell for cell, _ in row]) for row in played]),
    )


def loss(cell: Cell) -> float:
    """Return the progressive validation loss: 1 − the mean reward of the arms that were played.

    That is the mean regret of a round and what even the best arm loses. NaN if that is not known.
    """
    return 1 - best_mean(cell.problem) + cell.mean / cell.problem.horizon


def best_mean(problem: Problem) -> float:
    """Return the mean reward of the right choice; NaN if it is not one number, or not in [0, 1]."""
    if not problem.preprocessing:  # a problem that is not made of labelled data
        return math.nan
    mean = 1.0
    for change in json.loads(dict(problem.details).get("changes", "[]")):
        mean = change["wrong"] + (change["right"] - change["wrong"]) * mean
        if (change["scale"], change["offset"]) != (1, 0):
            return math.nan
    return mean


def p_value(x: float, y: float, n: int) -> float:
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
                wins[row, column] += bool(x < y and p_value(x, y, int(n)) < level)
    return wins


def _numbers(cells: list[list[Cell | None]], number: Any) -> Float[np.ndarray, "policies problems"]:
    """Return a number of each cell; NaN where there is none."""
    rows = [[math.nan if cell is None else number(cell) for cell in row] for row in cells]
    return np.array(rows, np.float64).reshape(len(cells), -1 if cells else 0)


def _stuck(cell: Cell, limit: float) -> int:
    """Return how many runs of a cell have a regret above a limit."""
    return int((cell.regrets[:, -1] > limit).sum())


def _milliseconds(cells: list[Cell]) -> float:
    """Return the CPU time of a round, over all rounds of all runs."""
    seconds = sum(len(cell.seeds) * cell.cpu_seconds for cell in cells)
    return 1000 * seconds / sum(len(cell.seeds) * cell.problem.horizon for cell in cells)
