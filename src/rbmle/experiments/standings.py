"""Which policy is best on a problem, and how far the others are behind, in sentences."""

from collections.abc import Sequence

from rbmle.experiments.paired import CLOSE
from rbmle.experiments.summary import Cell, Problem, Summary, policy_title


def standings(summary: Summary, problems: Sequence[Problem]) -> list[str]:
    """Return a sentence for each problem: the best policy, its equals, and the others in order."""
    lines = []
    for problem in problems:
        cells = sorted((c for c in summary.cells if c.problem == problem), key=lambda c: c.mean)
        best = cells[0]
        level = [cell for cell in cells if cell.mean <= best.mean * (1 + CLOSE)]
        behind = cells[len(level) :]
        names = _and([policy_title(cell.policy) for cell in level])
        if len(level) == 1:
            first = f"{names} is best, with a mean regret of {best.mean:,.1f}"
        else:
            first = f"{names} are best, with mean regrets within 1 % of {best.mean:,.1f}"
        others = "".join(f", {_behind(cell, best)}" for cell in behind)
        more = f"; then{others.removeprefix(',')}" if behind else ""
        lines.append(f"{summary.title(problem)}: {first}{more}.")
    return lines


def _behind(cell: Cell, best: Cell) -> str:
    """Return a policy with its distance to the best, in percent where that means something."""
    title = policy_title(cell.policy)
    if best.mean <= 0:
        return f"{title} {cell.mean:,.1f}"
    ratio = cell.mean / best.mean
    return (
        f"{title} (+{100 * (ratio - 1):,.0f} %)" if ratio < 10 else f"{title} ({ratio:,.0f} times)"
    )


def _and(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
