"""kill -9 under load: nothing that was acknowledged is lost, and nothing is learned twice.

`python -m tests.reliability.killing --kills 100 --events 100000` is the long form, with the control,
a service that acknowledges before the commit and must lose something.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.reliability.evidence import Verdict, judge
from tests.reliability.running import HASTY, Running, Setup, listening, spawned
from tests.reliability.visitors import Ledger, Site, visited
from tests.reliability.wire import Connection, Request

EARLY_SECONDS = 2.0  # within which a service is killed before it listens
LAST_MOMENT_SECONDS = 0.03  # between an answer and a kill, at most
LEARN_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many kills, and under which load."""

    kills: int
    events: int  # ranked in all, at least
    visitors: int = 16
    stillborn: float = 0.0  # how many services are killed during a start, for each one under load
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a test."""

    verdict: Verdict
    kills: int  # under load
    early: int  # kills before the service listened
    refusals: int
    seconds: float

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{self.kills} kills under load and {self.early} during a start in {self.seconds:.0f} s, "
            f"{self.refusals} refusals (503); {self.verdict}"
        )


Deed = Callable[[], Awaitable[None]]
End = Callable[[Running], Awaitable[None]]


async def survive(
    setup: Setup, plan: Plan, end: End = Running.kill, between: Deed | None = None
) -> Outcome:
    """Kill a service again and again under load, and check its log and its model.

    `between` is called after every second start of the service, under load.
    """
    begun = time.monotonic()
    rng = random.Random(plan.seed)
    ledger, site = Ledger(), Site()
    async with visited(site, ledger, plan.visitors) as visitors:
        early = 0
        for life in range(plan.kills):
            if rng.random() < plan.stillborn:
                await _kill_early(setup, rng)
                early += 1
            target = ledger.size + rng.uniform(0.2, 1.8) * plan.events / plan.kills
            async with listening(setup) as service:
                site.open(service.port)
                await ledger.reaches(int(target))
                if between is not None and life % 2:
                    await between()
                await asyncio.sleep(rng.uniform(0, LAST_MOMENT_SECONDS))
                await end(service)
                site.close()
        async with listening(setup) as service:
            site.open(service.port)
            await ledger.reaches(plan.events)
            site.is_over = True
            await visitors.gone()
            model = await learned_model(service, ledger.size if setup.learns_all else 0)
            models = {"the last model": model}
            await service.terminate()
    return Outcome(
        verdict=judge(setup.place, ledger, setup.data, models),
        kills=plan.kills,
        early=early,
        refusals=visitors.refusals,
        seconds=time.monotonic() - begun,
    )


async def _kill_early(setup: Setup, rng: random.Random) -> None:
    async with spawned(setup) as service:
        await asyncio.sleep(rng.uniform(0, EARLY_SECONDS))
        await service.kill()


async def learned_model(service: Running, observations: int = 0) -> bytes:
    """Return the model of a service once it has learned its whole log, and at least so many observations."""
    connection = Connection()
    request = Request(method="GET", path="/v1/status")
    try:
        async with asyncio.timeout(LEARN_SECONDS):
            await service.ready()
            while True:
                status = (await connection.ask(service.port, request)).json()
                if not status["backlog"] and status["observations"] >= observations:
                    break
                await asyncio.sleep(0.05)
            model = Request(method="GET", path="/personalizer/v1.0/model")
            answer = await connection.ask(service.port, model)
    finally:
        await connection.close()
    assert answer.status == 200, answer
    return answer.body


def main() -> int:
    """Print what the service and the control lost; return 0 if only the control lost something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--visitors", type=int, default=32)
    parser.add_argument("--wait", default="P2D", help="for rewards; PT5S lets many be late")
    parser.add_argument("--settle", default="on-reward", help="or deadline, or delayed")
    given = parser.parse_args()
    plan = Plan(kills=given.kills, events=given.events, visitors=given.visitors, stillborn=0.2)
    with tempfile.TemporaryDirectory(prefix="rbmle-kill-") as folder:
        setup = Setup(data=Path(folder) / "data", wait=given.wait, settle=given.settle)
        outcome = asyncio.run(survive(setup, plan))
        print(f"the service: {outcome}", flush=True)
        few = replace(plan, kills=max(3, plan.kills // 10), events=max(300, plan.events // 10))
        hasty = replace(setup, data=Path(folder) / "hasty", program=HASTY)
        control = asyncio.run(survive(hasty, few))
        print(f"the control, which acknowledges before the commit: {control}", flush=True)
    return int(not outcome.verdict.is_clean or control.verdict.lost == 0)


if __name__ == "__main__":
    sys.exit(main())
