"""What is shown of runs: tables on the screen, curves and records on disk."""

import json
from collections import Counter
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rbmle.core.files import write_text, written_whole

if TYPE_CHECKING:
    from rbmle.experiments.summary import Cell, Summary
    from rbmle.experiments.trial import Run


def show(summary: "Summary", out: Path, console: Console) -> None:
    """Print a table for each problem, and draw its curves.

    As in reports, ± is the standard error of the mean: the deviation over seeds, divided by the square root of
    their number.
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
    """Return a policy's row."""
    error = "–" if cell.std is None else f"{cell.std / len(cell.seeds) ** 0.5:,.1f}"
    speed = cell.problem.horizon / max(cell.cpu_seconds, 1e-9)
    return cell.policy, f"{cell.mean:,.1f}", error, f"{speed:,.0f}"


def _add_picture(picture: bytes, folder: Path, stem: str) -> Path:
    """Write a picture and return its path; a picture of another run stays, and this one gets a number."""
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
    """Return a title as the name of a file."""
    kept = "".join(c if c.isalnum() or c in "._=+-" else " " for c in title)
    return "-".join(kept.split())
