"""The progress of a measurement: rounds played and time left, shown between rounds and never in one."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rbmle.studies.step_time import Seconds

LOOK_SECONDS = 0.5  # between two lines
FEW = 10  # rounds that tell nothing of those to come


@contextmanager
def watched(title: str, rounds: int, console: Console) -> Iterator[Callable[[Seconds], None]]:
    """Yield a function that shows how far the rounds have got, given their seconds."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[played]:,} of {task.fields[rounds]:,} rounds"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]} left"),
    )
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        bar = progress.add_task(title, total=None, played=0, rounds=rounds, left="–")
        looked = time.monotonic()

        def report(wall: Seconds) -> None:
            nonlocal looked
            now = time.monotonic()
            if now - looked < LOOK_SECONDS and len(wall) < rounds:
                return
            looked = now
            left, spent = seconds_left(wall, rounds), float(wall.sum())
            progress.update(
                bar,
                played=len(wall),
                completed=spent,
                total=None if left is None else spent + left,
                left="–" if left is None else str(timedelta(seconds=round(left))),
            )
            progress.refresh()

        yield report


def seconds_left(wall: Seconds, rounds: int) -> float | None:
    """Return the time of the rounds to come if t of them take at + bt³; None in the first few.

    A round with the exact Z reads t² numbers, so all of them t³.
    """
    t, s = len(wall), len(wall) // 2
    if s < FEW:
        return None
    early, whole = wall[:s].mean(), wall.mean()
    b = max((whole - early) / (t**2 - s**2), 0.0)
    a = max(whole - b * t**2, 0.0)
    return float(a * (rounds - t) + b * (rounds**3 - t**3))
