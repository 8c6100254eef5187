"""The command line: what is typed, and what is shown."""

import json
import os
import sys
from dataclasses import fields
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from rbmle.core.errors import RBMLEError, SettingError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

USUAL_ROUNDS = 2000

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RBMLE_DATA", help="Folder with datasets as Parquet files."),
]
Jobs = Annotated[int, typer.Option(help="Trials at a time; -1 for one on each core.")]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="serial, processes, ray, or a ray:// address.")
]


def _version(wanted: bool) -> None:
    """Print the version, and stop."""
    if wanted:
        typer.echo(f"rbmle {installed('rbmle')}")
        raise typer.Exit


@app.callback()
def main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Reward-biased maximum likelihood estimation for neural contextual bandits."""


@app.command()
def policies() -> None:
    """List the policies, with their index and their settings."""
    from rbmle.policies import POLICIES

    table = Table("policy", "class", "what its index is", "settings", show_lines=True)
    for name, kind in POLICIES.items():
        formula = (kind.__doc__ or "").strip().splitlines()[0]
        settings = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]  # policies are dataclasses
        table.add_row(name, kind.__name__, formula, settings)
    Console().print(table)


@app.command()
def datasets() -> None:
    """List the datasets, with their shape and where they come from."""
    from rbmle.datasets import DATASETS

    table = Table("dataset", "title", "rows", "features", "classes", "licence", "with the package")
    for name, source in DATASETS.items():
        shape = (f"{source.rows:,}", f"{source.features:,}", str(source.classes))
        shipped = "yes" if source.shipped else "downloaded"
        table.add_row(name, source.title, *shape, source.licence, shipped)
    Console().print(table)


@app.command()
def run(
    dataset: Annotated[str, typer.Option(help="Names or paths of datasets, with commas between.")],
    policy: Annotated[str, typer.Option(help="Names of policies, or 'all'.")] = "all",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of each trial; 2,000, or all rows if fewer.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each policy.")] = 3,
    target: Annotated[str | None, typer.Option(help="The label's column, for a path.")] = None,
    preprocess: Annotated[str, typer.Option(help="standard or paper.")] = "standard",
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
    from rbmle.environments import Classification
    from rbmle.experiments.choices import policies as chosen_policies
    from rbmle.experiments.trial import Trial
    from rbmle.policies import POLICIES

    console = Console()
    names = list(POLICIES) if policy == "all" else _list(policy)
    chosen = chosen_policies(names, settings or [])
    worlds = [
        Classification(dataset=name, target=target, preprocessing=preprocess, data_dir=data_dir)
        for name in _list(dataset)
    ]
    horizons = {world: rounds or min(USUAL_ROUNDS, world.rows) for world in worlds}
    for world, horizon in horizons.items():
        if horizon > world.rows and not recycle:
            raise SettingError(
                f"{horizon} rounds are more than the {world.rows} rows of {world.dataset}; "
                f"use --rounds {world.rows} or less, or --recycle"
            )
    trials = [
        Trial(policy=value, name=name, environment=world, horizon=horizon, seed=seed)
        for world, horizon in horizons.items()
        for name, value in chosen.items()
        for seed in range(seeds)
    ]
    runs = _campaign(trials, out, executor, jobs, console)
    _show(runs, out, console)
    if records is not None:
        _write_records(runs, records)
        console.print(f"The records are in {records}.")


@app.command()
def demo(
    rounds: Annotated[int, typer.Option(min=1, max=1797, help="Rounds of each trial.")] = 1500,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each policy.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for runs and figures.")] = Path("results/demo"),
    executor: ExecutorName = "processes",
) -> None:
    """Compare all policies on handwritten digits; nothing is downloaded."""
    from rbmle.environments import Classification
    from rbmle.experiments.trial import Trial
    from rbmle.policies import POLICIES

    console = Console()
    console.print(
        f"{len(POLICIES)} policies, {seeds} trials each of {rounds} rounds: which of ten digits is "
        "it? The reward is 1 for the right one, else 0.\n"
        "Kernels are compiled on the first run, which takes a minute, and kept for the next."
    )
    world = Classification(dataset="digits")
    trials = [
        Trial(policy=kind(), name=name, environment=world, horizon=rounds, seed=seed)
        for name, kind in POLICIES.items()
        for seed in range(seeds)
    ]
    _show(_campaign(trials, out, executor, -1, console), out, console)


def _campaign(trials: list[Any], out: Path, name: str, jobs: int, console: Console) -> list[Any]:
    """Run what is missing, stored in the folder."""
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


def _show(runs: list[Any], out: Path, console: Console) -> None:
    """Print a table for each dataset, and draw its curves."""
    import numpy as np

    from rbmle.experiments.figures import regret_curves

    for dataset in dict.fromkeys(run.dataset for run in runs):
        groups: dict[str, list[Any]] = {}
        for run in runs:
            if run.dataset == dataset:
                groups.setdefault(run.policy, []).append(run)
        curves = {
            name: np.cumsum([r.regrets for r in group], axis=1) for name, group in groups.items()
        }
        seeds, rounds = next(iter(curves.values())).shape
        table = Table("policy", "regret", "± std", "rounds per CPU second")
        table.title = f"Regret on {dataset} after {rounds:,} rounds, mean of {seeds} seeds"
        for column in table.columns[1:]:
            column.justify = "right"
        for name in sorted(curves, key=lambda name: float(curves[name][:, -1].mean())):
            final, cpu = curves[name][:, -1], sum(r.cpu_seconds for r in groups[name])
            speed = seeds * rounds / cpu
            table.add_row(name, f"{final.mean():,.1f}", f"{final.std():,.1f}", f"{speed:,.0f}")
        console.print(table)
        figure = out / f"{dataset}.png"
        regret_curves(curves, f"{dataset}, mean of {seeds} seeds", figure)
        console.print(f"The curves are in {figure}.")


def _write_records(runs: list[Any], path: Path) -> None:
    """Write one record per trial, whole or not at all."""
    lines = [
        {
            "dataset": run.dataset,
            "policy": run.policy,
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
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_text(json.dumps(lines, indent=1))
    os.replace(scratch, path)


def _list(text: str) -> list[str]:
    """Return what stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def main() -> None:
    """Run the command line; a mistake gets one line, and the exit code 2."""
    try:
        app()
    except RBMLEError as error:
        print(f"rbmle: {error}", file=sys.stderr)
        sys.exit(2)
