"""`python -m benchmarks.service.soak`: serve at a steady rate, and follow the memory of each process.

Every event is a rank, followed by a reward. The tool prints a table, draws the resident memory of each
process over time, and exits with 1 if some process is later more than 5 % above its level after the warm-up.
"""

import asyncio
import itertools
import json
import random
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.service.client import Streams, Traffic, ask, post
from benchmarks.service.processes import RBMLE, family, listening, resident, start_of

FLAT = 0.05  # of the level after the warm-up, by which memory may grow
SAMPLE_SECONDS = 1.0
ROWS = 20  # of the table
LEVEL_SHARE = 0.2  # of the time after the warm-up, over which a level is a median
LONGEST_START = 180.0  # seconds
LONGEST_ANSWER = 30.0  # seconds
CONNECTIONS = 256  # open at once; an overloaded service gets events later, and not more connections
ROLES = {"learn": "learner", "front": "front end"}  # by the command of a supervised process


@dataclass(slots=True)
class Soak:
    """What was measured so far."""

    times: list[float] = field(default_factory=list)  # seconds since the start, of each sample
    memory: dict[str, list[float]] = field(default_factory=dict)  # MiB by process, of each sample
    events: list[int] = field(default_factory=list)  # that were rewarded by then
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))  # of ranks
    rewarded: int = 0
    late: int = 0  # events that began more than a second after their time
    errors: list[str] = field(default_factory=list)

    def growth(self, name: str, warm_up: float) -> tuple[float, float]:
        """Return the level of a process after the warm-up, and how far the highest later sample exceeds it."""
        times, memory = np.array(self.times), np.array(self.memory[name])
        later = memory[(times >= warm_up) & ~np.isnan(memory)]
        if not len(later):
            return float("nan"), float("nan")
        level = float(np.median(later[: max(1, int(LEVEL_SHARE * len(later)))]))
        return level, float(later.max()) / level - 1.0


def main(
    rate: float = typer.Option(10.0, help="Events a second, each a rank followed by a reward."),
    minutes: float = typer.Option(30.0, help="How long to drive the service."),
    warm_up: float = typer.Option(0.0, help="Minutes that do not count; 0: a fifth of all."),
    wait: str = typer.Option("PT5S", help="The reward wait time of the service."),
    exploration: float = typer.Option(0.1, help="The probability of a random action."),
    workers: int = typer.Option(1, help="Front ends."),
    log: str = typer.Option("", help="postgresql://…; SQLite if empty."),
    picture: Path = typer.Option(None, help="Where the curves are drawn, as PNG."),  # noqa: B008
) -> None:
    """Drive a new service, print its memory, and exit with 1 if that grows."""
    with tempfile.TemporaryDirectory(prefix="rbmle-soak-") as folder:
        command = _serve(Path(folder), wait, exploration, workers, log)
        with (
            listening(*command) as (process, port),
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            soak = runner.run(_drive(process.pid, port, rate, 60 * minutes))
    console, limit = Console(width=130), 60 * (warm_up or minutes / 5)
    title = f"{rate:g} events a second for {minutes:g} minutes, rewards within {wait}"
    console.print(_table(soak, title))
    quantiles = ", ".join(
        f"p{100 * q:g} {1e3 * float(np.quantile(soak.latencies, q)):.1f} ms" for q in (0.5, 0.99)
    )
    console.print(
        f"{soak.rewarded} events; ranks {quantiles}; {soak.late} late, {len(soak.errors)} errors"
    )
    for error in soak.errors[:3]:
        console.print(error)
    growths = {name: soak.growth(name, limit) for name in soak.memory}
    for name, (level, growth) in growths.items():
        console.print(
            f"{name}: {level:.0f} MiB after {limit / 60:g} minutes, at most {100 * growth:+.1f} %"
        )
    if picture is not None:
        _draw(soak, title, limit, picture)
    raise typer.Exit(int(any(growth > FLAT for _, growth in growths.values())))


def _serve(folder: Path, wait: str, exploration: float, workers: int, log: str) -> list[str]:
    """Write the settings of a service; return the command that starts it, up to its port."""
    settings = folder / "rbmle.toml"
    lines = [
        f"data = {json.dumps(str(folder / 'data'))}",
        "no_keys = true",
        f"workers = {workers}",
        *([f"log = {json.dumps(log)}"] if log else []),
        "[configuration]",
        f"reward_wait_time = {json.dumps(wait)}",
        f"exploration = {exploration}",
    ]
    settings.write_text("\n".join(lines) + "\n")
    return [*RBMLE, "serve", "--config", str(settings), "--port"]


async def _drive(pid: int, port: int, rate: float, seconds: float) -> Soak:
    """Send events at a steady rate until the time is over, and take samples of the memory beside that."""
    await _ready(port)
    soak, free = Soak(), deque[Streams]()
    requests = itertools.cycle(Traffic(bodies=2_000).requests(0))
    rng, gate, begun = random.Random(0), asyncio.Semaphore(CONNECTIONS), time.perf_counter()
    sampler = asyncio.create_task(_sample(soak, pid, begun))
    async with asyncio.TaskGroup() as group:
        for number in itertools.count():
            at = begun + number / rate
            if at > begun + seconds:
                break
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            await gate.acquire()
            soak.late += time.perf_counter() > at + 1.0
            event = _event(soak, port, next(requests), rng.random() < 0.3, free)
            group.create_task(event).add_done_callback(lambda _: gate.release())
    sampler.cancel()
    with suppress(asyncio.CancelledError):
        await sampler
    return soak


async def _ready(port: int) -> None:
    """Wait until the service is ready."""
    async with asyncio.timeout(LONGEST_START):
        while True:
            with suppress(OSError, EOFError):
                streams = await asyncio.open_connection("127.0.0.1", port)
                status, _ = await ask(streams, b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                streams[1].close()
                if status == b"200":
                    return
            await asyncio.sleep(0.1)


async def _event(
    soak: Soak, port: int, request: bytes, is_good: bool, free: deque[Streams]
) -> None:
    """Rank, and reward what was shown, on a connection that is free."""
    begun = time.perf_counter()
    while True:
        is_new = not free
        try:
            async with asyncio.timeout(LONGEST_ANSWER):
                streams = await asyncio.open_connection("127.0.0.1", port) if is_new else free.pop()
                status, answer = await ask(streams, request)
            break
        except (
            OSError,
            EOFError,
        ) as error:  # the service closes connections that are idle for long
            if is_new:
                soak.errors.append(f"a new connection failed: {type(error).__name__} {error}")
                return
    soak.latencies.append(time.perf_counter() - begun)
    if status == b"201":
        path = f"/personalizer/v1.0/events/{msgspec.json.decode(answer)['eventId']}/reward"
        try:
            async with asyncio.timeout(LONGEST_ANSWER):
                status, answer = await ask(streams, post(path, b'{"value": %d}' % is_good))
        except (OSError, EOFError):
            soak.errors.append("a connection was closed before the reward was answered")
            return
        soak.rewarded += 1
    if status not in (b"201", b"204"):
        soak.errors.append(f"{status.decode()} {answer[:200].decode()}")
    free.append(streams)


async def _sample(soak: Soak, pid: int, begun: float) -> None:
    """Note the resident memory of each process, once a second."""
    while True:
        for pages in soak.memory.values():
            pages.append(float("nan"))
        soak.times.append(time.perf_counter() - begun)
        soak.events.append(soak.rewarded)
        for name, process in _named(family(pid)):
            with suppress(OSError):
                row = soak.memory.setdefault(name, [float("nan")] * len(soak.times))
                row[-1] = resident(process)
        await asyncio.sleep(SAMPLE_SECONDS)


def _named(pids: Sequence[int]) -> list[tuple[str, int]]:
    """Return a name for each process, in the order in which they were started."""
    named: dict[str, int] = {}
    for pid in sorted(pids, key=start_of):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            role = next((ROLES[word] for word in words if word in ROLES), "")
            role = role or ("supervisor" if pid == pids[0] else "other")
            number = sum(name.startswith(role) for name in named)
            second = "standby learner" if role == "learner" else f"{role} {number + 1}"
            named[second if number else role] = pid
    return list(named.items())


def _table(soak: Soak, title: str) -> Table:
    """Return the memory of each process at some times."""
    table = Table(title=title)
    for column in ("minute", "events", *(f"{name} MiB" for name in soak.memory)):
        table.add_column(column, justify="right")
    for at in np.linspace(0, len(soak.times) - 1, min(ROWS, len(soak.times))).astype(int):
        memory = [f"{row[at]:.0f}" for row in soak.memory.values()]
        table.add_row(f"{soak.times[at] / 60:.1f}", str(soak.events[at]), *memory)
    return table


def _draw(soak: Soak, title: str, warm_up: float, path: Path) -> None:
    """Draw the memory of each process over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    minutes = np.array(soak.times) / 60
    for name, row in soak.memory.items():
        axes.plot(minutes, row, label=name, linewidth=1.2)
    axes.axvline(warm_up / 60, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="minutes", ylabel="resident memory, MiB", title=title, xlim=(0, minutes[-1]))
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    typer.run(main)
