"""kill -9 under load: nothing that was acknowledged is lost, and nothing is learned twice.

`python -m tests.reliability.killing --kills 100 --events 100000` is the long form, with the control,
which acknowledges before the commit and must lose something.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.reliability.evidence import Verdict, judge
from tests.reliability.running import HASTY, Running, Setup, listening, spawned
from tests.reliability.visitors import Ledger, Site, Visitor
from tests.reliability.wire import Connection, Request

STILLBORN = 0.2  # the part of kills that hit a service before it listens
STILLBORN_SECONDS = 2.0  # within which they do
LAST_MOMENT_SECONDS = 0.03  # a kill comes so long after an answer at most
LEARN_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often, and under which load."""

    kills: int
    events: int  # ranked in all, at least
    visitors: int = 16
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    verdict: Verdict
    kills: int
    refusals: int
    seconds: float

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{self.kills} kills in {self.seconds:.0f} s, {self.refusals} refusals (503); {self.verdict}"
        )


Deed = Callable[[], Awaitable[None]]


async def survive(setup: Setup, plan: Plan, between: Deed | None = None) -> Outcome:
    """Kill a service again and again while visitors are there, and see what is left.

    `between` is done in every second life of the service, under load.
    """
    begun = time.monotonic()
    rng = random.Random(plan.seed)
    ledger, site = Ledger(), Site()
    async with visited(site, ledger, plan.visitors) as visitors:
        kills = 0
        while kills < plan.kills:
            if kills and rng.random() < STILLBORN:
                await _kill_early(setup, rng)
            else:
                target = ledger.size + rng.uniform(0.2, 1.8) * plan.events / plan.kills
                async with listening(setup) as service:
                    site.open(service.port)
                    await ledger.reaches(int(target))
                    if between is not None and kills % 2:
                        await between()
                    await asyncio.sleep(rng.uniform(0, LAST_MOMENT_SECONDS))
                    await service.kill()
                    site.close()
            kills += 1
        async with listening(setup) as service:
            site.open(service.port)
            await ledger.reaches(plan.events)
            site.is_over = True
            await visitors.gone()
            models = {"the last model": await learned_model(service)}
            await service.terminate()
    return Outcome(
        verdict=judge(setup.place, ledger, setup.data, models),
        kills=kills,
        refusals=visitors.refusals,
        seconds=time.monotonic() - begun,
    )


async def _kill_early(setup: Setup, rng: random.Random) -> None:
    async with spawned(setup) as service:
        await asyncio.sleep(rng.uniform(0, STILLBORN_SECONDS))
        await service.kill()


class Visitors:
    """Visitors who are there at the same time."""

    def __init__(self, visitors: list[Visitor], tasks: list["asyncio.Task[None]"]) -> None:
        self._visitors = visitors
        self._tasks = tasks

    @property
    def refusals(self) -> int:
        """Return how often they were sent away."""
        return sum(visitor.refusals for visitor in self._visitors)

    async def gone(self) -> None:
        """Wait until all of them have ended what they had begun."""
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def visited(site: Site, ledger: Ledger, number: int) -> AsyncIterator[Visitors]:
    """Yield visitors who begin at once; if one of them meets what must not be, all ends."""
    crowd = [Visitor(name=f"visitor {i}", site=site, ledger=ledger) for i in range(number)]
    try:
        async with asyncio.TaskGroup() as group:
            yield Visitors(crowd, [group.create_task(visitor.stay()) for visitor in crowd])
    finally:
        for visitor in crowd:
            await visitor.connection.close()


async def learned_model(service: Running) -> bytes:
    """Return the model of a service that has learned all that is in its log."""
    connection = Connection()
    status = Request(method="GET", path="/v1/status")
    try:
        async with asyncio.timeout(LEARN_SECONDS):
            await service.ready()
            while (await connection.ask(service.port, status)).json()["backlog"]:
                await asyncio.sleep(0.05)
            model = Request(method="GET", path="/personalizer/v1.0/model")
            answer = await connection.ask(service.port, model)
    finally:
        await connection.close()
    assert answer.status == 200, answer
    return answer.body


def main() -> int:
    """Print what the service and its control lost; return 0 if it was the control alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--visitors", type=int, default=32)
    parser.add_argument("--wait", default="P2D", help="for rewards; PT5S lets many be late")
    given = parser.parse_args()
    plan = Plan(kills=given.kills, events=given.events, visitors=given.visitors)
    with tempfile.TemporaryDirectory(prefix="rbmle-kill-") as folder:
        setup = Setup(data=Path(folder) / "data", wait=given.wait)
        outcome = asyncio.run(survive(setup, plan))
        print(f"the service: {outcome}", flush=True)
        few = replace(plan, kills=max(3, plan.kills // 10), events=max(300, plan.events // 10))
        hasty = replace(setup, data=Path(folder) / "hasty", program=HASTY)
        control = asyncio.run(survive(hasty, few))
        print(f"the control, which acknowledges before the commit: {control}", flush=True)
    return int(not outcome.verdict.is_clean or control.verdict.lost == 0)


if __name__ == "__main__":
    sys.exit(main())
