"""Many trials: what is in the store is read, what is missing is run, and progress is shown."""

import threading
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rbmle.experiments.executors import Executor
from rbmle.experiments.heartbeat import rounds_in_play
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial

LOOK_SECONDS = 0.5  # between two looks at the heartbeats


def campaign(
    trials: Sequence[Trial], store: Store, executor: Executor, console: Console
) -> list[Run]:
    """Return the runs of all trials, in their order; only those that the store lacks are run."""
    wanted = {trial.id: trial for trial in trials}
    runs = {id: run for id, trial in wanted.items() if (run := store.get(trial)) is not None}
    missing = [trial for id, trial in wanted.items() if id not in runs]
    if runs:
        console.print(f"{len(runs)} of {len(wanted)} trials are in {store.folder} already.")
    if missing:
        runs |= {run.id: run for run in _watched(missing, store, executor, console)}
    return [runs[trial.id] for trial in trials]


def _watched(
    trials: Sequence[Trial], store: Store, executor: Executor, console: Console
) -> list[Run]:
    """Run trials with a live display: trials done, rounds a second, time left, regret so far."""
    columns = (
        TextColumn("{task.fields[done]} of {task.fields[trials]} trials"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[speed]:,.0f} rounds/s"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]} left"),
        TextColumn("{task.fields[last]}"),
    )
    rounds = sum(trial.horizon for trial in trials)
    finished: list[Run] = []
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(
            "", total=rounds, done=0, trials=len(trials), speed=0.0, left="–", last=""
        )
        stop = threading.Event()

        def look() -> None:
            started = time.monotonic()
            while not stop.wait(LOOK_SECONDS):
                played = sum(len(run.regrets) for run in finished) + rounds_in_play(store)
                speed = played / (time.monotonic() - started)
                left = _clock((rounds - played) / speed) if speed else "–"
                progress.update(bar, completed=played, speed=speed, left=left)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            for run in executor.map(trials, store):
                finished.append(run)
                last = f"{run.policy} on {run.dataset}: {run.final_regret:,.0f}"
                progress.update(bar, done=len(finished), last=last)
        finally:
            stop.set()
            watcher.join()
        progress.update(bar, completed=rounds, left="nothing")
    return finished


def _clock(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
