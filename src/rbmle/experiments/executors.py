"""Run trials here, in processes or on a Ray cluster; those that are in the store are not run again."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rbmle.core.errors import SettingError
from rbmle.experiments.code import own_code
from rbmle.experiments.store import Store, TrialProgress, is_other, left_out, rounds_in_play
from rbmle.experiments.trial import Run, Trial, TrialError, play


class Executor(Protocol):
    """Runs trials."""

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        """Yield the run of every trial as it finishes, after it was stored."""
        ...


def finish(trial: Trial, store: Store) -> Run:
    """Play a trial, and store its run; executors call it in their processes."""
    progress = TrialProgress.of(trial, store)
    try:
        run = play_or_explain(trial, progress.beat)
        store.put(run)
    finally:
        progress.stop()
    return run


def play_or_explain(trial: Trial, report: Callable[[int, float], None] | None = None) -> Run:
    """Play a trial; turn any error into a TrialError of one line."""
    try:
        return play(trial, report)
    except Exception as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        text = " ".join(str(error).split()) or "no message"
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise TrialError(f"{trial.title}: {type(error).__name__}: {text} ({where})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Serial:
    """One trial after the other in this process: the reference for other executors."""

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        for trial in trials:
            yield finish(trial, store)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Trials in `jobs` processes at a time; −1 for one on each core."""

    jobs: int = -1

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        from joblib import Parallel, delayed, parallel_config  # it takes a moment to import

        with parallel_config(backend="loky", inner_max_num_threads=1):
            workers = Parallel(n_jobs=self.jobs, return_as="generator_unordered", batch_size=1)
            yield from workers(delayed(finish)(trial, store) for trial in trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """Trials as Ray tasks of one core each; runs come back here, and are stored here."""

    address: str | None = None  # such as ray://head:10001; None starts Ray on this machine
    jobs: int = -1  # cores that Ray may use on this machine; −1 for all

    def map(self, trials: Sequence[Trial], store: Store) -> Iterator[Run]:
        try:
            import ray
        except ImportError:
            raise SettingError(
                "the executor 'ray' needs Ray, which is not installed; install it with "
                "pip install 'rbmle[ray]', or use --executor processes"
            ) from None
        local = self.address is None
        ray.init(
            address=self.address,
            num_cpus=None if not local or self.jobs < 1 else self.jobs,
            include_dashboard=False if local else None,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}} if local else None,
        )
        if not local:  # other machines lack the files of policies from outside rbmle
            for name in {name for trial in trials for name, _ in trial.outside}:
                ray.cloudpickle.register_pickle_by_value(sys.modules[name])
        try:
            task = ray.remote(num_cpus=1)(play_or_explain)
            waiting = [task.remote(trial) for trial in trials]
            while waiting:
                ready, waiting = ray.wait(waiting, num_returns=1)
                for run in ray.get(ready):
                    store.put(run)
                    yield run
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        finally:
            ray.shutdown()


NAMES = ("serial", "processes", "ray")


def executor(name: str, jobs: int = -1) -> Executor:
    """Return an executor by its name; `ray` may have an address, as in ray://head:10001."""
    if jobs == 0 or jobs < -1:
        raise SettingError(
            f"the number of jobs must be at least 1, or -1 for one on each core, got {jobs}"
        )
    if name.startswith("ray://"):
        return RayCluster(address=name, jobs=jobs)
    match name:
        case "serial":
            return Serial()
        case "processes":
            return Processes(jobs=jobs)
        case "ray":
            return RayCluster(jobs=jobs)
    raise SettingError(
        f"there is no executor {name!r}; use {', '.join(NAMES)}, or a ray:// address"
    )


LOOK_SECONDS = 0.5  # between two updates of the progress


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
        runs |= {run.id: run for run in _run_with_progress(missing, store, executor, console)}
    return [_run_of(runs, id, wanted[id]) for id in ids]


def _tell_of_others(wanted: Mapping[str, Trial], store: Store, console: Console) -> None:
    """Print which runs of the folder are not used, because other code made them."""
    outside = dict(pair for trial in wanted.values() for pair in trial.outside)
    others = [code for code in store.codes() if is_other(code, own_code(), outside)]
    if others:
        console.print(left_out(others, store.folder.parent), soft_wrap=True)


def _run_of(runs: Mapping[str, Run], id: str, trial: Trial) -> Run:
    """Return the run of a trial; raise TrialError if the executor played it by other code."""
    if id in runs:
        return runs[id]
    raise TrialError(
        f"{trial.title} was played by other code than is installed here; install the same rbmle where "
        "trials are played, and run again"
    )


def _run_with_progress(
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
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
