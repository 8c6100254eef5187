"""Durable ranks per second against an echo in the same minute, and a long run with its memory."""

import tempfile
import urllib.request
from dataclasses import replace
from pathlib import Path
from statistics import median

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.service.client import Traffic, loaded
from benchmarks.service.processes import RBMLE, cpu_seconds, family, listening, resident

AT_LEAST = 0.40
SOAK_CONNECTIONS = 64


def main(
    turns: int = typer.Option(5, help="Of echo and service, one after the other."),
    seconds: float = typer.Option(6.0, help="Of each."),
    minutes: float = typer.Option(0.0, help="Of a long run after that, with memory."),
    connections: str = typer.Option("32,64,128", help="Each has one request at a time."),
    reward_share: float = typer.Option(0.1, help="The part of the events that is rewarded."),
    catalogue: int = typer.Option(500, help="Of articles; 0: their features are new in each call."),
    policy: str = typer.Option("", help="The default one if empty."),
    workers: int = typer.Option(1, help="Front ends."),
    log: str = typer.Option("", help="postgresql://…; SQLite if empty."),
) -> None:
    """Print a table of each turn; then memory as the long run goes on."""
    console = Console(width=110)
    with (
        tempfile.TemporaryDirectory() as folder,
        listening("-m", "benchmarks.service.echo") as echo,
        listening(*_serve(folder, policy, workers, log)) as served,
    ):
        process, port = served
        counts = [int(count) for count in connections.split(",")]
        for count in counts if turns else ():
            traffic = Traffic(connections=count, reward_share=reward_share, catalogue=catalogue)
            _compare(echo[1], port, process.pid, turns, seconds, traffic, console)
        if minutes:
            traffic = Traffic(
                connections=counts[-1], reward_share=reward_share, catalogue=catalogue
            )
            _soak(port, process.pid, minutes, traffic, console)


def _compare(
    echo: int,
    port: int,
    pid: int,
    turns: int,
    seconds: float,
    traffic: Traffic,
    console: Console,
) -> None:
    """Print how much of an echo's throughput the service has, turn by turn."""
    silent = replace(traffic, reward_share=0.0)
    table = Table(title=f"{traffic.connections} connections, a catalogue of {traffic.catalogue}")
    for name in (
        "turn",
        "echo /s",
        "service /s",
        "ratio",
        "p50 ms",
        "p99 ms",
        "rewards /s",
        "CPU µs",
    ):
        table.add_column(name, justify="right")
    table.add_column("errors", justify="right")
    ratios = []
    for turn in range(turns):
        bare = loaded(echo, seconds, silent)
        before = sum(map(cpu_seconds, family(pid)))
        ours = loaded(port, seconds, traffic)
        cpu = (
            sum(map(cpu_seconds, family(pid))) - before
        )  # of all processes, rewards and learning too
        ratios.append(ours.ranks_per_second / bare.ranks_per_second)
        table.add_row(
            str(turn + 1),
            f"{bare.ranks_per_second:,.0f}",
            f"{ours.ranks_per_second:,.0f}",
            f"{ratios[-1]:.2f}",
            f"{ours.milliseconds(0.5):.1f}",
            f"{ours.milliseconds(0.99):.1f}",
            f"{ours.rewards / seconds:,.0f}",
            f"{1e6 * cpu / max(1, len(ours.latencies)):,.0f}",
            str(len(ours.errors)),
        )
    console.print(table)
    console.print(f"median ratio {median(ratios):.2f}, at least {AT_LEAST:.2f} is wanted\n")


def _soak(port: int, pid: int, minutes: float, traffic: Traffic, console: Console) -> None:
    """Print memory and speed, minute by minute."""
    console.print("minute  ranks/s  p99 ms  rewards/s  backlog  resident MiB  errors")
    for minute in range(1, round(minutes) + 1):
        found = loaded(port, 60.0, traffic)
        status = urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/status").read().decode()
        backlog = status.partition('"backlog":')[2].partition(",")[0]
        console.print(
            f"{minute:6} {found.ranks_per_second:8,.0f} {found.milliseconds(0.99):7.1f} "
            f"{found.rewards / 60:10,.0f} {backlog:>8} {resident(pid):13,.0f} {len(found.errors):7}"
        )
        for error in found.errors[:3]:
            console.print(error.decode(errors="replace"))


def _serve(folder: str, policy: str, workers: int, log: str) -> list[str]:
    command = [*RBMLE, "serve", "--no-keys", "--workers", str(workers)]
    command += ["--policy", policy] if policy else []
    command += ["--log", log] if log else []
    return [*command, "--data", str(Path(folder) / "data"), "--port"]


typer.run(main)
