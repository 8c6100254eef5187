"""Running trials: `rbmle run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rbmle.cli.app import app, open_console
from rbmle.cli.extras import require
from rbmle.cli.options import (
    DataDir,
    Datasets,
    Drop,
    ExecutorName,
    Jobs,
    Preprocessing,
    SettingsOption,
    Target,
    environments,
    named_policies,
)
from rbmle.cli.showing import show, write_records
from rbmle.core.errors import SettingError

if TYPE_CHECKING:
    from rbmle.environments import Environment
    from rbmle.experiments.trial import Run, Trial

USUAL_ROUNDS = 2000


@app.command()
def run(
    dataset: Datasets,
    policy: Annotated[
        str,
        typer.Option(help="Policies with commas between, such as lin-ucb:exploration=1; or 'all'."),
    ] = "all",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of each trial; 2,000, or all rows if fewer.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each policy.")] = 3,
    target: Target = None,
    drop: Drop = "",
    preprocess: Preprocessing = "standard",
    settings: SettingsOption = None,
    tuned: Annotated[
        Path | None, typer.Option(help="Constants that rbmle tune wrote; --set stands before them.")
    ] = None,
    recycle: Annotated[bool, typer.Option(help="Use rows again when they run out.")] = False,
    jobs: Jobs = -1,
    executor: ExecutorName = "processes",
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = Path(
        "results/run"
    ),
    records: Annotated[
        Path | None, typer.Option("--json", help="File for one record per trial.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare policies on datasets; runs that are in the folder already are not repeated."""
    from rbmle.experiments.summary import summarise
    from rbmle.experiments.trial import Trial
    from rbmle.studies.tuned import Data, Tuned

    console = open_console()
    specs = named_policies(policy, settings, console)
    worlds = environments(dataset, target, drop, preprocess, data_dir, console)
    horizons = {name: horizon_of(name, world, rounds, recycle) for name, world in worlds.items()}
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


def horizon_of(name: str, world: "Environment", rounds: int | None, recycle: bool) -> int:
    """Return the rounds to play on a problem; a synthetic one has no rows, and no end."""
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
    """Run what is missing, stored in the folder."""
    require("experiments")
    from rbmle.experiments.campaign import campaign
    from rbmle.experiments.executors import executor
    from rbmle.experiments.store import Store

    store = Store(folder=out / "runs")
    try:
        return campaign(trials, store, executor(name, jobs), console)
    except KeyboardInterrupt:
        done = sum(store.get(trial) is not None for trial in trials)
        console.print(
            f"Stopped. {done} of {len(trials)} trials are in {store.folder}; "
            "type the same command to go on."
        )
        raise typer.Exit(130) from None
