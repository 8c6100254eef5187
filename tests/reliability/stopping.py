"""SIGTERM under load: the service ends in time without errors, and nothing that was acknowledged is lost.

`python -m tests.reliability.stopping --stops 50` is the long form.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rbmle.service.http.server import Binding
from tests.reliability.killing import Outcome, Plan, survive
from tests.reliability.running import Running, Setup

GRACEFUL_SECONDS = Binding().graceful_seconds


@dataclass(kw_only=True)
class Stops:
    """How services ended."""

    codes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    async def stop(self, service: Running) -> None:
        """Stop a service, and note how it ended."""
        code, seconds = await service.terminate()
        self.codes.append(code)
        self.seconds.append(seconds)

    @property
    def are_good(self) -> bool:
        """Return whether all services ended in time without errors."""
        return not any(self.codes) and max(self.seconds) < GRACEFUL_SECONDS

    def __str__(self) -> str:
        """Return the figures."""
        return (
            f"{len(self.codes)} stops with exit codes {sorted(set(self.codes))}, the slowest in "
            f"{max(self.seconds):.2f} s"
        )


async def stop_under_load(setup: Setup, plan: Plan) -> tuple[Stops, Outcome]:
    """Stop a service again and again under load; return how it ended, and the check of its log."""
    stops = Stops()
    return stops, await survive(setup, plan, end=stops.stop)


def main() -> int:
    """Print how the service stopped; return 0 if it always stopped in time without errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--events", type=int, default=10_000)
    given = parser.parse_args()
    plan = Plan(kills=given.stops, events=given.events, visitors=32)
    with tempfile.TemporaryDirectory(prefix="rbmle-stop-") as folder:
        stops, outcome = asyncio.run(stop_under_load(Setup(data=Path(folder) / "data"), plan))
    print(f"{stops}; {outcome.verdict}")
    return int(not stops.are_good or not outcome.verdict.is_clean)


if __name__ == "__main__":
    sys.exit(main())
