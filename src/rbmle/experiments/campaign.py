"""Many trials: what is in the store is read, what is missing is run, and progress is shown."""

import threading
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rbmle.experiments.code import own_code
from rbmle.experiments.errors import TrialError
from rbmle.experiments.executors import Executor
from rbmle.experiments.heartbeat import rounds_in_play
from rbmle.experiments.selection import is_other, left_out
from rbmle.experiments.store import Store
from rbmle.experiments.trial import Run, Trial

LOOK_SECONDS = 0.5  # between two looks at the heartbeats


def campaign(
    trials: Sequence[Trial], store: Store, executor: Executor, console: Console
) -> list[Run]:
    """Return the runs of all trials, in their order; only those that the store lacks are run."""
    ids = [trial.id for trial in trials]  # each reads the data of its trial
    wanted = dict(zip(ids, trials, strict=True))
    runs = {id: run for id in wanted if (run := store.find(id)) is not None}
    missing = [trial for id, trial in wanted.items() if id not in runs]
    if runs:
        console.print(f"{len(runs)} of {len(wanted)} trials are in {store.folder} already.")
    _tell_of_others(wanted, store, console)
    if missing:
        runs |= {run.id: run for run in _watched(missing, store, executor, console)}
    return [_found(runs, id, wanted[id]) for id in ids]


def _tell_of_others(wanted: Mapping[str, Trial], store: Store, console: Console) -> None:
    """Say which runs of the folder are not used, as other code made them."""
    outside = dict(pair for trial in wanted.values() for pair in trial.outside)
    others = [code for code in store.codes() if is_other(code, own_code(), outside)]
    if others:
        console.print(left_out(others, store.folder.parent), soft_wrap=True)


def _found(runs: Mapping[str, Run], id: str, trial: Trial) -> Run:
    """Return the run of a trial, which an executor with other code does not make."""
    if id in runs:
        return runs[id]
    raise TrialError(
        f"{trial.title} was played by other code than is installed here; install the same rbmle where "
        "trials are played, and run again"
    )


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
        TextColumn("{task.fields[last]}", markup=False),
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
