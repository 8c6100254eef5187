"""What each trick of a front end is worth: throughput and CPU with one of them left out, in turns."""

import json
import tempfile
import urllib.request
from collections import defaultdict
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import monotonic, sleep

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.service.client import Load, Traffic, loaded
from benchmarks.service.processes import RBMLE, cpu_seconds, listening, running
from benchmarks.service.without import PARTS

ECHO = "echo"


def main(
    turns: int = typer.Option(8, help="Of the echo and of each front end, in another order each."),
    seconds: float = typer.Option(5.0, help="Of each."),
    connections: int = typer.Option(64, help="Each has one request at a time."),
    catalogue: int = typer.Option(500, help="Of articles; 0: their features are new in each call."),
) -> None:
    """Print the medians; each front end has a log and a learner of its own."""
    traffic = Traffic(connections=connections, catalogue=catalogue)
    silent = replace(traffic, reward_share=0.0)
    ratios: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = {ECHO: stack.enter_context(listening("-m", "benchmarks.service.echo"))}
        for part in PARTS:
            data = str(folder / part)
            stack.enter_context(running(*RBMLE, "learn", "--data", data))
            sleep(1.0)  # until the folder is there
            front = ["-m", "benchmarks.service.without", part, "front", "--no-keys", "--data", data]
            found[part] = stack.enter_context(listening(*front, "--port"))
            _wait_until_ready(found[part][1])
        for turn in range(-1, turns):  # the first one warms up
            names = list(found)
            got: dict[str, Load] = {}
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                process, port = found[name]
                before = cpu_seconds(process.pid)
                got[name] = loaded(port, seconds, silent if name == ECHO else traffic)
                cost = (cpu_seconds(process.pid) - before) / len(got[name].latencies)
                if name != ECHO:
                    _wait_until_learned(port)  # else its learner slows down the next one
                if turn >= 0:
                    costs[name].append(cost * 1e6)
            for name in names if turn >= 0 else ():
                ratios[name].append(got[name].ranks_per_second / got[ECHO].ranks_per_second)
    table = Table(title=f"{connections} connections, a catalogue of {catalogue}")
    for column in ("without", "of the echo's throughput", "CPU µs a rank"):
        table.add_column(column, justify="left" if column == "without" else "right")
    for name, of_echo in ratios.items():
        table.add_row(name, f"{median(of_echo):.2f}", f"{median(costs[name]):.0f}")
    Console(width=110).print(table)


def _wait_until_ready(port: int) -> None:
    end = monotonic() + 120
    while monotonic() < end:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz").close()
            return
        sleep(0.1)
    raise SystemExit("a front end is not ready; start a learner and a front end by hand to see why")


def _wait_until_learned(port: int) -> None:
    end = monotonic() + 60
    while monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/status") as status:
            if json.load(status)["backlog"] == 0:
                return
        sleep(0.1)


if __name__ == "__main__":
    typer.run(main)
