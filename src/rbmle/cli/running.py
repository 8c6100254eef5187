"""Running trials: `rbmle run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rbmle.cli.app import app
from rbmle.cli.extras import require
from rbmle.cli.options import (
    DataDir,
    Drop,
    ExecutorName,
    Jobs,
    Preprocessing,
    listed,
    tell_readings,
)
from rbmle.cli.showing import show, write_records
from rbmle.core.errors import SettingError

if TYPE_CHECKING:
    from rbmle.environments import Environment

USUAL_ROUNDS = 2000


@app.command()
def run(
    dataset: Annotated[str, typer.Option(help="Names or paths of datasets, with commas between.")],
    policy: Annotated[str, typer.Option(help="Names of policies, or 'all'.")] = "all",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of each trial; 2,000, or all rows if fewer.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each policy.")] = 3,
    target: Annotated[str | None, typer.Option(help="The label's column, for a path.")] = None,
    drop: Drop = "",
    preprocess: Preprocessing = "standard",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="policy.key=value, such as neural-ucb.exploration=0.1."),
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
    from rbmle.environments import SYNTHETIC, Classification
    from rbmle.experiments.trial import Trial
    from rbmle.policies import POLICIES
    from rbmle.policies.choices import policies as chosen_policies

    console = Console()
    names = list(POLICIES) if policy == "all" else listed(policy)
    chosen = chosen_policies(names, settings or [])
    worlds: dict[str, Environment] = {
        name: SYNTHETIC.get(name)
        or Classification(
            dataset=name,
            target=target,
            drop=tuple(listed(drop)),
            preprocessing=preprocess,
            data_dir=data_dir,
        )
        for name in listed(dataset)
    }
    tell_readings(worlds.values(), console)
    horizons = {name: _horizon(name, world.rows, rounds, recycle) for name, world in worlds.items()}
    trials = [
        Trial(policy=value, name=name, environment=world, horizon=horizons[problem], seed=seed)
        for problem, world in worlds.items()
        for name, value in chosen.items()
        for seed in range(seeds)
    ]
    runs = run_missing(trials, out, executor, jobs, console)
    show(runs, out, console)
    if records is not None:
        write_records(runs, records)
        console.print(f"The records are in {records}.")


def _horizon(name: str, rows: int | None, rounds: int | None, recycle: bool) -> int:
    """Return the rounds to play on a problem; a synthetic one has no rows, and no end."""
    if rows is None:
        return rounds or USUAL_ROUNDS
    if rounds is not None and rounds > rows and not recycle:
        raise SettingError(
            f"{rounds} rounds are more than the {rows} rows of {name}; "
            f"use --rounds {rows} or less, or --recycle"
        )
    return rounds or min(USUAL_ROUNDS, rows)


def run_missing(trials: list[Any], out: Path, name: str, jobs: int, console: Console) -> list[Any]:
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
