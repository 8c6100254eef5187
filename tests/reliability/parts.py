"""kill -9 of front ends and of the learner while the rest goes on, and a learner that stands by.

`python -m tests.reliability.parts --kills 100 --events 100000` is the long form: on SQLite with one front
end, and on PostgreSQL with two and a standby.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rbmle.service.learning.checkpoints import Checkpoints
from tests.reliability.databases import NONE_HERE, database
from tests.reliability.evidence import Verdict, judge
from tests.reliability.killing import learned_model
from tests.reliability.running import ROOT, Running, Setup, listening
from tests.reliability.visitors import Ledger, Site, visited
from tests.reliability.wire import LostError, ask_once

TAKE_OVER_SECONDS = 60.0  # at most, on a busy machine
BOTH = (("learn",), ("front",), ("front", "learn"))  # what is killed, in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    verdict: Verdict
    kills: int
    pauses: list[float] = field(default_factory=list)  # seconds in which nothing was learned

    def __str__(self) -> str:
        """Return the figures."""
        pauses = sorted(self.pauses) or [0.0]
        return (
            f"{self.kills} kills; without a learner for {pauses[len(pauses) // 2]:.1f} s in the median, "
            f"{pauses[-1]:.1f} s at most; {self.verdict}"
        )


async def survive_parts(
    setup: Setup, kills: int, events: int, *, visitors: int = 16, has_standby: bool = False
) -> Outcome:
    """Kill parts of a running service under load, and see what is left."""
    rng = random.Random(0)
    ledger, site = Ledger(), Site()
    pauses: list[float] = []
    async with (
        visited(site, ledger, visitors) as crowd,
        listening(setup) as service,
        standing_by(setup, has_standby),
    ):
        await service.ready()
        site.open(service.port)
        for number in range(kills):
            await ledger.reaches(int((number + 1) * events / (kills + 1)))
            await asyncio.sleep(rng.uniform(0, 0.03))
            commands = BOTH[number % len(BOTH)]
            for command in commands:
                await kill_one(service, command, rng)
            if "learn" in commands:
                pauses.append(await unlearned(service))
        await ledger.reaches(events)
        site.is_over = True
        await crowd.gone()
        models = {"the last model": await learned_model(service)}
        await service.terminate()
    folders = (setup.data, setup.data.with_name("standby"))  # who led last has a checkpoint
    data = next(folder for folder in folders if Checkpoints(folder).paths())
    verdict = judge(setup.place, ledger, data, models)
    return Outcome(verdict=verdict, kills=kills, pauses=pauses)


@asynccontextmanager
async def standing_by(setup: Setup, is_wanted: bool) -> AsyncIterator[None]:
    """Run a second learner, on what might be another machine."""
    if not is_wanted:
        yield
        return
    command = setup.standby(setup.data.with_name("standby"))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def kill_one(service: Running, command: str, rng: random.Random) -> None:
    """Kill a process of one kind, as soon as there is one."""
    while not (pids := service.of_command(command)):
        await asyncio.sleep(0.05)
    with suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL)


async def unlearned(service: Running) -> float:
    """Return the seconds until a record is learned that came after now."""
    begun = time.monotonic()
    async with asyncio.timeout(TAKE_OVER_SECONDS):
        wanted = (await status(service))["records"]
        while (await status(service))["learned"] < wanted:
            await asyncio.sleep(0.05)
    return time.monotonic() - begun


async def status(service: Running) -> dict[str, int]:
    """Return how the service is, by a front end that lives."""
    while True:
        try:
            answer = await ask_once(service.port, "/v1/status")
        except LostError:
            await asyncio.sleep(0.05)
            continue
        said: dict[str, int] = answer.json()
        return said


def main() -> int:
    """Print what was lost; return 0 if nothing was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--events", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rbmle-parts-") as folder, database() as server:
        setup = Setup(data=Path(folder) / "sqlite")
        outcomes = [asyncio.run(survive_parts(setup, given.kills, given.events))]
        print(f"SQLite, one front end: {outcomes[-1]}", flush=True)
        if server is None:
            print(NONE_HERE)
        else:
            address = server.server.url("killed")
            setup = Setup(data=Path(folder) / "postgres", log=address, workers=2)
            story = survive_parts(setup, given.kills, given.events, has_standby=True)
            outcomes.append(asyncio.run(story))
            print(f"PostgreSQL, two front ends and a standby: {outcomes[-1]}", flush=True)
    return int(not all(outcome.verdict.is_clean for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
