"""A start from a checkpoint with a long log: the service is ready soon, and answers fast at once.

`python -m tests.reliability.starting --events 1000000` writes a log of a million events,
folds all of it into a checkpoint, and starts the service several times. The default policy learns from the last
events, enough to fill its memory; the others are logged only.
"""

import argparse
import asyncio
import compileall
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from rbmle.service.learner.checkpoints import Checkpoints
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.start import Start
from rbmle.service.log import Log, Row, open_log
from rbmle.service.log.records import (
    OPERATOR,
    Configured,
    Decided,
    Modelled,
    OfferedAction,
    Play,
    Record,
    Rewarded,
    pack_features,
    row_of,
)
from rbmle.service.model.settings import MEMORY, ModelSettings
from rbmle.service.settings import LearningMode, read_settings
from rbmle.service.statistics.summary import Statistics
from tests.reliability.killing import learned_model
from tests.reliability.running import ROOT, Running, Setup, listening
from tests.reliability.visitors import ACTIONS, rank_request
from tests.reliability.wire import Connection

BATCH = 5_000
REWARD_MILLISECONDS = 5_000  # after its event
REWARDED = 10  # every tenth event has a reward
READY_SECONDS = 2.0
UNREAD_SHARE = (
    3.0  # so many times that, where a learner begins with nothing, and loads all beside it
)
IMPORTS = (
    "import rbmle.cli.serving, rbmle.service.http.app, rbmle.service.http.server, uvloop, httptools"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The events in a log before the start."""

    events: int
    per_second: int = 100
    learned: int = MEMORY.size + 5_000  # the last of them; the others are logged only

    def rows(self, start: Start, now: int) -> Iterator[Row]:
        """Yield all records of a service, in the order of their times, up to now."""
        between = 1000 // self.per_second
        lag = REWARD_MILLISECONDS // between  # in events
        begun = now - between * (self.events + lag)
        yield from (row_of(record, OPERATOR, begun) for record in _beginning(start))
        rng = random.Random(self.events)
        for number in range(self.events + lag):
            at = begun + between * number
            if number < self.events:
                is_online = number >= self.events - self.learned
                decided = _decided(
                    rng, LearningMode.ONLINE if is_online else LearningMode.LOGGING_ONLY
                )
                yield row_of(decided, f"event {number}", at, f"rank:event {number}")
            before = number - lag
            if before >= 0 and before % REWARDED == 0:
                rewarded = Rewarded(values={"": rng.choice((0.0, 1.0))}, digest="0" * 32)
                yield row_of(rewarded, f"event {before}", at, f"reward:of {before}")


def _decided(rng: random.Random, mode: LearningMode) -> Decided:
    place = rng.choice(("north", "south", "east", "west"))
    context = [{"user": {"age": rng.randrange(90), "place": place}, "day": rng.randrange(7)}]
    actions = [
        OfferedAction(id=id, features=pack_features([{"price": rng.randrange(9)}]))
        for id in ACTIONS
    ]
    play = Play(
        eligible=[0, 1, 2, 3],
        probabilities=[0.85, 0.05, 0.05, 0.05],
        chosen=rng.choice((0, 0, 0, 1, 2, 3)),
    )
    return Decided(
        context=pack_features(context),
        actions=actions,
        plays=[play],
        digest="0" * 32,
        learned=0,
        mode=mode.value,
    )


def _beginning(start: Start) -> list[Record]:
    """Return the first records of a log."""
    assert start.policy is not None
    assert start.featuriser is not None
    assert start.seed is not None
    assert start.configuration is not None
    model = ModelSettings(policy=start.policy, featuriser=start.featuriser, seed=start.seed)
    return [
        Modelled(settings=model.to_json()),
        Configured(configuration=start.configuration.to_json()),
    ]


def make(setup: Setup, past: Past) -> int:
    """Write the log of a service with a past, and a checkpoint of all of it; return its length."""
    start = Start.of(read_settings(setup.write(), {}))
    with closing(open_log(setup.place)) as log:
        rows = past.rows(start, time.time_ns() // 1_000_000)
        while batch := list(islice(rows, BATCH)):
            log.append(batch)
        _save(log, setup.data)
        return log.last()


def _save(log: Log, data: Path) -> None:
    """Write a checkpoint of the whole log."""
    statistics = Statistics()
    fold = Fold(log=log, make=ModelSettings.from_json, watcher=statistics)
    for stored in log.read():
        fold.apply(stored)
    Checkpoints(data).save(fold, statistics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Seconds since the start of the process, and the durations of the first ranks."""

    listening: float
    ready: float
    answered: float  # its first rank
    rank_cpu: float  # CPU seconds of the front ends for the most costly of the first ranks
    rank: float  # seconds for the first rank
    next_ranks: float  # for the next ones, in the median


async def begin(setup: Setup, name: str, ranks: int = 1) -> Begun:
    """Start a service, rank as soon as it is ready, each time over a new connection, and kill it."""
    async with listening(setup) as service:
        heard = time.monotonic() - service.begun
        ready = await service.ready()
        answered, costs, times = 0.0, [], []
        for i in range(ranks):
            connection = Connection()
            request = rank_request(f"{name} {i}", random.Random(name), is_named=True)
            before, asked = _front_cpu(service), time.monotonic()
            answer = await connection.ask(service.port, request)
            answered = answered or time.monotonic() - service.begun
            times.append(time.monotonic() - asked)
            costs.append(_front_cpu(service) - before)
            await connection.close()
            assert answer.status == 201, answer
    return Begun(
        listening=heard,
        ready=ready,
        answered=answered,
        rank_cpu=max(costs),
        rank=times[0],
        next_ranks=median(times[1:] or times),
    )


async def begin_and_read(setup: Setup) -> tuple[float, float]:
    """Return the seconds until a service is ready, and until it has learned its whole log."""
    async with listening(setup) as service:
        ready = await service.ready()
        await learned_model(service)
        return ready, time.monotonic() - service.begun


def _front_cpu(service: Running) -> float:
    """Return the CPU seconds that the front ends have taken, to the microsecond."""
    threads = (
        thread
        for pid in service.of_command("front")
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat")
    )
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def forget(setup: Setup) -> None:
    """Delete all but the log, as if it had just been imported."""
    for path in (*Checkpoints(setup.data).paths(), *setup.data.glob("published-*")):
        path.unlink()


def import_seconds() -> float:
    """Return how long it takes to start Python and import what the service needs."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, cwd=ROOT)
    return time.monotonic() - begun


def main() -> int:
    """Print the times of several starts; return 0 if the service is ready soon enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--per-second", type=int, default=100)
    parser.add_argument("--starts", type=int, default=7)
    given = parser.parse_args()
    compileall.compile_dir(str(ROOT / "src"), quiet=1)  # as an installer does
    past = Past(events=given.events, per_second=given.per_second)
    with tempfile.TemporaryDirectory(prefix="rbmle-start-") as folder:
        setup = Setup(data=Path(folder) / "data", wait="PT10M", policy="", bits=12)
        begun = time.monotonic()
        rows = make(setup, past)
        print(f"{rows} rows made and folded in {time.monotonic() - begun:.0f} s", flush=True)
        (path, *_) = Checkpoints(setup.data).paths()
        size = path.stat().st_size
        starts = [asyncio.run(begin(setup, f"start {i}")) for i in range(given.starts)]
        forget(setup)
        unread = asyncio.run(begin(setup, "a start without a checkpoint", ranks=20))
    imports = median(import_seconds() for _ in range(given.starts))
    figures = {
        name: (median(times), max(times))
        for name in ("listening", "ready", "answered", "rank_cpu")
        for times in [[getattr(start, name) for start in starts]]
    }
    print(
        f"{given.events} events, {given.per_second} a second, checkpoint of {size / 2**20:.1f} MiB, "
        f"{given.starts} starts; imports alone {imports:.2f} s"
    )
    for name, (middle, most) in figures.items():
        print(f"  {name}: {middle:.3f} s (median), {most:.3f} s (slowest)")
    print(
        f"without a checkpoint: ready after {unread.ready:.3f} s, the first rank took {unread.rank:.3f} s and "
        f"the next ones {unread.next_ranks:.3f} s (median)"
    )
    return int(max(figures["ready"][0], unread.ready / UNREAD_SHARE) > READY_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
