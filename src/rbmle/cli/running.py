"""`rbmle run`: trials, the table and curves of each problem, and a record of each trial."""

import json
from collections import Counter
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rbmle.cli.app import COMPARE, command, open_console
from rbmle.cli.extras import require
from rbmle.cli.options import (
    POLICY_HELP,
    DataDir,
    Datasets,
    Drop,
    ExecutorName,
    Jobs,
    Preprocessing,
    SettingsOption,
    Target,
    complete_policy,
    environments,
    named_policies,
)
from rbmle.core.errors import SettingError
from rbmle.core.files import write_text, written_whole

if TYPE_CHECKING:
    from rbmle.environments import Environment
    from rbmle.experiments.summary import Cell, Summary
    from rbmle.experiments.trial import Run, Trial

USUAL_ROUNDS = 2000


@command(COMPARE)
def run(
    dataset: Datasets,
    policy: Annotated[str, typer.Option(autocompletion=complete_policy, help=POLICY_HELP)] = "all",
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rounds of each trial.",
            show_default="2,000, or all rows if there are fewer",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Trials of each policy, with seeds 0, 1, …")
    ] = 3,
    target: Target = None,
    drop: Drop = "",
    preprocess: Preprocessing = "standard",
    settings: SettingsOption = None,
    tuned: Annotated[
        Path | None,
        typer.Option(help="Constants that rbmle tune wrote; settings you give take precedence."),
    ] = None,
    recycle: Annotated[
        bool, typer.Option(help="Start over when the rows run out.", show_default=False)
    ] = False,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = Path(
        "results/run"
    ),
    records: Annotated[
        Path | None, typer.Option("--json", help="Also write one record per trial to this file.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare policies on datasets. Runs that are already in the folder are not repeated.

    rbmle run --dataset adult,mushroom --policy neural-rbmle-ga,lin-ucb:exploration=0.5
    rbmle run --dataset my.csv --target bought --policy all --rounds 5000
    rbmle run --dataset adult+noise --policy all:model.ridge=0.1 --seeds 10
    """
    from rbmle.experiments.summary import summarise
    from rbmle.experiments.trial import Trial
    from rbmle.studies.base import Data, Tuned

    console = open_console()
    specs = named_policies(policy, settings, console)
    worlds = environments(dataset, target, drop, preprocess, data_dir, console)
    horizons = {name: _horizon(name, world, rounds, recycle) for name, world in worlds.items()}
    constants = Tuned() if tuned is None else Tuned.read(tuned)
    trials = [
        Trial(
            policy=spec.policy(constants.settings(spec.name, Data.of(world))),
            name=spec.name,
            environment=world,
            horizon=horizons[problem],
            seed=seed,
        )
        for problem, world in worlds.items()
        for spec in specs
        for seed in range(seeds)
    ]
    if tuned is not None:
        data, names = [Data.of(world) for world in worlds.values()], [spec.name for spec in specs]
        constants.check(data, names)
        console.print(constants.origin(data, names), soft_wrap=True)
    runs = run_missing(trials, out, executor, jobs, console)
    summary = summarise(runs)
    show(summary, out, console)
    if records is not None:
        write_records(runs, summary, records)
        console.print(f"The records are in {records}.")


def _horizon(name: str, world: "Environment", rounds: int | None, recycle: bool) -> int:
    """Return the number of rounds to play on a problem; a synthetic one has no rows to run out of."""
    if world.rows is None:
        return rounds or USUAL_ROUNDS
    if rounds is not None and rounds > world.rows and not recycle:
        raise SettingError(
            f"{rounds} rounds are more than the {world.rows} rows of {name}; "
            f"use --rounds {world.rows} or less, or --recycle"
        )
    return rounds or min(USUAL_ROUNDS, world.rows)


def run_missing(
    trials: "list[Trial]", out: Path, name: str, jobs: int, console: Console
) -> "list[Run]":
    """Return the runs of all trials; those that the folder lacks are run and stored there."""
    require("experiments")
    from rbmle.experiments.executors import campaign, executor
    from rbmle.experiments.store import Store

    store = Store(folder=out / "runs")
    try:
        return campaign(trials, store, executor(name, jobs), console)
    except KeyboardInterrupt:
        done = sum(store.get(trial) is not None for trial in trials)
        console.print(
            f"Stopped. {done} of {len(trials)} trials are in {store.folder}; "
            "run the same command again to continue."
        )
        raise typer.Exit(130) from None


def show(summary: "Summary", out: Path, console: Console) -> None:
    """Print a table for each problem, and draw its curves.

    As in reports, ± is the standard error of the mean: the standard deviation over seeds, divided by the square
    root of their number.
    """
    from rbmle.experiments.figures import regret_curves

    names = Counter(summary.name(problem) for problem in summary.problems)
    for problem in summary.problems:
        cells = [cell for cell in summary.cells if cell.problem == problem]
        title, number = summary.title(problem), len(cells[0].seeds)
        seeds = "1 seed" if number == 1 else f"{number} seeds"
        table = Table("policy", "regret", "± std error", "rounds per CPU second")
        table.title = f"Regret on {title} after {problem.horizon:,} rounds, mean of {seeds}"
        for column in table.columns[1:]:
            column.justify = "right"
        for cell in sorted(cells, key=lambda cell: cell.mean):
            table.add_row(*_row(cell))
        console.print(table)
        name = summary.name(problem)
        picture, curves = BytesIO(), {cell.policy: cell.regrets for cell in cells}
        regret_curves(curves, f"{title}, mean of {seeds}", picture)
        stem = _file_name(name if names[name] == 1 else title)
        figure = _add_picture(picture.getvalue(), out, stem)
        console.print(f"The curves are in {figure}.", soft_wrap=True)


def write_records(runs: "list[Run]", summary: "Summary", path: Path) -> None:
    """Write one record per trial, whole or not at all."""
    cells = {id: cell for cell in summary.cells for id in cell.ids}
    lines = [
        {
            "dataset": summary.name(cells[run.id].problem),
            "policy": cells[run.id].policy,
            "seed": run.seed,
            "rounds": len(run.regrets),
            "final_regret": run.final_regret,
            "cpu_seconds": run.cpu_seconds,
            "wall_seconds": run.wall_seconds,
            "settings": run.settings,
            "versions": run.versions,
        }
        for run in runs
    ]
    write_text(path, json.dumps(lines, indent=1))


def _row(cell: "Cell") -> tuple[str, ...]:
    error = "–" if cell.std is None else f"{cell.std / len(cell.seeds) ** 0.5:,.1f}"
    speed = cell.problem.horizon / max(cell.cpu_seconds, 1e-9)
    return cell.policy, f"{cell.mean:,.1f}", error, f"{speed:,.0f}"


def _add_picture(picture: bytes, folder: Path, stem: str) -> Path:
    """Write a picture and return its path; it gets a number if another picture has that name."""
    for number in count(1):
        path = folder / (f"{stem}.png" if number == 1 else f"{stem}-{number}.png")
        if not path.exists():
            with written_whole(path) as file:
                file.write(picture)
            return path
        if path.read_bytes() == picture:
            return path
    raise AssertionError("there is always another number")


def _file_name(title: str) -> str:
    kept = "".join(c if c.isalnum() or c in "._=+-" else " " for c in title)
    return "-".join(kept.split())
