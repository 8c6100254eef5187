"""How ν is tuned: the trials of a grid, the best of it, and what the whole of it looks like."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rbmle.core.errors import SettingError
from rbmle.environments import Environment
from rbmle.experiments.measures import measure
from rbmle.experiments.summary import Cell, Problem, Summary, file_names
from rbmle.experiments.tables import Entry, ReportTable
from rbmle.experiments.trial import Run, Trial
from rbmle.policies.registry import Specification
from rbmle.policies.settings import has_setting, split
from rbmle.studies.base import (
    FIELDS,
    FIRST_SEED,
    GRID,
    Choice,
    Contender,
    Plan,
    choice_key,
    constant_of,
)

FIRST_LOOK = 3  # seeds that every value is tried on where only the best of a grid have all
FOLDER_AND_NAME = 2  # parts of a path by which a file is known in tuned.json


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A policy, and the values that one of its settings is tried with."""

    spec: Specification
    setting: str
    values: tuple[float, ...] = GRID

    def name(self, value: float) -> str:
        return f"{self.spec.name}@{value:g}"


def grids(specs: Sequence[Specification], wanted: str | None = None) -> list[Grid]:
    """Return the grid of each policy that has what is tuned; `wanted` is such as bias=0.01,0.1,1."""
    names = [spec.name for spec in specs]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise SettingError(f"{twice[0]} is named twice; tune one setting of a policy at a time")
    if wanted is None:
        constants = [(spec, constant_of(spec.kind)) for spec in specs]
        chosen = [Grid(spec=spec, setting=key) for spec, key in constants if key is not None]
        if not chosen:
            raise SettingError(
                f"{', '.join(names)} has none of the settings that are tuned, {', '.join(FIELDS)}; "
                "say what to tune, as in --grid weight=0.01,0.1,1"
            )
        return chosen
    key, values = _read(wanted)
    having = [spec for spec in specs if has_setting(spec.policy(), key)]
    if not having:
        raise SettingError(f"{', '.join(names)} has no setting {key!r}; see rbmle policies")
    return [Grid(spec=spec, setting=key, values=values) for spec in having]


def tuning_trials(
    grids: Iterable[Grid], worlds: Iterable[Environment], rounds: int, seeds: int
) -> list[Trial]:
    """Return the trials of the grids; a dataset with fewer rows is played once through."""
    return [
        Trial(
            policy=grid.spec.policy({grid.setting: value}),
            name=grid.name(value),
            environment=world,
            horizon=rounds if world.rows is None else min(rounds, world.rows),
            seed=FIRST_SEED + seed,
        )
        for world in worlds
        for grid in grids
        for value in grid.values
        for seed in range(seeds)
    ]


def contender_trials(
    plan: Plan, contenders: Iterable[Contender], rounds: int, seeds: int
) -> list[Trial]:
    """Return the trials of the grid of each contender of a study, at most as long as the study's."""
    return [
        Trial(
            policy=contender.with_constant(value).policy,
            name=f"{contender.key}@{value:g}",
            environment=plan.world(contender.dataset),
            horizon=min(rounds, plan.horizon(contender.dataset)),
            seed=FIRST_SEED + seed,
        )
        for contender in contenders
        for value in contender.values
        for seed in range(seeds)
    ]


def first_look(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.seed < FIRST_SEED + FIRST_LOOK]


def finalists(trials: Iterable[Trial], runs: Iterable[Run], count: int) -> list[Trial]:
    """Return the trials yet to run of the values with the smallest mean so far: `count` of each grid."""
    regrets = {run.id: run.final_regret for run in runs}
    missing = []
    regrets_by_grid: dict[tuple[Environment, str], dict[str, list[float]]] = {}
    for trial in trials:
        if (regret := regrets.get(trial.id)) is None:
            missing.append(trial)
        else:
            means = regrets_by_grid.setdefault((trial.environment, _policy_of(trial)), {})
            means.setdefault(trial.name, []).append(regret)
    best = {grid: _smallest(means, count) for grid, means in regrets_by_grid.items()}
    return [t for t in missing if t.name in best.get((t.environment, _policy_of(t)), ())]


def contender_grids(contenders: Iterable[Contender]) -> list[Grid]:
    """Return the grid of each contender that has something to tune, once for all datasets."""
    grids_by_key = {
        contender.key: Grid(
            spec=Specification(name=contender.key, kind=type(contender.policy)),
            setting=contender.constant,
            values=contender.values,
        )
        for contender in contenders
        if contender.constant is not None
    }
    return list(grids_by_key.values())


def choices(summary: Summary, grids: Iterable[Grid]) -> dict[str, Choice]:
    """Return the best of the grid for each problem and policy; of equals the smallest."""
    known = _data_names(summary)
    chosen = {}
    for problem in summary.problems:
        for grid in grids:
            by_value = {
                value: cell
                for value in grid.values
                if (cell := summary.cell(problem, grid.name(value))) is not None
            }
            if by_value:
                key = choice_key(problem.preprocessing, known[problem], grid.spec.name)
                chosen[key] = _choice(by_value, grid.setting)
    return chosen


def grid_table(summary: Summary, problem: Problem, grids: Sequence[Grid]) -> ReportTable:
    """Return the mean of every value on a problem, the chosen ones in bold."""
    chosen = choices(summary, grids)
    known = _data_names(summary)[problem]
    values = grids[0].values
    rows = []
    for grid in grids:
        choice = chosen[choice_key(problem.preprocessing, known, grid.spec.name)]
        entries = [
            Entry(text=f"{choice.regrets[f'{value:g}']:.1f}", is_best=value == choice.constant)
            for value in values
        ]
        rows.append((grid.spec.name, tuple(entries)))
    counts = sorted({n for choice in chosen.values() for n in choice.counts.values()})
    seeds = "1 seed" if counts == [1] else f"{' or '.join(map(str, counts))} seeds"
    settings = " or ".join(dict.fromkeys(grid.setting for grid in grids))
    return ReportTable(
        caption=(
            f"Mean regret on {summary.title(problem)} after {problem.horizon:,} rounds, {seeds} from "
            f"{FIRST_SEED} on, by {settings}. In bold what is chosen."
        ),
        corner=summary.title(problem),
        columns=tuple(f"{value:g}" for value in values),
        rows=tuple(rows),
    )


def grid_tables(summary: Summary, grids: Sequence[Grid]) -> list[ReportTable]:
    """Return a table for each problem, or several where policies are tried with different values."""
    by_values: dict[tuple[float, ...], list[Grid]] = {}
    for grid in grids:
        by_values.setdefault(grid.values, []).append(grid)
    tables = []
    for problem in summary.problems:
        for some in by_values.values():
            played = [g for g in some if summary.cell(problem, g.name(g.values[0])) is not None]
            if played:
                tables.append(grid_table(summary, problem, played))
    return tables


def pooled_table(summary: Summary, grid: Grid) -> ReportTable:
    """Return how each value does on all problems together, for one constant that has to serve them all.

    It is the geometric mean over problems of the regret relative to that of the best value, with its standard
    error over datasets, whose variants count as one.
    """
    values = sorted(grid.values)
    cells = [cell for cell in summary.cells if cell.policy in map(grid.name, values)]
    measures = measure(Summary(cells=tuple(cells)))
    place = {name: at for at, name in enumerate(measures.policies)}
    sums = measures.relative_to(0)[0]
    best = min(values, key=lambda value: sums[place[grid.name(value)]])
    ratios, errors = measures.relative_to(place[grid.name(best)])
    entries = []
    for value in values:
        at = place[grid.name(value)]
        error = "" if value == best else f" ± {errors[at]:.3f}"
        entries.append(Entry(text=f"{ratios[at]:.3f}{error}", is_best=value == best))
    return ReportTable(
        caption=(
            f"Regret relative to the best value, geometric mean over {len(measures.problems)} problems, ± "
            "its standard error over datasets; seeds from "
            f"{FIRST_SEED} on."
        ),
        corner=f"{grid.spec.name}, {grid.setting}",
        columns=tuple(f"{value:g}" for value in values),
        rows=(("regret / best", tuple(entries)),),
    )


def edges(chosen: dict[str, Choice]) -> list[str]:
    """Return the choices at an edge of the grid, by name and constant."""
    return [f"{key} ({c.constant:g})" for key, c in chosen.items() if c.is_at_the_edge]


def _smallest(regrets: dict[str, list[float]], count: int) -> list[str]:
    return sorted(regrets, key=lambda name: fmean(regrets[name]))[:count]


def _policy_of(trial: Trial) -> str:
    return trial.name.rpartition("@")[0]


def _choice(cells: dict[float, Cell], setting: str) -> Choice:
    """Return the best of the cells of one policy on one problem, of those with the most seeds."""
    values = sorted(cells, reverse=True)
    most = max(len(cell.seeds) for cell in cells.values())
    last = [value for value in values if len(cells[value].seeds) == most]
    best = min(last, key=lambda value: (cells[value].mean, value))
    return Choice(
        constant=best,
        counts={f"{value:g}": len(cells[value].seeds) for value in values},
        regrets={f"{value:g}": round(cells[value].mean, 2) for value in values},
        seeds=list(cells[best].seeds),
        rounds=cells[best].problem.horizon,
        versions=cells[best].versions[0],
        setting=setting,
    )


def _data_names(summary: Summary) -> dict[Problem, str]:
    """Return the names of the data in tuned.json: of a file its folder and name, or more of its path."""
    files = [problem.file for problem in summary.problems if problem.file]
    known = file_names(files, FOLDER_AND_NAME)
    return {
        problem: known[problem.file] if problem.file else problem.dataset
        for problem in summary.problems
    }


def _read(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the setting and the values of bias=0.01,0.1,1."""
    key, _, values = text.partition("=")
    try:
        numbers = tuple(sorted({float(value) for value in split(values, ",")}, reverse=True))
    except ValueError:
        numbers = ()
    if not numbers or not key.strip():
        raise SettingError(
            f"--grid {text} is not understood; write a setting and numbers, as in bias=0.01,0.1,1"
        )
    return key.strip(), numbers
