"""What is shown of runs: tables on the screen, curves and records on disk."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rbmle.core.files import write_text


def show(runs: list[Any], out: Path, console: Console) -> None:
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
            table.add_row(
                name,
                f"{final.mean():,.1f}",
                f"{final.std(ddof=min(1, seeds - 1)):,.1f}",
                f"{speed:,.0f}",
            )
        console.print(table)
        figure = out / f"{dataset}.png"
        regret_curves(curves, f"{dataset}, mean of {seeds} seeds", figure)
        console.print(f"The curves are in {figure}.")


def write_records(runs: list[Any], path: Path) -> None:
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
    write_text(path, json.dumps(lines, indent=1))
