"""The command line."""

import time
from dataclasses import fields
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
CHUNK = 50  # rounds between two looks at the progress bar


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
def demo(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each trial.")] = 1500,
    seeds: Annotated[int, typer.Option(min=1, help="Trials of each policy.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("results/demo"),
) -> None:
    """Compare all policies on handwritten digits; nothing is downloaded."""
    import numpy as np

    from rbmle.datasets import digits
    from rbmle.environments import Classification
    from rbmle.experiments.figures import regret_curves
    from rbmle.experiments.trial import Trial, play
    from rbmle.policies import POLICIES

    console = Console()
    world = Classification(dataset=digits())
    console.print(
        f"Eleven policies, {seeds} trials each of {rounds} rounds: which of ten digits is it? "
        "The reward is 1 for the right one, else 0.\n"
        "Kernels are compiled on the first run, which takes a minute, and kept for the next."
    )
    curves: dict[str, np.ndarray] = {}
    speeds: dict[str, float] = {}
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds, regret {task.fields[regret]:.0f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(POLICIES) * seeds * rounds, regret=0.0)
        for name, kind in POLICIES.items():
            runs, spent = [], 0.0
            for seed in range(seeds):
                trial = Trial(policy=kind(), environment=world, horizon=rounds, seed=seed)
                regrets: list[float] = []
                for t, regret in enumerate(play(trial)):
                    regrets.append(regret)
                    if t == 0:
                        started = time.process_time()  # the first round may compile
                    if t % CHUNK == CHUNK - 1 or t == rounds - 1:
                        step = t % CHUNK + 1
                        progress.update(bar, description=name, advance=step, regret=sum(regrets))
                spent += time.process_time() - started
                runs.append(np.cumsum(regrets))
            curves[name] = np.array(runs)
            speeds[name] = seeds * (rounds - 1) / spent if spent else 0.0
    console.print(_table(curves, speeds, rounds, seeds))
    out.mkdir(parents=True, exist_ok=True)
    figure = out / "regret.png"
    regret_curves(curves, f"Digits, mean of {seeds} seeds", figure)
    console.print(f"The curves are in {figure}.")


def _table(curves: dict, speeds: dict[str, float], rounds: int, seeds: int) -> Table:
    """Return the regrets as a table, the smallest first."""
    title = f"Regret on digits after {rounds} rounds, mean of {seeds} seeds, default settings"
    table = Table("policy", "regret", "± std", "rounds per CPU second", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in sorted(curves, key=lambda name: float(curves[name][:, -1].mean())):
        final = curves[name][:, -1]
        table.add_row(name, f"{final.mean():.1f}", f"{final.std():.1f}", f"{speeds[name]:,.0f}")
    return table


def main() -> None:
    """Run the command line."""
    app()
