"""How ν is tuned: the trials of a grid, the best of it, and what the whole of it looks like."""

from collections.abc import Iterable
from typing import Any

from rbmle.environments import Classification
from rbmle.experiments.summary import Cell, Problem, Summary
from rbmle.experiments.tables import Entry, Table
from rbmle.experiments.trial import Trial
from rbmle.policies import POLICIES
from rbmle.studies.tuned import CONSTANTS, FIRST_SEED, GRID, Choice, choice_key, with_constant


def grid(names: Iterable[str]) -> list[tuple[str, Any]]:
    """Return (policy@constant, policy) for each policy that has a constant and each of the grid."""
    return [
        (f"{name}@{constant:g}", with_constant(name, POLICIES[name](), constant))
        for name in names
        if name in CONSTANTS
        for constant in GRID
    ]


def tuning_trials(
    names: Iterable[str], worlds: Iterable[Classification], rounds: int, seeds: int
) -> list[Trial]:
    """Return the trials of the grid; a dataset with fewer rows is played once through."""
    return [
        Trial(
            policy=policy,
            name=name,
            environment=world,
            horizon=min(rounds, world.rows),
            seed=FIRST_SEED + seed,
        )
        for world in worlds
        for name, policy in grid(names)
        for seed in range(seeds)
    ]


def choices(summary: Summary) -> dict[str, Choice]:
    """Return the best of the grid for each problem and policy; of equals the smallest."""
    cells: dict[str, list[Cell]] = {}
    for cell in summary.cells:
        cells.setdefault(_key(cell.problem, _name(cell)), []).append(cell)
    return {key: _choice(group) for key, group in cells.items()}


def grid_table(summary: Summary, problem: Problem) -> Table:
    """Return the mean of every constant on a problem, the chosen ones in bold."""
    found = choices(summary)
    rows = []
    for name in dict.fromkeys(_name(cell) for cell in summary.cells if cell.problem == problem):
        choice = found[_key(problem, name)]
        entries = [
            Entry(text=f"{mean:.1f}", is_best=float(constant) == choice.constant)
            for constant, mean in choice.regrets.items()
        ]
        rows.append((name, tuple(entries)))
    seeds = len(summary.cells[0].seeds)
    return Table(
        caption=(
            f"Mean regret on {summary.title(problem)} after {problem.horizon:,} rounds, {seeds} seeds from "
            f"{FIRST_SEED} on, by ν. In bold what is chosen."
        ),
        corner=summary.title(problem),
        columns=tuple(f"{constant:g}" for constant in GRID),
        rows=tuple(rows),
    )


def edges(found: dict[str, Choice]) -> list[str]:
    """Return the choices at an edge of the grid, by name and constant."""
    return [f"{key} ({c.constant:g})" for key, c in found.items() if c.is_at_the_edge]


def _choice(cells: list[Cell]) -> Choice:
    """Return the best of the cells of one policy on one problem."""
    cells = sorted(cells, key=_constant, reverse=True)
    best = min(cells, key=lambda cell: (cell.mean, _constant(cell)))
    return Choice(
        constant=_constant(best),
        regrets={f"{_constant(cell):g}": round(cell.mean, 2) for cell in cells},
        seeds=list(best.seeds),
        rounds=best.problem.horizon,
        versions=best.versions[0],
    )


def _key(problem: Problem, name: str) -> str:
    """Return the name of a choice."""
    return choice_key(problem.preprocessing, problem.dataset, name)


def _name(cell: Cell) -> str:
    """Return the policy of policy@constant."""
    return cell.policy.partition("@")[0]


def _constant(cell: Cell) -> float:
    """Return the constant of policy@constant."""
    return float(cell.policy.partition("@")[2])
