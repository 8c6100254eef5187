"""What each rule of settling earns while clicks come late, and what it makes of new articles: tables."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy starts its threads

from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from itertools import product

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.settling.simulation import Outcome, Traffic, simulate
from benchmarks.settling.world import Delays, right_share
from rbmle.service.model.settings import ModelSettings
from rbmle.service.settings import ServiceConfiguration, Settle

PERIOD = 2_000  # events in a mean
MORE_AFTER = 12_000  # events
CLIENTS = {  # who sends what, and the rule for it
    "on-reward, clicks only": (False, Settle.ON_REWARD),  # the control: it must fail
    "on-reward, zeros too": (True, Settle.ON_REWARD),
    "deadline, clicks only": (False, Settle.DEADLINE),
    "delayed, clicks only": (False, Settle.DELAYED),
    "delayed, zeros too": (True, Settle.DELAYED),
}
SETTINGS = ((600, 20.0), (60, 250.0), (60, 20.0), (600, 2.0))  # seconds to wait, events a second

Case = tuple[str, tuple[int, float], int, int, Delays]  # client, setting, events, seed, delays


def run(case: Case) -> Outcome:
    """Return what became of one case."""
    client, (wait, per_second), events, seed, delays = case
    sends_zeros, settle = CLIENTS[client]
    traffic = Traffic(
        events=events,
        per_second=per_second,
        sends_zeros=sends_zeros,
        more_after=MORE_AFTER,
        delays=delays,
    )
    configuration = ServiceConfiguration(reward_wait_time=timedelta(seconds=wait), settle=settle)
    return simulate(traffic, configuration, ModelSettings(seed=seed), seed)


def main(
    events: int = typer.Option(20_000, help="In each run; a multiple of 2,000."),
    seeds: int = typer.Option(1, help="Runs of each case, which are averaged."),
    processes: int = typer.Option(2),
    delays: str = typer.Option("equal", help="Of clicks: equal, best-late or best-soon."),
    settings: str = typer.Option("", help="Which of the settings, as 0,2; all if empty."),
) -> None:
    """Print a table for each setting."""
    how = Delays(delays)
    console = Console(width=150)
    numbers = [int(number) for number in settings.split(",")] if settings else range(len(SETTINGS))
    for setting in [SETTINGS[number] for number in numbers]:
        cases = list(product(CLIENTS, [setting], [events], range(seeds), [how]))
        with ProcessPoolExecutor(processes) as pool:
            outcomes = dict(zip(cases, pool.map(run, cases), strict=True))
        console.print(_table(setting, outcomes, events, seeds, how))


def _table(
    setting: tuple[int, float],
    outcomes: dict[Case, Outcome],
    events: int,
    seeds: int,
    delays: Delays,
) -> Table:
    wait, per_second = setting
    share = np.mean(
        [right_share(seed, ServiceConfiguration().exploration) for seed in range(seeds)]
    )
    table = Table(
        title=f"Wait {wait} s, {per_second:g} events a second: {wait * per_second:,.0f} in a wait; "
        f"delays: {delays.value}. Chance of a click per {PERIOD:,} events, and (share of new articles; "
        f"{share:.2f} is right)"
    )
    table.add_column("rule and client")
    for end in range(PERIOD, events + 1, PERIOD):
        table.add_column(f"{end // 1_000} k", justify="right")
    table.add_column("all", justify="right")
    table.add_column("says", justify="right")
    for client in CLIENTS:
        found = [outcomes[client, setting, events, seed, delays] for seed in range(seeds)]
        earned = np.mean([one.earned for one in found], axis=0)
        is_new = np.mean([one.is_new for one in found], axis=0)
        cells = []
        for begin in range(0, events, PERIOD):
            part = slice(begin, begin + PERIOD)
            new = f"\n({is_new[part].mean():.2f})" if begin >= MORE_AFTER else ""
            cells.append(f"{earned[part].mean():.3f}{new}")
        says = np.mean([one.claimed[-1] for one in found])
        table.add_row(client, *cells, f"{earned.mean():.3f}", f"{says:.3f}")
    return table


if __name__ == "__main__":
    typer.run(main)
