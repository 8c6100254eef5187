"""A learner that is stopped and goes on later, and a clock that jumps, while visitors rank and reward.

`python -m tests.reliability.pausing --pauses 12` is the long form: on SQLite with one front end, and on
PostgreSQL with two and a standby. Every second stopped learner goes on (SIGCONT) as soon as another one has
taken over; the others stay stopped, and the supervisor kills them. Between two pauses the clock is two days
ahead or behind for some seconds. In the end the service is started with a clock that is ahead, and then with a
correct one.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rbmle.service.learner.checkpoints import Checkpoints
from tests.reliability.databases import NONE_HERE, database
from tests.reliability.evidence import Verdict, judge
from tests.reliability.jumping import JumpingClock
from tests.reliability.killing import learned_model
from tests.reliability.leading import standing_by, watched
from tests.reliability.parts import spread
from tests.reliability.running import SHORTEST_WAIT, Setup, listening
from tests.reliability.visitors import Ledger, Site, visited

TAKE_OVER_SECONDS = (
    15.0  # in which another learner must have learned all; 5 of them are its patience
)
JUMP_SECONDS = 172_800  # two days
JUMP_LASTS = 3.0
BETWEEN = 100  # events between two faults, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a test."""

    verdict: Verdict
    unlearned: list[float]  # seconds until another learner had learned all, for each pause
    woken: int  # stopped learners that went on
    jumps: int  # of the clock

    @property
    def is_good(self) -> bool:
        """Return whether nothing is wrong, and a learner took over in time after each pause."""
        return self.verdict.is_clean and max(self.unlearned, default=0.0) < TAKE_OVER_SECONDS

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{len(self.unlearned)} stopped learners, of which {self.woken} went on, and {self.jumps} jumps of "
            f"the clock; learned by another after {spread(self.unlearned)}; {self.verdict}"
        )


def jumping(setup: Setup) -> tuple[Setup, JumpingClock]:
    """Return the setup of a service whose clock can jump, and the clock."""
    clock = JumpingClock(setup.data.with_suffix(".clock"))
    clock.path.parent.mkdir(parents=True, exist_ok=True)
    clock.jump(0)
    program = ("-m", "tests.reliability.jumping", str(clock.path))
    return replace(setup, program=program), clock


async def survive_pauses(
    setup: Setup, pauses: int, *, visitors: int = 4, has_standby: bool = False
) -> Outcome:
    """Stop the learner again and again under load, let the clock jump, and check log and model."""
    setup, clock = jumping(setup)
    ledger, site = Ledger(), Site()
    unlearned: list[float] = []
    spares = woken = jumps = 0
    is_covered = has_standby  # by a learner that folds along
    async with (
        visited(site, ledger, visitors) as guests,
        listening(setup) as service,
        standing_by(setup, has_standby) as standby,
    ):
        await service.ready()
        site.open(service.port)
        if standby is not None:
            await standby.ready()
        with watched(setup) as watch:
            for number in range(pauses):
                await ledger.reaches(ledger.size + BETWEEN)
                if not is_covered:
                    await service.stood_by(spares)
                spares = service.spares
                leader = await watch.signal_leader(signal.SIGSTOP)
                unlearned.append(await watch.unlearned(leader))
                goes_on = number % 2 == 1
                if goes_on:
                    with suppress(ProcessLookupError):
                        os.kill(int(leader.rpartition("/")[2]), signal.SIGCONT)
                    woken += 1
                is_covered = goes_on
                await ledger.reaches(ledger.size + BETWEEN)
                clock.jump(JUMP_SECONDS if number % 4 < 2 else -JUMP_SECONDS)
                jumps += 1
                await asyncio.sleep(JUMP_LASTS)
                clock.jump(0)
        await ledger.reaches(ledger.size + BETWEEN)
        site.is_over = True
        await guests.gone()
        models = {"the last model": await learned_model(service, ledger.size)}
        await service.terminate()
    folders = (setup.data, setup.data.with_name("standby"))
    data = next(folder for folder in folders if Checkpoints(folder).paths())
    verdict = judge(setup.place, ledger, data, models)
    return Outcome(verdict=verdict, unlearned=unlearned, woken=woken, jumps=jumps)


async def survive_wrong_start(setup: Setup, *, visitors: int = 4) -> Verdict:
    """Start a service with a clock that is ahead, and again with a correct one, under load."""
    setup, clock = jumping(setup)
    ledger, site = Ledger(), Site()
    async with visited(site, ledger, visitors) as guests:
        for ahead in (JUMP_SECONDS, 0):
            clock.jump(ahead)
            async with listening(setup) as service:
                site.open(service.port)
                await ledger.reaches(ledger.size + BETWEEN)
                if ahead:
                    await service.kill()
                    site.close()
                    continue
                site.is_over = True
                await guests.gone()
                models = {"the last model": await learned_model(service, ledger.size)}
                await service.terminate()
    return judge(setup.place, ledger, setup.data, models)


def main() -> int:
    """Print what was lost; return 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pauses", type=int, default=12)
    parser.add_argument("--settle", default="deadline", help="or on-reward, or delayed")
    given = parser.parse_args()
    rule = Setup(data=Path(), wait=SHORTEST_WAIT, settle=given.settle)
    with tempfile.TemporaryDirectory(prefix="rbmle-pause-") as folder, database() as server:
        setup = replace(rule, data=Path(folder) / "sqlite")
        outcomes = [asyncio.run(survive_pauses(setup, given.pauses))]
        print(f"SQLite, one front end: {outcomes[-1]}", flush=True)
        setup = replace(rule, data=Path(folder) / "ahead")
        verdict = asyncio.run(survive_wrong_start(setup))
        print(f"a start with a clock that is two days ahead: {verdict}", flush=True)
        if server is None:
            print(NONE_HERE)
        else:
            address = server.server.url("killed")
            setup = replace(rule, data=Path(folder) / "postgres", log=address, workers=2)
            outcomes.append(asyncio.run(survive_pauses(setup, given.pauses, has_standby=True)))
            print(f"PostgreSQL, two front ends and a standby: {outcomes[-1]}", flush=True)
    return int(not (verdict.is_clean and all(outcome.is_good for outcome in outcomes)))


if __name__ == "__main__":
    sys.exit(main())
