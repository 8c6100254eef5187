"""A table of mean rewards: the service, Vowpal Wabbit beside it, and by how much they differ."""

from datetime import timedelta
from itertools import islice

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.worlds import in_process, over_http, rival
from benchmarks.worlds.worlds import EVENTS, WORLDS, Event
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration

WAIT = timedelta(seconds=over_http.WAIT_SECONDS)  # for a click
LATE = int(in_process.PER_SECOND * over_http.WAIT_SECONDS)  # events that come in that time


def main(
    seeds: int = typer.Option(3, help="How many worlds of each kind."),
    events: int = typer.Option(EVENTS, help="In each world."),
    only: str = typer.Option("", help="Names of worlds, with commas between; all if empty."),
    in_one_process: bool = typer.Option(
        False, "--in-process", help="Without HTTP, by a clock that is made up."
    ),
    exploration: float = typer.Option(ServiceConfiguration().exploration, help="ε"),
) -> None:
    """Play each world, and print what it earned as soon as it is known."""
    names = only.split(",") if only else list(WORLDS)
    console, rows = Console(width=100), []
    for name in names:
        rows.append(_row(name, seeds, events, in_one_process, exploration))
        console.print("  ".join(rows[-1]))
    table = Table(title=f"Mean reward over {events:,} events, {seeds} seeds")
    for column in ("world", "uniform", "best", "service", "Vowpal Wabbit", "difference"):
        table.add_column(column, justify="left" if column == "world" else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _row(name: str, seeds: int, events: int, in_one_process: bool, exploration: float) -> list[str]:
    """Return what was earned in a world, in words."""
    found = []
    for seed in range(seeds):
        stream = list(islice(WORLDS[name](np.random.default_rng(seed)), events))
        if in_one_process:
            ours = in_process.play(
                stream,
                LATE,
                ModelSettings(seed=seed),
                ServiceConfiguration(exploration=exploration, reward_wait_time=WAIT),
            )
        else:
            ours = over_http.play(stream, in_process.PER_SECOND, ["--seed", str(seed)])
        theirs = rival.play(stream, LATE, seed)
        found.append((*_bounds(stream), ours.mean(), theirs.mean()))
    means = np.mean(found, axis=0)
    differences = np.array([ours - theirs for *_, ours, theirs in found])
    error = differences.std(ddof=1) / seeds**0.5 if seeds > 1 else float("nan")
    return [
        name,
        *(f"{mean:.3f}" for mean in means),
        f"{differences.mean():+.4f} ± {error:.4f}",
    ]


def _bounds(stream: list[Event]) -> tuple[float, float]:
    """Return what uniform play earns, and what the best play does."""
    return (
        float(np.mean([event.chances.mean() for event in stream])),
        float(np.mean([event.chances.max() for event in stream])),
    )


typer.run(main)
