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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from rbmle.service.learner.checkpoints import Checkpoints
from tests.reliability.databases import NONE_HERE, database
from tests.reliability.evidence import Verdict, judge
from tests.reliability.killing import learned_model
from tests.reliability.leading import PATIENCE, standing_by, watched
from tests.reliability.running import Running, Setup, listening
from tests.reliability.visitors import Ledger, Site, visited
from tests.reliability.wire import LostError, ask_once

TAKE_OVER_SECONDS = 5.0  # in which another learner must have learned all that is stored
BOTH = (("learn",), ("front",), ("front", "learn"))  # what is killed, in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a test."""

    verdict: Verdict
    kills: int
    unlearned: list[float] = field(
        default_factory=list
    )  # seconds until one that stood by was so far
    unsaved: list[float] = field(default_factory=list)  # the same where perhaps none stood by
    unanswered: list[float] = field(default_factory=list)  # seconds until a front end answered

    @property
    def is_good(self) -> bool:
        """Return whether nothing is wrong, and a learner took over in time after each kill."""
        return self.verdict.is_clean and max(self.unlearned, default=0.0) < TAKE_OVER_SECONDS

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{self.kills} kills; learned by one that stood by after {spread(self.unlearned)}, if perhaps "
            f"none did after {spread(self.unsaved)}; answered "
            f"after the kill of a front end after {spread(self.unanswered)}; {self.verdict}"
        )


def spread(seconds: list[float]) -> str:
    """Return the median and the maximum of some times."""
    if not seconds:
        return "–"
    return f"{median(seconds):.1f} s in the median, {max(seconds):.1f} s at most ({len(seconds)})"


async def survive_parts(
    setup: Setup, kills: int, events: int, *, visitors: int = 16, has_standby: bool = False
) -> Outcome:
    """Kill parts of a running service under load, and check its log and its model."""
    rng = random.Random(0)
    ledger, site = Ledger(), Site()
    unlearned: list[float] = []
    unsaved: list[float] = []
    unanswereds: list[float] = []
    spares = (
        0  # that stood by before the last learner was killed; one that leads at once never does
    )
    async with (
        visited(site, ledger, visitors) as guests,
        listening(setup) as service,
        standing_by(setup, has_standby) as standby,
    ):
        await service.ready()
        site.open(service.port)
        with watched(setup) as watch:
            for number in range(kills):
                await ledger.reaches(int((number + 1) * events / (kills + 1)))
                is_covered = standby is not None or number % 2 == 0
                if standby is not None:
                    await standby.ready()
                elif is_covered:
                    await service.stood_by(spares)
                await asyncio.sleep(rng.uniform(0, 0.03))
                async with asyncio.TaskGroup() as group:
                    if "front" in (commands := BOTH[number % len(BOTH)]):
                        await kill_one(service, "front", rng)
                        answered = group.create_task(unanswered(service))
                    if "learn" in commands:
                        spares = service.spares
                        killed = await watch.signal_leader(signal.SIGKILL)
                        learned = group.create_task(watch.unlearned(killed))
                if "front" in commands:
                    unanswereds.append(answered.result())
                if "learn" in commands:
                    (unlearned if is_covered else unsaved).append(learned.result())
        await ledger.reaches(events)
        site.is_over = True
        await guests.gone()
        model = await learned_model(service, ledger.size if setup.learns_all else 0)
        models = {"the last model": model}
        await service.terminate()
    folders = (setup.data, setup.data.with_name("standby"))  # who led last has a checkpoint
    data = next(folder for folder in folders if Checkpoints(folder).paths())
    verdict = judge(setup.place, ledger, data, models)
    return Outcome(
        verdict=verdict, kills=kills, unlearned=unlearned, unsaved=unsaved, unanswered=unanswereds
    )


async def kill_one(service: Running, command: str, rng: random.Random) -> None:
    """Kill a process of one kind, as soon as there is one."""
    async with asyncio.timeout(PATIENCE):
        while not (pids := service.of_command(command)):
            await asyncio.sleep(0.05)
    with suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL)


async def unanswered(service: Running) -> float:
    """Return the seconds until a front end answers on a new connection."""
    begun = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await ask_once(service.port, "/v1/status")
            except LostError:
                await asyncio.sleep(0.02)
            else:
                return time.monotonic() - begun


def main() -> int:
    """Print what was lost; return 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--wait", default="P2D", help="for rewards; PT5S lets many be late")
    parser.add_argument("--settle", default="on-reward", help="or deadline, or delayed")
    given = parser.parse_args()
    rule = Setup(data=Path(), wait=given.wait, settle=given.settle)
    with tempfile.TemporaryDirectory(prefix="rbmle-parts-") as folder, database() as server:
        setup = replace(rule, data=Path(folder) / "sqlite")
        outcomes = [asyncio.run(survive_parts(setup, given.kills, given.events))]
        print(f"SQLite, one front end: {outcomes[-1]}", flush=True)
        if server is None:
            print(NONE_HERE)
        else:
            address = server.server.url("killed")
            setup = replace(rule, data=Path(folder) / "postgres", log=address, workers=2)
            story = survive_parts(setup, given.kills, given.events, has_standby=True)
            outcomes.append(asyncio.run(story))
            print(f"PostgreSQL, two front ends and a standby: {outcomes[-1]}", flush=True)
    return int(not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
